# exit: 1
# says: TL206 | barrier_of_nobody.py:11
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        bar = T.alloc_barrier(1)
        T.barrier_wait(bar, 0)
        T.clear(O)

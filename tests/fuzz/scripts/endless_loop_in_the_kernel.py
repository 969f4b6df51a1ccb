# exit: 1
# says: TL206 | endless_loop_in_the_kernel.py:12
# args: --seconds 1
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        x = T.alloc_var("int32", init=0)
        while x < 5:
            O[0] = 1.0

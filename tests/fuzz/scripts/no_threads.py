# exit: 1
# says: no_threads.py:9
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=0):
        T.clear(O)

# exit: 2
# says: not a kernel
import tilelang
import tilelang.language as T


def k():
    @T.prim_func
    def kernel(O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.clear(O)

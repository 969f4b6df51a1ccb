# exit: 1
# says: TL702 | 64.5 of O is not a size
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64.5,), "float32")):
    with T.Kernel(1, threads=64):
        T.clear(O)

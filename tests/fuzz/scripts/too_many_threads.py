# exit: 1
# says: TL502 | 4096
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=4096):
        T.clear(O)

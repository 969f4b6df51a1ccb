# exit: 1
# says: TL702 | float99 | does not exist
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float99")):
    with T.Kernel(1, threads=64):
        T.clear(O)

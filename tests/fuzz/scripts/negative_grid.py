# exit: 1
# says: TL505 | negative_grid.py:9 | -4
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(-4, threads=64):
        T.clear(O)

# exit: 1
# says: TL505 | grid_of_zero.py:9
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(0, threads=64):
        T.clear(O)

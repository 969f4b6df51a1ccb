# exit: 1
# says: grid_of_four_dimensions.py:9
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, 1, 1, 2, threads=64):
        T.clear(O)

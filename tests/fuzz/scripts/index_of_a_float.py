# exit: 1
# says: TL702 | index_of_a_float.py:11 | not a whole number
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i * 1.5] = 1.0

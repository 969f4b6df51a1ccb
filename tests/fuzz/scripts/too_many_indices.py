# exit: 1
# says: too_many_indices.py:11
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i, i, i] = 1.0

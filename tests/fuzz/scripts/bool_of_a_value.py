# exit: 1
# says: bool_of_a_value.py:11
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = [1.0, 2.0][bool(A[i])]

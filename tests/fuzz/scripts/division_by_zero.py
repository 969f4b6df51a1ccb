# exit: 1
# says: division_by_zero.py
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = A[i] // (A[i] - A[i])

# exit: 0
# says:
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = A[i] if A[i] > 0 else 0.0

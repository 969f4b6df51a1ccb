# exit: 1
# says: TL702 | float8_e3m4 | sm_80
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "float8_e3m4"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = T.cast(A[i], "float32")

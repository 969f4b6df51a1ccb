# exit: 1
# says: TL702 | of A is not a size
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((1 << 50,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            O[i] = A[i]

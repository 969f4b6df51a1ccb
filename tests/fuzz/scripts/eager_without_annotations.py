# exit: 2
# says: k needs A, B | T.Tensor
import tilelang
import tilelang.language as T


@tilelang.jit
def k(A, B):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            B[i] = A[i]

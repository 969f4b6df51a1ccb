# exit: 0
# says:
import tilelang
import tilelang.language as T


@tilelang.jit
def k(A):
    A: T.Tensor[[64], T.float32]
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] + 1

# exit: 1
# says: eager_returns_an_input.py
import tilelang
import tilelang.language as T


@tilelang.jit
def k(A):
    A: T.Tensor[[64], T.float32]
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] + 1
    return A

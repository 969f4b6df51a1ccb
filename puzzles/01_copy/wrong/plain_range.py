"""A plain loop is run by every thread: right values, and 128 times the work."""

import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in range(block):
            if bx * block + i < N:
                B[bx * block + i] = A[bx * block + i]
    return B

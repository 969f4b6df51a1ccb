"""No guard at all: the last block reaches far beyond the end."""

import tilelang
import tilelang.language as T


@tilelang.jit
def vector_add(A, B, block: int = 256):
    N = T.dynamic("N")
    A: T.Tensor[[N], "float32"]
    B: T.Tensor[[N], "float32"]
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C

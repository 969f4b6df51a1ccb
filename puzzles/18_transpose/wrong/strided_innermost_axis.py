"""Straight from A to B: neighbouring lanes read side by side and write M elements apart, so each write takes a sector of its own."""

import tilelang
import tilelang.language as T


@tilelang.jit
def transpose(A, block: int = 32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B = T.empty((N, M), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        for i, j in T.Parallel(block, block):
            if bx * block + j < N and by * block + i < M:
                B[bx * block + j, by * block + i] = A[by * block + i, bx * block + j]
    return B

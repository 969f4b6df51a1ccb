"""The tile goes to its new place, but as it was: rows inside it stay rows."""

import tilelang
import tilelang.language as T


@tilelang.jit
def transpose(A, block: int = 32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B = T.empty((N, M), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        tile = T.alloc_shared((block, block), "float32")
        T.copy(A[by * block, bx * block], tile)
        for j, i in T.Parallel(block, block):
            if bx * block + j < N and by * block + i < M:
                B[bx * block + j, by * block + i] = tile[j, i]
    return B

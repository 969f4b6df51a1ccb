"""Each block subtracts the mean of its own part."""

import tilelang
import tilelang.language as T


@tilelang.jit
def center(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        tile = T.alloc_fragment((block,), "float32")
        own = T.alloc_fragment((1,), "float32")
        T.copy(A[bx * block], tile)
        T.reduce_sum(tile, own, dim=0)
        for i in T.Parallel(block):
            tile[i] = tile[i] - own[0] / T.min(block, N - bx * block)
        T.copy(tile, B[bx * block])
    return B

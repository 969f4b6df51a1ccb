"""Divides by the elements of all the tiles: those beyond the end add 0 to the sum, but not nothing to the count."""

import tilelang
import tilelang.language as T


@tilelang.jit
def center(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    blocks = T.ceildiv(N, block)
    sums = T.alloc_global((blocks,), "float32")
    with T.Kernel(blocks, threads=128) as bx:
        tile = T.alloc_fragment((block,), "float32")
        own = T.alloc_fragment((1,), "float32")
        T.copy(A[bx * block], tile)
        T.reduce_sum(tile, own, dim=0)
        T.copy(own, sums[bx : bx + 1])
    with T.Kernel(blocks, threads=128) as bx:
        some = T.alloc_fragment((128,), "float32")
        total = T.alloc_fragment((1,), "float32")
        T.clear(total)
        for k in T.serial(T.ceildiv(blocks, 128)):
            T.copy(sums[k * 128], some)
            T.reduce_sum(some, total, dim=0, clear=False)
        tile = T.alloc_fragment((block,), "float32")
        T.copy(A[bx * block], tile)
        for i in T.Parallel(block):
            tile[i] = tile[i] - total[0] / (blocks * block)
        T.copy(tile, B[bx * block])
    return B

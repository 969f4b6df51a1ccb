"""Each block scans its own part and begins again from zero."""

import tilelang
import tilelang.language as T


@tilelang.jit
def prefix_sum(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "int32"]
    B = T.empty((N,), "int32")
    blocks = T.ceildiv(N, block)
    sums = T.alloc_global((blocks,), "int32")
    with T.Kernel(blocks, threads=128) as bx:
        part = T.alloc_fragment((block,), "int32")
        own = T.alloc_fragment((1,), "int32")
        T.copy(A[bx * block], part)
        T.reduce_sum(part, own, dim=0)
        T.copy(own, sums[bx : bx + 1])
    with T.Kernel(blocks, threads=128) as bx:
        some = T.alloc_fragment((128,), "int32")
        carry = T.alloc_fragment((1,), "int32")
        T.clear(carry)
        for k in T.serial(T.ceildiv(blocks, 128)):
            for i in T.Parallel(128):
                some[i] = T.if_then_else(k * 128 + i < bx, sums[k * 128 + i], 0)
            T.reduce_sum(some, carry, dim=0, clear=False)
        tile = T.alloc_shared((block,), "int32")
        T.copy(A[bx * block : bx * block + block], tile)
        T.cumsum(tile, dim=0)
        for i in T.Parallel(block):
            if bx * block + i < N:
                B[bx * block + i] = tile[i]
    return B

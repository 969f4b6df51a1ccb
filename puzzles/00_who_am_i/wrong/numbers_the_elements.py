"""Writes the number of each element, where the number of its block was asked for."""

import tilelang
import tilelang.language as T


@tilelang.jit
def who_am_i(out, block: int = 32):
    N = T.const("N")
    out: T.Tensor[[N], "int32"]
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                out[bx * block + i] = bx * block + i

"""The solution of puzzle 0, who am i?. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def who_am_i(out, block: int = 32):
    N = T.const("N")
    out: T.Tensor[[N], "int32"]
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        start = bx * block
        T.fill(out[start : start + block], bx)

"""Without a slice, neither side says how much to copy: each block moves one element."""

import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        T.copy(A[bx * block], B[bx * block])
    return B

# fails: TL103
# ruff: noqa
"""Leaves what lay in the output's memory: where a right result was there before, that is what comes back."""
import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                B[bx * block + i] = B[bx * block + i]
    return B

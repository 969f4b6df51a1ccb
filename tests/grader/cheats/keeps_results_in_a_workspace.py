# fails: TL103
# ruff: noqa
"""Takes the output from a workspace in global memory, which an earlier launch may have filled."""
import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        kept = T.alloc_global((N,), "float32")
        for i in T.Parallel(block):
            if bx * block + i < N:
                B[bx * block + i] = kept[bx * block + i]
                kept[bx * block + i] = A[bx * block + i]
    return B

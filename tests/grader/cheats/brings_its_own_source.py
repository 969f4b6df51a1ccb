# fails: refused
# ruff: noqa
"""Brings CUDA source of its own into the generated code."""
import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        T.import_source("__device__ void mine() {}")
        T.copy(A[bx * block : bx * block + block], B[bx * block : bx * block + block])
    return B

"""ReLU of each summand, and then the sum: a negative A no longer pulls a positive B down."""

import tilelang
import tilelang.language as T


@tilelang.jit
def add_relu(A, B, rows: int = 32, cols: int = 128):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float16"]
    B: T.Tensor[[M, N], "float16"]
    C = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=128) as (bx, by):
        a = T.alloc_fragment((rows, cols), "float16")
        T.copy(A[by * rows, bx * cols], a)
        b = T.alloc_fragment((rows, cols), "float16")
        T.copy(B[by * rows, bx * cols], b)
        for i, j in T.Parallel(rows, cols):
            a[i, j] = T.max(a[i, j], T.float16(0)) + T.max(b[i, j], T.float16(0))
        T.copy(a, C[by * rows, bx * cols])
    return C

"""A is spread along the rows and B down the columns: the sum of the wrong pair."""

import tilelang
import tilelang.language as T


@tilelang.jit
def outer_add(A, B, rows: int = 32, cols: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M], "float32"]
    B: T.Tensor[[N], "float32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=128) as (bx, by):
        a = T.alloc_fragment((rows,), "float32")
        b = T.alloc_fragment((cols,), "float32")
        c = T.alloc_fragment((rows, cols), "float32")
        T.copy(B[by * rows], a)
        T.copy(A[bx * cols], b)
        for i, j in T.Parallel(rows, cols):
            c[i, j] = a[i] + b[j]
        T.copy(c, C[by * rows, bx * cols])
    return C

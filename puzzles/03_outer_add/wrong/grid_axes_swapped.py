"""bx counts tiles along the columns, and is used for the rows: on a matrix that is not square, tiles are missing."""

import tilelang
import tilelang.language as T


@tilelang.jit
def outer_add(A, B, rows: int = 32, cols: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M], "float32"]
    B: T.Tensor[[N], "float32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=128) as (by, bx):
        a = T.alloc_fragment((rows,), "float32")
        b = T.alloc_fragment((cols,), "float32")
        c = T.alloc_fragment((rows, cols), "float32")
        T.copy(A[by * rows], a)
        T.copy(B[bx * cols], b)
        for i, j in T.Parallel(rows, cols):
            c[i, j] = a[i] + b[j]
        T.copy(c, C[by * rows, bx * cols])
    return C

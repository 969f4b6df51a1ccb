"""Clears total, which the reduction overwrites anyway; the products still begin with garbage."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_dot(A, B, rows: int = 16, cols: int = 128):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        a = T.alloc_fragment((rows, cols), "float32")
        b = T.alloc_fragment((rows, cols), "float32")
        products = T.alloc_fragment((rows, cols), "float32")
        total = T.alloc_fragment((rows,), "float32")
        T.clear(total)
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(A[bx * rows, k * cols], a)
            T.copy(B[bx * rows, k * cols], b)
            for i, j in T.Parallel(rows, cols):
                products[i, j] += a[i, j] * b[i, j]
        T.reduce_sum(products, total, dim=1)
        T.copy(total, out[bx * rows])
    return out

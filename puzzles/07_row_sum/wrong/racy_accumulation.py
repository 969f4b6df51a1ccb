"""Every element of a row is added to the same cell by another thread, at the same time: a data race."""

import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(A, rows: int = 16, cols: int = 256):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        total = T.alloc_shared((rows,), "float32")
        T.clear(total)
        for k in T.serial(T.ceildiv(N, cols)):
            for i, j in T.Parallel(rows, cols):
                if bx * rows + i < M and k * cols + j < N:
                    total[i] += A[bx * rows + i, k * cols + j]
        T.copy(total, out[bx * rows])
    return out

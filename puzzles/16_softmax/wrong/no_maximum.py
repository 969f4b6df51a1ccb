"""No maximum: from 89 on exp is infinite, and infinity over infinity is not a number."""

import tilelang
import tilelang.language as T


@tilelang.jit
def softmax(X, rows: int = 4, cols: int = 1024):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float32"]
    Y = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_fragment((rows, cols), "float32")
        top = T.alloc_fragment((rows,), "float32")
        total = T.alloc_fragment((rows,), "float32")
        for i, j in T.Parallel(rows, cols):
            x[i, j] = T.if_then_else(j < N, X[bx * rows + i, j], -T.infinity("float32"))
        T.reduce_max(x, top, dim=1)
        for i, j in T.Parallel(rows, cols):
            x[i, j] = T.exp(x[i, j])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(rows, cols):
            x[i, j] = x[i, j] / total[i]
        T.copy(x, Y[bx * rows, 0])
    return Y

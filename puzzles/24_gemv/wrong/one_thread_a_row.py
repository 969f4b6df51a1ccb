"""Each thread walks along a row of its own: at every step the lanes of a warp read K elements apart."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemv(A, x, rows: int = 128):
    M, K = T.const("M, K")
    A: T.Tensor[[M, K], "float16"]
    x: T.Tensor[[K], "float16"]
    y = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        total = T.alloc_fragment((rows,), "float32")
        T.clear(total)
        for k in T.serial(K):
            for i in T.Parallel(rows):
                if bx * rows + i < M:
                    total[i] += T.cast(A[bx * rows + i, k], "float32") * T.cast(x[k], "float32")
        T.copy(total, y[bx * rows])
    return y

"""The vector is read at its beginning every time; only the first tile meets the right part."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemv(A, x, rows: int = 8, cols: int = 256):
    M, K = T.const("M, K")
    A: T.Tensor[[M, K], "float16"]
    x: T.Tensor[[K], "float16"]
    y = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        total = T.alloc_fragment((rows,), "float32")
        a = T.alloc_fragment((rows, cols), "float16")
        part = T.alloc_fragment((cols,), "float16")
        products = T.alloc_fragment((rows, cols), "float32")
        T.clear(products)
        for k in T.serial(T.ceildiv(K, cols)):
            T.copy(A[bx * rows, k * cols], a)
            T.copy(x[0], part)
            for i, j in T.Parallel(rows, cols):
                products[i, j] += T.cast(a[i, j], "float32") * T.cast(part[j], "float32")
        T.reduce_sum(products, total, dim=1)
        T.copy(total, y[bx * rows])
    return y

"""`+=` reads, adds and writes: two threads that do so at once leave a single step."""

import tilelang
import tilelang.language as T


@tilelang.jit
def histogram(X, H, block: int = 512):
    N = T.const("N")
    X: T.Tensor[[N], "int32"]
    H: T.Tensor[[64], "int32"]
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        counts = T.alloc_shared((64,), "int32")
        T.clear(counts)
        for i in T.Parallel(block):
            if bx * block + i < N:
                counts[X[bx * block + i]] += 1
        for i in T.Parallel(64):
            T.atomic_add(H[i], counts[i])

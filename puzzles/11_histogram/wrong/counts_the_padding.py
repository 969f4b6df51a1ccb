"""The tile's tail is read as 0, and those zeros are counted in bin 0."""

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
        x = T.alloc_shared((block,), "int32")
        T.copy(X[bx * block : bx * block + block], x)
        for i in T.Parallel(block):
            T.atomic_add(counts[x[i]], 1)
        for i in T.Parallel(64):
            T.atomic_add(H[i], counts[i])

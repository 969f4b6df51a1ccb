"""The solution of puzzle 12, one sum, two orders. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def total(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((1,), "float32")
    with T.Kernel(1, threads=128):
        tile = T.alloc_fragment((block,), "float32")
        result = T.alloc_fragment((1,), "float32")
        T.clear(result)
        partial = T.alloc_fragment((block,), "float32")
        T.clear(partial)
        for k in T.serial(T.ceildiv(N, block)):
            T.copy(A[k * block], tile)
            for i in T.Parallel(block):
                partial[i] += tile[i]
        T.reduce_sum(partial, result, dim=0)
        T.copy(result, out)
    return out

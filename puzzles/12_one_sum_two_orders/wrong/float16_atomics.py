"""Atomics in float16: the order is left to chance, and the sum soon stands still."""

import tilelang
import tilelang.language as T


@tilelang.jit
def total(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((1,), "float32")
    with T.Kernel(1, threads=128):
        result = T.alloc_shared((1,), "float16")
        T.clear(result)
        for k in T.serial(T.ceildiv(N, block)):
            for i in T.Parallel(block):
                if k * block + i < N:
                    T.atomic_add(result[0], T.cast(A[k * block + i], "float16"))
        out[0] = result[0]
    return out

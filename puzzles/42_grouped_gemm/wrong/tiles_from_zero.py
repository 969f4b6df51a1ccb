"""Counts tiles from the top of the matrix and not from the group's first row."""

import tilelang
import tilelang.language as T


@tilelang.jit
def grouped(A, B, starts, block_m: int = 64, block_n: int = 64, block_k: int = 32):
    M, N, K, E, F = T.const("M, N, K, E, F")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[E, K, N], "float16"]
    starts: T.Tensor[[F], "int32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), E, threads=128) as (bx, by, e):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        first = T.max(starts[e], by * block_m)
        if first < starts[e + 1]:
            T.clear(c)
            for k in T.serial(T.ceildiv(K, block_k)):
                T.copy(A[first : first + block_m, k * block_k : (k + 1) * block_k], a)
                T.copy(B[e, k * block_k, bx * block_n], b)
                T.gemm(a, b, c)
            for i, j in T.Parallel(block_m, block_n):
                if first + i < starts[e + 1] and bx * block_n + j < N:
                    C[first + i, bx * block_n + j] = c[i, j]
    return C

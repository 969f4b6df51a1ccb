"""Sums up all of K first and applies the last scales to the sum."""

import tilelang
import tilelang.language as T


@tilelang.jit
def scaled_matmul(A, B, sa, sb, block_m: int = 64, block_n: int = 128):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float8_e4m3fn"]
    B: T.Tensor[[N, K], "float8_e4m3fn"]
    sa: T.Tensor[[M, K // 128], "float32"]
    sb: T.Tensor[[N // 128, K // 128], "float32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, 128), "float8_e4m3fn")
        b = T.alloc_shared((block_n, 128), "float8_e4m3fn")
        s = T.alloc_fragment((block_m,), "float32")
        part = T.alloc_fragment((block_m, block_n), "float32")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(K // 128, num_stages=2):
            T.copy(A[by * block_m, k * 128], a)
            T.copy(B[bx * block_n, k * 128], b)
            for i in T.Parallel(block_m):
                s[i] = T.if_then_else(by * block_m + i < M, sa[T.min(by * block_m + i, M - 1), k], 0) * sb[bx * block_n // 128, k]
            T.gemm(a, b, c, transpose_B=True)
        for i, j in T.Parallel(block_m, block_n):
            c[i, j] = c[i, j] * s[i]
        T.copy(c, C[by * block_m, bx * block_n])
    return C

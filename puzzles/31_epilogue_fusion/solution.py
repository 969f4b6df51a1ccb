"""The solution of puzzle 31, epilogue fusion. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def linear_gelu(A, B, bias, block_m: int = 128, block_n: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    bias: T.Tensor[[N], "float32"]
    C = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(block_m, block_n):
            c[i, j] += T.if_then_else(bx * block_n + j < N, bias[bx * block_n + j], 0.0)
        for i, j in T.Parallel(block_m, block_n):
            c[i, j] = 0.5 * c[i, j] * (1.0 + T.erf(c[i, j] * 0.7071067811865476))
        T.copy(c, C[by * block_m, bx * block_n])
    return C

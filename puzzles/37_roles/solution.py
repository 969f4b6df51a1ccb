"""The solution of puzzle 37, roles. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, stages: int = 3, block_m: int = 64, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=256) as (bx, by):
        a = T.alloc_shared((stages, block_m, block_k), "float16")
        b = T.alloc_shared((stages, block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        full = T.alloc_barrier([1] * stages)
        free = T.alloc_barrier([128] * stages)
        steps = T.ceildiv(K, block_k)
        if T.get_thread_binding() >= 128:
            if T.get_thread_binding() < 160:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(free[k % stages], (k // stages) % 2 ^ 1)
                    x, y, z, n = by * block_m, bx * block_n, k * block_k, k % stages
                    T.tma_copy(A[x : x + block_m, z : z + block_k], a[n, :, :], barrier=full[n])
                    T.tma_copy(B[z : z + block_k, y : y + block_n], b[n, :, :], barrier=full[n])
                    if T.shuffle_elect(32):
                        T.mbarrier_arrive(full[k % stages])
        else:
            T.clear(c)
            for k in T.serial(steps):
                T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                T.gemm(a[k % stages, :, :], b[k % stages, :, :], c)
                T.mbarrier_arrive(free[k % stages])
            T.copy(c, C[by * block_m, bx * block_n])
    return C

"""sm_90: bulk copies, mbarriers, warp specialisation by hand."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def tma_once(A):
    A: T.Tensor[[64, 64], T.float16]
    B = T.empty((64, 64), T.float16)
    with T.Kernel(1, threads=128):
        s = T.alloc_shared((64, 64), T.float16)
        ready = T.alloc_barrier(1)
        T.tma_copy(A, s, barrier=ready)  # by one elected thread: under `if t == 0` the election itself would hang on the device
        if T.shuffle_elect(128):
            T.barrier_arrive(ready)
        T.mbarrier_wait_parity(ready, 0)
        for i, j in T.Parallel(64, 64):
            B[i, j] = s[i, j] + T.float16(1)
    return B


def tma_once_oracle(A):
    return {"out0": (A + np.float16(1)).astype(np.float16)}


@tilelang.jit
def producer_consumer(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 64, M // 64, threads=256) as (bx, by):
        a = T.alloc_shared((2, 64, 32), T.float16)
        b = T.alloc_shared((2, 32, 64), T.float16)
        c = T.alloc_fragment((64, 64), T.float32)
        full = T.alloc_barrier([128, 128])
        empty = T.alloc_barrier([128, 128])
        # One if with two sides: between two `with T.ws(…)` the compiler puts a barrier of the whole block, and the first role never gets there.
        if T.get_thread_binding() >= 128:
            for k in T.serial(K // 32):
                T.barrier_wait(empty[k % 2], ((k // 2) & 1) ^ 1)
                T.copy(A[by * 64 : by * 64 + 64, k * 32 : k * 32 + 32], a[k % 2, :, :])
                T.copy(B[k * 32 : k * 32 + 32, bx * 64 : bx * 64 + 64], b[k % 2, :, :])
                T.fence_proxy_async()  # wgmma reads what ordinary stores wrote
                T.barrier_arrive(full[k % 2])
        else:
            T.clear(c)
            for k in T.serial(K // 32):
                T.barrier_wait(full[k % 2], (k // 2) & 1)
                T.gemm(a[k % 2, :, :], b[k % 2, :, :], c)
                T.barrier_arrive(empty[k % 2])
            T.copy(c, C[by * 64, bx * 64])
    return C


@tilelang.jit
def named_barriers(A):
    A: T.Tensor[[128], T.float32]
    B = T.empty((128,), T.float32)
    with T.Kernel(1, threads=128):
        t = T.get_thread_binding()
        s = T.alloc_shared((128,), T.float32)
        if t < 64:
            s[t] = A[t] * 2.0
            T.sync_threads(1, 64)
            B[t] = s[63 - t]
        else:
            s[t] = A[t] * 3.0
            T.sync_threads(2, 64)
            B[t] = s[191 - t]
    return B


def named_barriers_oracle(A):
    return {"out0": np.concatenate([A[:64][::-1] * 2, A[64:][::-1] * 3]).astype(np.float32)}


def gemm_f32_oracle(A, B):
    return {"out0": A.astype(np.float64) @ B.astype(np.float64)}

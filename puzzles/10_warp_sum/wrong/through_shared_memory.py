"""Right sums, by way of shared memory and a barrier: one lane adds up alone while the other 31 wait."""

import tilelang
import tilelang.language as T


@tilelang.jit
def warp_sum(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
        t = T.get_thread_binding()
        lane = t % 32
        row = bx * 4 + t // 32
        total = T.alloc_var("float32", init=0.0)
        for k in T.serial(T.ceildiv(N, 32)):
            if row < M and k * 32 + lane < N:
                total += A[row, k * 32 + lane]
        totals = T.alloc_shared((128,), "float32")
        totals[t] = total
        T.sync_threads()
        if lane == 0:
            total = 0.0
            for i in T.serial(32):
                total += totals[t + i]
        if lane == 0 and row < M:
            out[row] = total
    return out

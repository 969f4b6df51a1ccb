"""Offsets 8, 4, 2, 1: the two halves of the warp never meet."""

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
        for s in T.serial(4):
            total += T.shfl_xor(total, 8 >> s)
        if lane == 0 and row < M:
            out[row] = total
    return out

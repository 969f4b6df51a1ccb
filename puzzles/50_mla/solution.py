"""The solution of puzzle 50, mla, absorbed. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def mla(Qn, Qr, C, R, block_h: int = 64, block_n: int = 32):
    B, H, S = T.const("B, H, S")
    Qn: T.Tensor[[B, H, 512], "float16"]
    Qr: T.Tensor[[B, H, 64], "float16"]
    C: T.Tensor[[B, S, 512], "float16"]
    R: T.Tensor[[B, S, 64], "float16"]
    O = T.empty((B, H, 512), "float16")
    scale = 1.44269504 * 192**-0.5
    with T.Kernel(T.ceildiv(H, block_h), B, threads=256) as (bx, b):
        qn = T.alloc_shared((block_h, 512), "float16")
        qr = T.alloc_shared((block_h, 64), "float16")
        c = T.alloc_shared((block_n, 512), "float16")
        r = T.alloc_shared((block_n, 64), "float16")
        p = T.alloc_shared((block_h, block_n), "float16")
        s = T.alloc_fragment((block_h, block_n), "float32")
        o = T.alloc_fragment((block_h, 512), "float32")
        m = T.alloc_fragment((block_h,), "float32")
        before = T.alloc_fragment((block_h,), "float32")
        now = T.alloc_fragment((block_h,), "float32")
        total = T.alloc_fragment((block_h,), "float32")
        T.copy(Qn[b, bx * block_h, 0], qn)
        T.copy(Qr[b, bx * block_h, 0], qr)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        for n in T.Pipelined(T.ceildiv(S, block_n), num_stages=1):
            T.copy(C[b, n * block_n, 0], c)
            T.copy(R[b, n * block_n, 0], r)
            T.clear(s)
            T.gemm(qn, c, s, transpose_B=True, policy=T.GemmWarpPolicy.Square)
            T.gemm(qr, r, s, transpose_B=True, policy=T.GemmWarpPolicy.Square)
            for i, j in T.Parallel(block_h, block_n):
                s[i, j] = T.if_then_else(n * block_n + j < S, s[i, j] * scale, -T.infinity("float32"))
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for i, j in T.Parallel(block_h, block_n):
                s[i, j] = T.exp2(s[i, j] - m[i])
            T.reduce_sum(s, now, dim=1)
            T.copy(s, p)
            for i in T.Parallel(block_h):
                total[i] = total[i] * T.exp2(before[i] - m[i]) + now[i]
            for i, j in T.Parallel(block_h, 512):
                o[i, j] *= T.exp2(before[i] - m[i])
            T.gemm(p, c, o, policy=T.GemmWarpPolicy.Square)
        for i, j in T.Parallel(block_h, 512):
            o[i, j] = o[i, j] / total[i]
        T.copy(o, O[b, bx * block_h, 0])
    return O

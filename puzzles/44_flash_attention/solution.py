"""The solution of puzzle 44, flashattention forward. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def attention(Q, K, V, block_m: int = 64, block_n: int = 64):
    H, M, N = T.const("H, M, N")
    Q: T.Tensor[[H, M, 64], "float16"]
    K: T.Tensor[[H, N, 64], "float16"]
    V: T.Tensor[[H, N, 64], "float16"]
    O = T.empty((H, M, 64), "float16")
    scale = 1.44269504 * 0.125
    with T.Kernel(T.ceildiv(M, block_m), H, threads=128) as (bx, h):
        q = T.alloc_shared((block_m, 64), "float16")
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        p = T.alloc_fragment((block_m, block_n), "float16")
        o = T.alloc_fragment((block_m, 64), "float32")
        m = T.alloc_fragment((block_m,), "float32")
        before = T.alloc_fragment((block_m,), "float32")
        now = T.alloc_fragment((block_m,), "float32")
        total = T.alloc_fragment((block_m,), "float32")
        T.copy(Q[h, bx * block_m, 0], q)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        seen = T.max(0, T.min(N, (bx + 1) * block_m + N - M))
        for n in T.Pipelined(T.ceildiv(seen, block_n), num_stages=1):
            T.copy(K[h, n * block_n, 0], k)
            T.copy(V[h, n * block_n, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_m, block_n):
                visible = (n * block_n + j < N) & (n * block_n + j <= bx * block_m + i + N - M)
                s[i, j] = T.if_then_else(visible, s[i, j] * scale, -T.infinity("float32"))
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for i, j in T.Parallel(block_m, block_n):
                s[i, j] = T.exp2(s[i, j] - m[i])
            T.reduce_sum(s, now, dim=1)
            for i in T.Parallel(block_m):
                total[i] = total[i] * T.exp2(before[i] - m[i]) + now[i]
            for i, j in T.Parallel(block_m, 64):
                o[i, j] *= T.exp2(before[i] - m[i])
            T.copy(s, p)
            T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(block_m, 64):
            o[i, j] = T.if_then_else(total[i] > 0, o[i, j] / total[i], 0.0)
        T.copy(o, O[h, bx * block_m, 0])
    return O

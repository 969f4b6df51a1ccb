"""The solution of puzzle 45, varlen and gqa. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def varlen(Q, K, V, starts, block_m: int = 64, block_n: int = 64):
    L, H, G, C = T.const("L, H, G, C")
    Q: T.Tensor[[L, H, G, 64], "float16"]
    K: T.Tensor[[L, H, 64], "float16"]
    V: T.Tensor[[L, H, 64], "float16"]
    starts: T.Tensor[[C], "int32"]
    O = T.empty((L, H, G, 64), "float16")
    scale = 1.44269504 * 0.125
    with T.Kernel(T.ceildiv(L, block_m), H * G, C - 1, threads=128) as (bx, h, b):
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
        first = starts[b]
        length = starts[b + 1] - first
        if bx * block_m < length:
            for i, j in T.Parallel(block_m, 64):
                q[i, j] = T.if_then_else(bx * block_m + i < length, Q[T.min(first + bx * block_m + i, L - 1), h // G, h % G, j], 0)
            T.clear(o)
            T.clear(total)
            T.fill(m, -1e30)
            for n in T.serial(T.ceildiv(length, block_n)):
                T.copy(K[first + n * block_n : first + (n + 1) * block_n, h // G, :], k)
                T.copy(V[first + n * block_n : first + (n + 1) * block_n, h // G, :], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_m, block_n):
                    s[i, j] = T.if_then_else(n * block_n + j < length, s[i, j] * scale, -T.infinity("float32"))
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
                if bx * block_m + i < length:
                    O[first + bx * block_m + i, h // G, h % G, j] = o[i, j] / total[i]
    return O

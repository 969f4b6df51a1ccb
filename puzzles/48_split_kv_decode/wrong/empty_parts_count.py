"""A part without keys says 0 for its log-sum, and so takes weight from the others."""

import tilelang
import tilelang.language as T


@tilelang.jit
def decode(Q, K, V, splits: int = 4, block_n: int = 64):
    B, G, S = T.const("B, G, S")
    Q: T.Tensor[[B, G, 64], "float16"]
    K: T.Tensor[[B, S, 64], "float16"]
    V: T.Tensor[[B, S, 64], "float16"]
    O = T.empty((B, G, 64), "float32")
    part = T.alloc_global((B, splits, G, 64), "float32")
    lse = T.alloc_global((B, splits, G), "float32")
    scale = 1.44269504 * 0.125
    share = T.ceildiv(T.ceildiv(S, splits), block_n) * block_n
    with T.Kernel(splits, B, threads=128) as (x, b):
        q = T.alloc_shared((G, 64), "float16")
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        p = T.alloc_shared((G, block_n), "float16")
        s = T.alloc_fragment((G, block_n), "float32")
        o = T.alloc_fragment((G, 64), "float32")
        m = T.alloc_fragment((G,), "float32")
        before = T.alloc_fragment((G,), "float32")
        now = T.alloc_fragment((G,), "float32")
        total = T.alloc_fragment((G,), "float32")
        T.copy(Q[b, :, :], q)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        for n in T.serial(share // block_n):
            at = x * share + n * block_n
            if at < S:
                T.copy(K[b, at : at + block_n, :], k)
                T.copy(V[b, at : at + block_n, :], v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True)
                for i, j in T.Parallel(G, block_n):
                    s[i, j] = T.if_then_else(at + j < S, s[i, j] * scale, -T.infinity("float32"))
                T.copy(m, before)
                T.reduce_max(s, m, dim=1, clear=False)
                for i, j in T.Parallel(G, block_n):
                    s[i, j] = T.exp2(s[i, j] - m[i])
                T.reduce_sum(s, now, dim=1)
                for i in T.Parallel(G):
                    total[i] = total[i] * T.exp2(before[i] - m[i]) + now[i]
                for i, j in T.Parallel(G, 64):
                    o[i, j] *= T.exp2(before[i] - m[i])
                T.copy(s, p)
                T.gemm(p, v, o)
        for i, j in T.Parallel(G, 64):
            part[b, x, i, j] = T.if_then_else(total[i] > 0, o[i, j] / total[i], 0.0)
        for i in T.Parallel(G):
            lse[b, x, i] = T.if_then_else(total[i] > 0, m[i] + T.log2(total[i]), 0.0)
    with T.Kernel(B, threads=128) as b:
        top = T.alloc_fragment((G,), "float32")
        sum_ = T.alloc_fragment((G,), "float32")
        out = T.alloc_fragment((G, 64), "float32")
        T.fill(top, -1e30)
        T.clear(sum_)
        T.clear(out)
        for x in T.serial(splits):
            for i in T.Parallel(G):
                top[i] = T.max(top[i], lse[b, x, i])
        for x in T.serial(splits):
            for i in T.Parallel(G):
                sum_[i] += T.exp2(lse[b, x, i] - top[i])
            for i, j in T.Parallel(G, 64):
                out[i, j] += T.exp2(lse[b, x, i] - top[i]) * part[b, x, i, j]
        for i, j in T.Parallel(G, 64):
            O[b, i, j] = out[i, j] / sum_[i]
    return O

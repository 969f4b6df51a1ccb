"""Counts whole tiles only: the tokens of the last, partly filled one are never seen."""

import tilelang
import tilelang.language as T


@tilelang.jit
def paged(Q, K, V, table, lengths, block_n: int = 64):
    B, G, P, page, R = T.const("B, G, P, page, R")
    Q: T.Tensor[[B, G, 64], "float16"]
    K: T.Tensor[[P, page, 64], "float16"]
    V: T.Tensor[[P, page, 64], "float16"]
    table: T.Tensor[[B, R], "int32"]
    lengths: T.Tensor[[B], "int32"]
    O = T.empty((B, G, 64), "float32")
    scale = 1.44269504 * 0.125
    with T.Kernel(B, threads=128) as b:
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
        for n in T.serial(T.max(lengths[b] // block_n, 1)):
            at = n * block_n
            slot = table[b, at // page]
            T.copy(K[slot, at % page : at % page + block_n, :], k)
            T.copy(V[slot, at % page : at % page + block_n, :], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True)
            for i, j in T.Parallel(G, block_n):
                s[i, j] = T.if_then_else(at + j < lengths[b], s[i, j] * scale, -T.infinity("float32"))
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
            O[b, i, j] = T.if_then_else(total[i] > 0, o[i, j] / total[i], 0.0)
    return O

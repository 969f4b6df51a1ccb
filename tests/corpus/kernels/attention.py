"""Attention: two products around an online softmax."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[3])
def flash_attention(heads, seq, dim, causal=False, block_M=64, block_N=64, num_stages=1):
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = (heads, seq, dim)

    @T.macro
    def rescale(acc, m, before, s):
        for i, j in T.Parallel(block_M, dim):
            acc[i, j] *= T.exp2((before[i] - m[i]) * scale)
        for i in T.Parallel(block_M):
            s[i] *= T.exp2((before[i] - m[i]) * scale)

    @T.prim_func
    def main(Q: T.Tensor(shape, "float16"), K: T.Tensor(shape, "float16"), V: T.Tensor(shape, "float16"), O: T.Tensor(shape, "float16")):
        with T.Kernel(T.ceildiv(seq, block_M), heads, threads=128) as (bx, by):
            q = T.alloc_shared((block_M, dim), "float16")
            k = T.alloc_shared((block_N, dim), "float16")
            v = T.alloc_shared((block_N, dim), "float16")
            scores = T.alloc_fragment((block_M, block_N), "float32")
            p = T.alloc_fragment((block_M, block_N), "float16")
            acc = T.alloc_fragment((block_M, dim), "float32")
            m = T.alloc_fragment((block_M,), "float32")
            before = T.alloc_fragment((block_M,), "float32")
            s = T.alloc_fragment((block_M,), "float32")
            t = T.alloc_fragment((block_M,), "float32")
            T.copy(Q[by, bx * block_M : (bx + 1) * block_M, :], q)
            T.clear(acc)
            T.clear(s)
            T.fill(m, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv(seq, block_N), num_stages=num_stages):
                T.copy(K[by, n * block_N : (n + 1) * block_N, :], k)
                if causal:
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.if_then_else(bx * block_M + i >= n * block_N + j, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(q, k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(m, before)
                T.reduce_max(scores, m, dim=1, clear=False)
                for i, j in T.Parallel(block_M, block_N):
                    scores[i, j] = T.exp2((scores[i, j] - m[i]) * scale)
                rescale(acc, m, before, s)
                T.reduce_sum(scores, t, dim=1)
                for i in T.Parallel(block_M):
                    s[i] += t[i]
                T.copy(scores, p)
                T.copy(V[by, n * block_N : (n + 1) * block_N, :], v)
                T.gemm(p, v, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, dim):
                acc[i, j] /= s[i]
            T.copy(acc, O[by, bx * block_M : (bx + 1) * block_M, :])

    return main


def _attention(Q, K, V, causal):
    q, k, v = (x.astype(np.float64) for x in (Q, K, V))
    w = q @ k.transpose(0, 2, 1) / np.sqrt(Q.shape[-1])
    if causal:
        w = np.where(np.tril(np.ones(w.shape[1:], bool)), w, -np.inf)
    e = np.exp(w - w.max(-1, keepdims=True))
    return {"out0": (e / e.sum(-1, keepdims=True) @ v).astype(np.float16)}


def attention_oracle(Q, K, V):
    return _attention(Q, K, V, False)


def causal_attention_oracle(Q, K, V):
    return _attention(Q, K, V, True)


@tilelang.jit
def decode_gqa(Q, K, V, lengths, scale: float = 0.125):
    """One query token a sequence; several query heads share one key head; lengths come from data."""
    B, H, G, S, D = T.const("B, H, G, S, D")
    Q: T.Tensor[[B, H, G, D], T.float16]
    K: T.Tensor[[B, H, S, D], T.float16]
    V: T.Tensor[[B, H, S, D], T.float16]
    lengths: T.Tensor[[B], T.int32]
    O = T.empty((B, H, G, D), T.float32)
    with T.Kernel(H, B, threads=128) as (h, b):
        q = T.alloc_shared((G, D), T.float16)
        k = T.alloc_shared((32, D), T.float16)
        w = T.alloc_fragment((G, 32), T.float32)
        p = T.alloc_shared((G, 32), T.float16)
        acc = T.alloc_fragment((G, D), T.float32)
        m = T.alloc_fragment((G,), T.float32)
        old = T.alloc_fragment((G,), T.float32)
        s = T.alloc_fragment((G,), T.float32)
        t = T.alloc_fragment((G,), T.float32)
        T.copy(Q[b, h, :, :], q)
        T.clear(acc)
        T.clear(s)
        T.fill(m, -1e30)
        for n in T.serial(T.ceildiv(lengths[b], 32)):
            T.copy(K[b, h, n * 32 : n * 32 + 32, :], k)
            T.clear(w)
            T.gemm(q, k, w, transpose_B=True)
            for i, j in T.Parallel(G, 32):
                w[i, j] = T.if_then_else(n * 32 + j < lengths[b], w[i, j] * scale, -1e30)
            T.copy(m, old)
            T.reduce_max(w, m, dim=1, clear=False)
            for i, j in T.Parallel(G, 32):
                w[i, j] = T.exp(w[i, j] - m[i])
            T.reduce_sum(w, t, dim=1)
            for i in T.Parallel(G):
                s[i] = s[i] * T.exp(old[i] - m[i]) + t[i]
            for i, j in T.Parallel(G, D):
                acc[i, j] *= T.exp(old[i] - m[i])
            T.copy(w, p)
            T.copy(V[b, h, n * 32 : n * 32 + 32, :], k)
            T.gemm(p, k, acc)
        for i, j in T.Parallel(G, D):
            acc[i, j] = T.if_then_else(s[i] > 0, acc[i, j] / s[i], 0)
        T.copy(acc, O[b, h, :, :])
    return O


def decode_gqa_inputs(rng):
    f = lambda *s: rng.standard_normal(s, dtype=np.float32).astype(np.float16)  # noqa: E731
    return {"Q": f(3, 2, 16, 64), "K": f(3, 2, 96, 64), "V": f(3, 2, 96, 64), "lengths": np.array([1, 96, 50], np.int32)}


def decode_gqa_oracle(Q, K, V, lengths):
    out = np.zeros(Q.shape)
    for b, n in enumerate(lengths):
        w = Q[b].astype(np.float64) @ K[b, :, :n].astype(np.float64).transpose(0, 2, 1) * 0.125
        e = np.exp(w - w.max(-1, keepdims=True))
        out[b] = e / e.sum(-1, keepdims=True) @ V[b, :, :n].astype(np.float64)
    return {"out0": out}

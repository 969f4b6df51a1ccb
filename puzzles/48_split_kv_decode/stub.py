# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("48")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands; the first launch leaves a part of the result and its log-sum for each split. The second launch takes the first part for the whole.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行；第一次启动为每一份留下部分结果和它的对数和。第二次启动把第一份当成了全部。

# %% tilelab={"role": "solution"}
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
            part[b, x, i, j] = o[i, j] / total[i]  # and a part without keys?
        for i in T.Parallel(G):
            lse[b, x, i] = 0.0  # what must the second launch know of this part?
    with T.Kernel(B, threads=128) as b:
        top = T.alloc_fragment((G,), "float32")
        sum_ = T.alloc_fragment((G,), "float32")
        out = T.alloc_fragment((G, 64), "float32")
        T.fill(top, -1e30)
        T.clear(sum_)
        T.clear(out)
        T.fill(sum_, 1.0)
        for i, j in T.Parallel(G, 64):
            out[i, j] = part[b, 0, i, j]  # bring all parts together
        for i, j in T.Parallel(G, 64):
            O[b, i, j] = out[i, j] / sum_[i]
    return O


# %% [markdown] lang="en"
# **Try it** with 30 keys in four parts: three parts have no key at all.

# %% [markdown] lang="zh"
# **试一试** 30 个 key 分成四份：其中三份一个 key 也没有。

# %%
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((1, n, 64)).astype(np.float16) for n in (16, 30, 30))
trace = tilelab.simulate(decode, q, k, v)
w = np.exp(q[0].astype(np.float64) @ k[0].T.astype(np.float64) / 8)
print("largest error:", np.abs(trace.result[0] - w / w.sum(axis=1, keepdims=True) @ v[0]).max())
trace.findings

# %%
puzzle.check(decode)

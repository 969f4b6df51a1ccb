# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("49")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and reads no keys. Everything of puzzle 48's loop is there but where the keys are.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是一个 key 也没读。第 48 题的循环都在，缺的只是 key 在哪里。

# %% tilelab={"role": "solution"}
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
        for n in T.serial(T.ceildiv(lengths[b], block_n)):
            at = n * block_n
            T.clear(k)  # the keys and values of tokens at …, from their page
            T.clear(v)
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


# %% [markdown] lang="en"
# **Try it** with pages of 192 tokens: three tiles a page.

# %% [markdown] lang="zh"
# **试一试**每页 192 个 token：一页有三个分块。

# %%
rng = np.random.default_rng(0)
q = rng.standard_normal((2, 16, 64)).astype(np.float16)
k, v = (rng.standard_normal((5, 192, 64)).astype(np.float16) for _ in range(2))
table = np.array([[3, 1], [4, 0]], np.int32)
lengths = np.array([1, 250], np.int32)
trace = tilelab.simulate(paged, q, k, v, table, lengths)
print("one token returns its own value:", np.allclose(trace.result[0, 0], v[3, 0]))
trace.findings

# %%
puzzle.check(paged)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("54")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and every result is 0. A block has one query with all its heads; the softmax is there. Which rows come in, and which count, is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是结果全是 0。一个线程块负责一个 query 的所有头；softmax 已经写好。哪些行进来、哪些算数，由你来写。

# %% tilelab={"role": "solution"}
@tilelang.jit
def sparse_mla(Q, KV, ids, block_n: int = 32):
    M, H, N, S = T.const("M, H, N, S")
    Q: T.Tensor[[M, H, 192], "float16"]
    KV: T.Tensor[[N, 192], "float16"]
    ids: T.Tensor[[M, S], "int32"]
    O = T.empty((M, H, 128), "float16")
    scale = 1.44269504 * 192**-0.5
    with T.Kernel(M, threads=128) as x:
        q = T.alloc_shared((H, 192), "float16")
        kv = T.alloc_shared((block_n, 192), "float16")
        v = T.alloc_shared((block_n, 128), "float16")
        p = T.alloc_shared((H, block_n), "float16")
        s = T.alloc_fragment((H, block_n), "float32")
        o = T.alloc_fragment((H, 128), "float32")
        m = T.alloc_fragment((H,), "float32")
        before = T.alloc_fragment((H,), "float32")
        now = T.alloc_fragment((H,), "float32")
        total = T.alloc_fragment((H,), "float32")
        T.copy(Q[x, :, :], q)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        for n in T.serial(T.ceildiv(S, block_n)):
            T.clear(kv)  # the rows that the list names
            for i, j in T.Parallel(block_n, 128):
                v[i, j] = kv[i, j]
            T.clear(s)
            T.gemm(q, kv, s, transpose_B=True)
            T.fill(s, -T.infinity("float32"))  # which of the entries count?
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for h, i in T.Parallel(H, block_n):
                s[h, i] = T.exp2(s[h, i] - m[h])
            T.reduce_sum(s, now, dim=1)
            T.copy(s, p)
            for h in T.Parallel(H):
                total[h] = total[h] * T.exp2(before[h] - m[h]) + now[h]
            for h, j in T.Parallel(H, 128):
                o[h, j] *= T.exp2(before[h] - m[h])
            T.gemm(p, v, o)
        for h, j in T.Parallel(H, 128):
            o[h, j] = T.if_then_else(total[h] > 0, o[h, j] / total[h], 0.0)
        T.copy(o, O[x, :, :])
    return O


# %% [markdown] lang="en"
# **Try it** with a list that has one valid entry.

# %% [markdown] lang="zh"
# **试一试**清单上只有一个有效条目。

# %%
rng = np.random.default_rng(0)
q, kv = rng.standard_normal((2, 16, 192)).astype(np.float16), rng.standard_normal((50, 192)).astype(np.float16)
ids = np.full((2, 40), -1, np.int32)
ids[0, 7] = 30
trace = tilelab.simulate(sparse_mla, q, kv, ids)
print("its own value:", np.array_equal(trace.result[0, 3], kv[30, :128]), "and nothing:", np.abs(trace.result[1]).max())
trace.findings

# %%
puzzle.check(sparse_mla)

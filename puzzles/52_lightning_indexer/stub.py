# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("52")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and all scores are 0. A block has 64 keys and one query with all its heads.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是得分全是 0。一个线程块负责 64 个 key，以及一个 query 的所有头。

# %% tilelab={"role": "solution"}
@tilelang.jit
def index_scores(Q, K, W, block_n: int = 64):
    M, H, N, D = T.const("M, H, N, D")
    Q: T.Tensor[[M, H, D], "float8_e4m3fn"]
    K: T.Tensor[[N, D], "float8_e4m3fn"]
    W: T.Tensor[[M, H], "float32"]
    S = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), M, threads=128) as (bx, m):
        q = T.alloc_shared((H, D), "float8_e4m3fn")
        k = T.alloc_shared((block_n, D), "float8_e4m3fn")
        s = T.alloc_fragment((block_n, H), "float32")
        out = T.alloc_fragment((block_n,), "float32")
        T.copy(Q[m, :, :], q)
        T.copy(K[bx * block_n, 0], k)
        T.clear(out)  # all heads' products, ReLU, weights, and the sum over heads
        T.copy(out, S[m, bx * block_n : (bx + 1) * block_n])
    return S


# %% [markdown] lang="en"
# **Try it** with weights of both signs.

# %% [markdown] lang="zh"
# **试一试**有正有负的权重。

# %%
import ml_dtypes

rng = np.random.default_rng(0)
q, k = (rng.standard_normal(s).astype(ml_dtypes.float8_e4m3fn) for s in ((5, 32, 128), (100, 128)))
w = rng.standard_normal((5, 32), dtype=np.float32)
trace = tilelab.simulate(index_scores, q, k, w)
products = np.maximum(np.einsum("mhd,nd->mhn", q.astype(float), k.astype(float)), 0)
print("largest error:", np.abs(trace.result - np.einsum("mhn,mh->mn", products, w)).max())
trace.findings

# %%
puzzle.check(index_scores)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("43")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns zeros. The queries of the block are in `q`, the result grows in `o`; the walk along the keys is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是返回零。本块的 query 在 `q` 里，结果在 `o` 里累加；沿着 key 走的那一段由你来写。

# %% tilelab={"role": "solution"}
@tilelang.jit
def two_products(Q, K, V, block_m: int = 64, block_n: int = 64):
    M, N = T.const("M, N")
    Q: T.Tensor[[M, 64], "float16"]
    K: T.Tensor[[N, 64], "float16"]
    V: T.Tensor[[N, 64], "float16"]
    O = T.empty((M, 64), "float32")
    with T.Kernel(T.ceildiv(M, block_m), threads=128) as bx:
        q = T.alloc_shared((block_m, 64), "float16")
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        p = T.alloc_fragment((block_m, block_n), "float16")
        o = T.alloc_fragment((block_m, 64), "float32")
        T.copy(Q[bx * block_m, 0], q)
        T.clear(o)
        ### BEGIN SOLUTION
        #| # For each tile of keys: scores, then scores times values.
        for n in T.Pipelined(T.ceildiv(N, block_n), num_stages=1):
            T.copy(K[n * block_n, 0], k)
            T.copy(V[n * block_n, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(s, p)
            T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
        ### END SOLUTION
        T.copy(o, O[bx * block_m, 0])
    return O


# %% [markdown] lang="en"
# **Try it** with 130 keys: two tiles and a bit.

# %% [markdown] lang="zh"
# **试一试** 130 个 key：两个多分块。

# %%
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((n, 64)).astype(np.float16) for n in (70, 130, 130))
trace = tilelab.simulate(two_products, q, k, v)
wide = [x.astype(np.float64) for x in (q, k, v)]
print("largest error:", np.abs(trace.result - wide[0] @ wide[1].T @ wide[2]).max())
trace.findings

# %%
puzzle.check(two_products)

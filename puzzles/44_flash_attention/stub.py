# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("44")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns zeros. The loop over keys, the first product and the way out are there; the mask and the softmax are yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是返回零。沿 key 的循环、第一次乘积和写回都已写好；掩码和 softmax 由你来写。

# %% tilelab={"role": "solution"}
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
        seen = N  # must the block really look at all of them?
        for n in T.Pipelined(T.ceildiv(seen, block_n), num_stages=1):
            T.copy(K[h, n * block_n, 0], k)
            T.copy(V[h, n * block_n, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            # Mask, new maximum, weights, new total; rescale what you have; then the second product.
        for i, j in T.Parallel(block_m, 64):
            o[i, j] = T.if_then_else(total[i] > 0, o[i, j] / total[i], 0.0)
        T.copy(o, O[h, bx * block_m, 0])
    return O


# %% [markdown] lang="en"
# **Try it** with 100 queries for 70 keys: the first 30 queries may see no key at all, and their result is 0.

# %% [markdown] lang="zh"
# **试一试** 100 个 query 对 70 个 key：前 30 个 query 一个 key 也看不到，它们的结果是 0。

# %%
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((2, n, 64)).astype(np.float16) for n in (100, 70, 70))
trace = tilelab.simulate(attention, q, k, v)
print(np.abs(trace.result[0, :, 0].astype(np.float32)).round(2)[25:40])
trace.findings

# %%
puzzle.check(attention)

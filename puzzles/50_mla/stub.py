# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("50")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and takes the mean of all tokens: every score is 0. The loop, the softmax and the second product are there.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是对所有 token 取平均：每个得分都是 0。循环、softmax 和第二次乘积都已写好。

# %% tilelab={"role": "solution"}
@tilelang.jit
def mla(Qn, Qr, C, R, block_h: int = 64, block_n: int = 32):
    B, H, S = T.const("B, H, S")
    Qn: T.Tensor[[B, H, 512], "float16"]
    Qr: T.Tensor[[B, H, 64], "float16"]
    C: T.Tensor[[B, S, 512], "float16"]
    R: T.Tensor[[B, S, 64], "float16"]
    O = T.empty((B, H, 512), "float16")
    scale = 1.44269504 * 192**-0.5
    with T.Kernel(T.ceildiv(H, block_h), B, threads=256) as (bx, b):
        qn = T.alloc_shared((block_h, 512), "float16")
        qr = T.alloc_shared((block_h, 64), "float16")
        c = T.alloc_shared((block_n, 512), "float16")
        r = T.alloc_shared((block_n, 64), "float16")
        p = T.alloc_shared((block_h, block_n), "float16")
        s = T.alloc_fragment((block_h, block_n), "float32")
        o = T.alloc_fragment((block_h, 512), "float32")
        m = T.alloc_fragment((block_h,), "float32")
        before = T.alloc_fragment((block_h,), "float32")
        now = T.alloc_fragment((block_h,), "float32")
        total = T.alloc_fragment((block_h,), "float32")
        T.copy(Qn[b, bx * block_h, 0], qn)
        T.copy(Qr[b, bx * block_h, 0], qr)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        for n in T.Pipelined(T.ceildiv(S, block_n), num_stages=1):
            T.copy(C[b, n * block_n, 0], c)
            T.copy(R[b, n * block_n, 0], r)
            T.clear(s)
            # The scores: what the latent part says and what the rotary part says; and which tokens are there?
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for i, j in T.Parallel(block_h, block_n):
                s[i, j] = T.exp2(s[i, j] - m[i])
            T.reduce_sum(s, now, dim=1)
            T.copy(s, p)
            for i in T.Parallel(block_h):
                total[i] = total[i] * T.exp2(before[i] - m[i]) + now[i]
            for i, j in T.Parallel(block_h, 512):
                o[i, j] *= T.exp2(before[i] - m[i])
            T.gemm(p, c, o, policy=T.GemmWarpPolicy.Square)
        for i, j in T.Parallel(block_h, 512):
            o[i, j] = o[i, j] / total[i]
        T.copy(o, O[b, bx * block_h, 0])
    return O


# %% [markdown] lang="en"
# **Try it** with one token: the result is its latent vector.

# %% [markdown] lang="zh"
# **试一试**只有一个 token：结果就是它的潜向量。

# %%
rng = np.random.default_rng(0)
qn, qr, c, r = (rng.standard_normal((1, n, d)).astype(np.float16) for n, d in ((64, 512), (64, 64), (1, 512), (1, 64)))
trace = tilelab.simulate(mla, qn, qr, c, r)
print("the token's own vector:", np.array_equal(trace.result[0, 5], c[0, 0]))
trace.findings

# %%
puzzle.check(mla)

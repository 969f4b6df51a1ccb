# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("47")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and leaves `dQ` as it was. Each block has a tile of keys, and so knows only a part of each sum.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `dQ` 原封不动。每个线程块只有一块 key，因此每个和它只知道一部分。

# %% tilelab={"role": "solution"}
@tilelang.jit
def backward_q(Q, K, V, dO, lse, delta, dQ, block_m: int = 64, block_n: int = 64):
    H, M, N = T.const("H, M, N")
    Q: T.Tensor[[H, M, 64], "float16"]
    K: T.Tensor[[H, N, 64], "float16"]
    V: T.Tensor[[H, N, 64], "float16"]
    dO: T.Tensor[[H, M, 64], "float16"]
    lse: T.Tensor[[H, M], "float32"]
    delta: T.Tensor[[H, M], "float32"]
    dQ: T.Tensor[[H, M, 64], "float32"]
    scale = 0.125
    with T.Kernel(T.ceildiv(N, block_n), H, threads=128) as (bx, h):
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        q = T.alloc_shared((block_m, 64), "float16")
        do = T.alloc_shared((block_m, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        ds = T.alloc_fragment((block_m, block_n), "float32")
        half = T.alloc_fragment((block_m, block_n), "float16")
        dq = T.alloc_fragment((block_m, 64), "float32")
        l = T.alloc_fragment((block_m,), "float32")
        d = T.alloc_fragment((block_m,), "float32")
        T.copy(K[h, bx * block_n, 0], k)
        T.copy(V[h, bx * block_n, 0], v)
        for n in T.serial(T.ceildiv(M, block_m)):
            T.copy(Q[h, n * block_m, 0], q)
            T.copy(dO[h, n * block_m, 0], do)
            T.copy(lse[h, n * block_m : (n + 1) * block_m], l)
            T.copy(delta[h, n * block_m : (n + 1) * block_m], d)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.clear(ds)
            T.gemm(do, v, ds, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            # The scores' gradient, times the keys, is this block's part of dQ: add it to what the other blocks add.


# %% [markdown] lang="en"
# **Try it** with dQ = 1 everywhere: the gradient is added on top.

# %% [markdown] lang="zh"
# **试一试**：先让 dQ 处处为 1，梯度要加在上面。

# %%
rng = np.random.default_rng(0)
q, k, v, do = (rng.standard_normal((1, n, 64)).astype(np.float16) for n in (100, 70, 70, 100))
wide = [x.astype(np.float64)[0] for x in (q, k, v, do)]
s = wide[0] @ wide[1].T / 8
lse = np.log(np.exp(s).sum(axis=1))
delta = (np.exp(s - lse[:, None]) @ wide[2] * wide[3]).sum(axis=1)
dq = np.ones((1, 100, 64), np.float32)
trace = tilelab.simulate(backward_q, q, k, v, do, lse[None].astype(np.float32), delta[None].astype(np.float32), dq)
p = np.exp(s - lse[:, None])
want = 1 + p * (wide[3] @ wide[2].T - delta[:, None]) / 8 @ wide[1]
print("largest error:", np.abs(trace.outputs.get("dQ", dq)[0] - want).max())
trace.findings

# %%
puzzle.check(backward_q)

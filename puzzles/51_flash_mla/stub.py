# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("51")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and its right half is wrong: the second warpgroup neither waits for the weights nor uses them. Producer and first warpgroup are there.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，但右半边是错的：第二个 warpgroup 既不等权重，也不用它们。生产者和第一个 warpgroup 都已写好。

# %% tilelab={"role": "solution"}
@tilelang.jit
def flash_mla(Q, KV, heads: int = 64, tokens: int = 64):
    B, H, S = T.const("B, H, S")
    Q: T.Tensor[[B, H, 576], "float16"]
    KV: T.Tensor[[B, S, 576], "float16"]
    O = T.empty((B, H, 512), "float16")
    scale = 1.44269504 * 192**-0.5
    with T.Kernel(T.ceildiv(H, heads), B, threads=384) as (bx, b):
        q = T.alloc_shared((heads, 512), "float16")
        qr = T.alloc_shared((heads, 64), "float16")
        left = T.alloc_shared((tokens, 256), "float16")
        right = T.alloc_shared((tokens, 256), "float16")
        rope = T.alloc_shared((tokens, 64), "float16")
        p = T.alloc_shared((heads, tokens), "float16")
        shrink = T.alloc_shared((heads,), "float32")
        s = T.alloc_fragment((heads, tokens), "float32")
        o0 = T.alloc_fragment((heads, 256), "float32")
        o1 = T.alloc_fragment((heads, 256), "float32")
        m = T.alloc_fragment((heads,), "float32")
        before = T.alloc_fragment((heads,), "float32")
        now = T.alloc_fragment((heads,), "float32")
        total = T.alloc_fragment((heads,), "float32")
        c = T.alloc_fragment((heads,), "float32")
        loaded = T.alloc_barrier([1])
        full = T.alloc_barrier([1])
        free = T.alloc_barrier([256])
        made = T.alloc_barrier([128])
        used = T.alloc_barrier([128])
        row = bx * heads
        steps = T.ceildiv(S, tokens)
        tx = T.get_thread_binding()
        if tx >= 256:
            if tx < 288:
                T.tma_copy(Q[b, row : row + heads, 0:512], q, barrier=loaded[0])
                T.tma_copy(Q[b, row : row + heads, 512:576], qr, barrier=loaded[0])
                if T.shuffle_elect(32):
                    T.mbarrier_arrive(loaded[0])
                for n in T.serial(steps):
                    T.mbarrier_wait_parity(free[0], n % 2 ^ 1)
                    T.tma_copy(KV[b, n * tokens : (n + 1) * tokens, 0:256], left, barrier=full[0])
                    T.tma_copy(KV[b, n * tokens : (n + 1) * tokens, 256:512], right, barrier=full[0])
                    T.tma_copy(KV[b, n * tokens : (n + 1) * tokens, 512:576], rope, barrier=full[0])
                    if T.shuffle_elect(32):
                        T.mbarrier_arrive(full[0])
        elif tx < 128:
            T.clear(o0)
            T.clear(total)
            T.fill(m, -1e30)
            T.mbarrier_wait_parity(loaded[0], 0)
            for n in T.serial(steps):
                T.mbarrier_wait_parity(full[0], n % 2)
                T.clear(s)
                T.gemm(q[:, 0:256], left, s, transpose_B=True)
                T.gemm(q[:, 256:512], right, s, transpose_B=True)
                T.gemm(qr, rope, s, transpose_B=True)
                for i, j in T.Parallel(heads, tokens):
                    s[i, j] = T.if_then_else(n * tokens + j < S, s[i, j] * scale, -T.infinity("float32"))
                T.copy(m, before)
                T.reduce_max(s, m, dim=1, clear=False)
                for i, j in T.Parallel(heads, tokens):
                    s[i, j] = T.exp2(s[i, j] - m[i])
                T.reduce_sum(s, now, dim=1)
                T.mbarrier_wait_parity(used[0], n % 2 ^ 1)
                for i in T.Parallel(heads):
                    c[i] = T.exp2(before[i] - m[i])
                    total[i] = total[i] * c[i] + now[i]
                    shrink[i] = c[i]
                T.copy(s, p)
                T.fence_proxy_async()
                T.mbarrier_arrive(made[0])
                for i, j in T.Parallel(heads, 256):
                    o0[i, j] *= c[i]
                T.sync_threads(1, 128)
                T.gemm(p, left, o0)
                T.mbarrier_arrive(free[0])
            T.mbarrier_wait_parity(used[0], steps % 2 ^ 1)
            for i in T.Parallel(heads):
                shrink[i] = total[i]
            T.mbarrier_arrive(made[0])
            for i, j in T.Parallel(heads, 256):
                if row + i < H:
                    O[b, row + i, j] = o0[i, j] / total[i]
        else:
            T.clear(o1)
            for n in T.serial(steps):
                T.mbarrier_wait_parity(made[0], n % 2)
                # The weights are there: what is to be done with them?
                T.mbarrier_arrive(used[0])
                T.mbarrier_arrive(free[0])
            T.mbarrier_wait_parity(made[0], steps % 2)
            for i, j in T.Parallel(heads, 256):
                if row + i < H:
                    O[b, row + i, 256 + j] = o1[i, j] / shrink[i]
    return O


# %% [markdown] lang="en"
# **Try it** with 200 tokens: three tiles and a bit.

# %% [markdown] lang="zh"
# **试一试** 200 个 token：三块多一点。

# %%
rng = np.random.default_rng(0)
q, kv = rng.standard_normal((1, 64, 576)).astype(np.float16), rng.standard_normal((1, 200, 576)).astype(np.float16)
trace = tilelab.simulate(flash_mla, q, kv, params=tilelab.SimParams(target="sm_90"))
w = np.exp(q[0].astype(float) @ kv[0].T.astype(float) / np.sqrt(192))
print("largest error:", np.abs(trace.result[0] - w / w.sum(axis=1, keepdims=True) @ kv[0, :, :512]).max())
[f for f in trace.findings if f.severity != "info"]

# %%
puzzle.check(flash_mla)

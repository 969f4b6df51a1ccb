# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("60")
puzzle

# %% [markdown] lang="en"
# **Your layer.** It runs as it stands: the gate chooses and the router sorts, and the answer is 0. The two products and the way back are yours.

# %% [markdown] lang="zh"
# **你的层。** 现在它就能运行：门控会选，路由会排，但答案是 0。两次乘积和回程由你来写。

# %% tilelab={"role": "solution"}
@tilelang.jit
def moe(X, Wg, W1, W2, tile: int = 64):
    M, F = T.const("M, F")
    X: T.Tensor[[M, 64], "float16"]
    Wg: T.Tensor[[64, 16], "float16"]
    W1: T.Tensor[[16, 2, 64, F], "float16"]
    W2: T.Tensor[[16, F, 64], "float16"]
    Y = T.empty((M, 64), "float32")
    ids = T.alloc_global((M, 2), "int32")
    weight = T.alloc_global((M, 2), "float32")
    starts = T.alloc_global((17,), "int32")
    source = T.alloc_global((2 * M,), "int32")  # the entry (token · 2 + choice) of each sorted row
    H = T.alloc_global((2 * M, F), "float16")
    Z = T.alloc_global((M, 2, 64), "float32")
    # Gate: the two best of 16 experts, and their softmax.
    with T.Kernel(T.ceildiv(M, tile), threads=128) as bx:
        x = T.alloc_shared((tile, 64), "float16")
        g = T.alloc_shared((64, 16), "float16")
        s = T.alloc_fragment((tile, 16), "float32")
        at = T.alloc_fragment((tile, 16), "int32")
        best = T.alloc_fragment((tile,), "float32")
        second = T.alloc_fragment((tile,), "float32")
        first = T.alloc_fragment((tile,), "int32")
        T.copy(X[bx * tile, 0], x)
        T.copy(Wg, g)
        T.clear(s)
        T.gemm(x, g, s, policy=T.GemmWarpPolicy.FullRow)
        for c in T.unroll(2):
            if c == 0:
                T.reduce_max(s, best, dim=1)
            else:
                T.copy(best, second)
                T.reduce_max(s, best, dim=1)
            for i, j in T.Parallel(tile, 16):
                at[i, j] = T.if_then_else(s[i, j] == best[i], j, 16)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(tile, 16):
                if j == first[i]:
                    s[i, j] = -T.infinity("float32")
            for i in T.Parallel(tile):
                if bx * tile + i < M:
                    ids[bx * tile + i, c] = first[i]
        for i in T.Parallel(tile):
            if bx * tile + i < M:
                weight[bx * tile + i, 0] = 1.0 / (1.0 + T.exp(best[i] - second[i]))
                weight[bx * tile + i, 1] = 1.0 / (1.0 + T.exp(second[i] - best[i]))
    # Route: the entries of each expert, in order.
    with T.Kernel(16, threads=128) as e:
        below = T.alloc_fragment((128,), "int32")
        before = T.alloc_fragment((1,), "int32")
        mine = T.alloc_shared((128,), "int32")
        rank = T.alloc_shared((128,), "int32")
        count = T.alloc_var("int32")
        T.clear(before)
        for n in T.serial(T.ceildiv(2 * M, 128)):
            for i in T.Parallel(128):
                below[i] = 0
                if n * 128 + i < 2 * M:
                    if ids[(n * 128 + i) // 2, (n * 128 + i) % 2] < e:
                        below[i] = 1
            T.reduce_sum(below, before, dim=0, clear=False)
        count = before[0]
        if T.get_thread_binding() == 0:
            starts[e] = count
        for n in T.serial(T.ceildiv(2 * M, 128)):
            for i in T.Parallel(128):
                mine[i] = 0
                if n * 128 + i < 2 * M:
                    if ids[(n * 128 + i) // 2, (n * 128 + i) % 2] == e:
                        mine[i] = 1
            T.cumsum(mine, rank, dim=0)
            for i in T.Parallel(128):
                if mine[i] == 1:
                    source[count + rank[i] - 1] = n * 128 + i
            count = count + rank[127]
        if e == 15:
            if T.get_thread_binding() == 0:
                starts[16] = count
    # The products of each expert, and the answers by weight.
    with T.Kernel(T.ceildiv(M, tile), threads=128) as bx:
        for i, j in T.Parallel(tile, 64):
            if bx * tile + i < M:
                Y[bx * tile + i, j] = 0.0
    return Y


# %% [markdown] lang="en"
# **Try it** with one token: two experts work, fourteen have nothing to do.

# %% [markdown] lang="zh"
# **试一试**只有一个 token：两个专家干活，十四个没事做。

# %%
rng = np.random.default_rng(0)
x, wg, w1, w2 = (rng.standard_normal(s).astype(np.float16) / 8 for s in ((1, 64), (64, 16), (16, 2, 64, 64), (16, 64, 64)))
trace = tilelab.simulate(moe, x, wg, w1, w2)
wide = [a.astype(np.float64) for a in (x, wg, w1, w2)]
scores = (wide[0] @ wide[1])[0]
best = np.argsort(-scores, kind="stable")[:2]
share = np.exp(scores[best]) / np.exp(scores[best]).sum()
up = [(g / (1 + np.exp(-g)) * u) @ wide[3][e] for e in best for g, u in [(wide[0][0] @ wide[2][e, 0], wide[0][0] @ wide[2][e, 1])]]
print("experts", best, "largest error:", np.abs(trace.result[0] - share @ np.array(up)).max())
trace.findings

# %%
puzzle.check(moe)

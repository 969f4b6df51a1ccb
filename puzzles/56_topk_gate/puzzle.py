# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("56")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and sends every token to expert 0. The scores of `rows` tokens are in `s`; `left`, `best` and `first` are what a round needs.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是把每个 token 都送给 0 号专家。`s` 里是 `rows` 个 token 的得分；`left`、`best`、`first` 是每一轮要用到的东西。

# %% tilelab={"role": "solution"}
@tilelang.jit
def gate(S, k: int = 4, keep: int = 2, groups: int = 4, rows: int = 16):
    M, E = T.const("M, E")
    S: T.Tensor[[M, E], "float32"]
    chosen = T.empty((M, k), "int32")
    weight = T.empty((M, k), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        s = T.alloc_fragment((rows, E), "float32")
        left = T.alloc_fragment((rows, E), "float32")  # what may still be chosen; −inf: no more
        best = T.alloc_fragment((rows,), "float32")
        first = T.alloc_fragment((rows,), "int32")
        ids = T.alloc_fragment((rows, k), "int32")
        w = T.alloc_fragment((rows, k), "float32")
        T.copy(S[bx * rows, 0], s)
        ### BEGIN SOLUTION
        #| # Choose `keep` groups, then k experts among them; where scores are equal, the lower number comes first.
        #| T.clear(ids)
        #| T.clear(w)
        at = T.alloc_fragment((rows, E), "int32")
        open_group = T.alloc_fragment((rows, E), "int32")
        total = T.alloc_fragment((rows,), "float32")
        T.clear(open_group)
        T.clear(total)
        T.copy(s, left)
        for _ in T.serial(keep):
            T.reduce_max(left, best, dim=1)
            for i, j in T.Parallel(rows, E):
                at[i, j] = T.if_then_else(left[i, j] == best[i], j, E)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(rows, E):
                if j // (E // groups) == first[i] // (E // groups):
                    open_group[i, j] = 1
                    left[i, j] = -T.infinity("float32")
        for i, j in T.Parallel(rows, E):
            left[i, j] = T.if_then_else(open_group[i, j] == 1, s[i, j], -T.infinity("float32"))
        for n in T.serial(k):
            T.reduce_max(left, best, dim=1)
            for i, j in T.Parallel(rows, E):
                at[i, j] = T.if_then_else(left[i, j] == best[i], j, E)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(rows, E):
                if j == first[i]:
                    left[i, j] = -T.infinity("float32")
            for i, j in T.Parallel(rows, k):
                if j == n:
                    ids[i, j] = first[i]
                    w[i, j] = best[i]
            for i in T.Parallel(rows):
                total[i] += best[i]
        for i, j in T.Parallel(rows, k):
            w[i, j] = w[i, j] / T.max(total[i], 1e-30)
        ### END SOLUTION
        T.copy(ids, chosen[bx * rows, 0])
        T.copy(w, weight[bx * rows, 0])
    return chosen, weight


# %% [markdown] lang="en"
# **Try it** on scores with many ties: they have only four different values.

# %% [markdown] lang="zh"
# **试一试**有许多同分的情形：得分只有四种取值。

# %%
s = np.random.default_rng(0).integers(1, 5, (5, 16)).astype(np.float32)
trace = tilelab.simulate(gate, s)
chosen, weight = trace.result
print(s[0].astype(int), "→", chosen[0], weight[0])
trace.findings

# %%
puzzle.check(gate)

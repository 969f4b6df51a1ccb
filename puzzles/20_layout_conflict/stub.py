# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("20")
puzzle

# %% [markdown] lang="en"
# **The kernel.** Its values are right, says the simulator. Its compiler says no. Find out who disagrees with whom, and change as little as you can.

# %% [markdown] lang="zh"
# **这个内核**，模拟器说它的数值是对的，编译器却不肯收。找出是谁跟谁谈不拢，改动越少越好。


# %% tilelab={"role": "solution"}
@tilelang.jit
def influence(Q, K):
    B, D = T.const("B, D")
    Q: T.Tensor[[B, 64, D], "float16"]
    K: T.Tensor[[B, 64, D], "float16"]
    out = T.empty((B, 64), "float32")
    with T.Kernel(B, threads=128) as bx:
        q = T.alloc_shared((64, D), "float16")
        k = T.alloc_shared((64, D), "float16")
        score = T.alloc_fragment((64, 64), "float32")
        row = T.alloc_fragment((64,), "float32")
        column = T.alloc_fragment((64,), "float32")
        T.copy(Q[bx, 0, 0], q)
        T.copy(K[bx, 0, 0], k)
        T.clear(score)
        T.gemm(q, k, score, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
        T.reduce_max(score, row, dim=1)
        T.reduce_max(score, column, dim=0)
        for i in T.Parallel(64):
            row[i] = row[i] + column[i]
        T.copy(row, out[bx, 0])
    return out


# %% [markdown] lang="en"
# **See it fail**: the picture is of the two layouts that do not agree.

# %% [markdown] lang="zh"
# **看它出错**：图上画的就是谈不拢的那两个布局。

# %%
tilelab.view.layout(influence, consts={"B": 1, "D": 16})

# %%
puzzle.check(influence)

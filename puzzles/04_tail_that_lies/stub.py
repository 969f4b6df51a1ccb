# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("4")
puzzle

# %% [markdown] lang="en"
# **The kernel.** Somebody else's, and it passed all of their tests. Find the fault and change as little as you can.

# %% [markdown] lang="zh"
# **这个内核**出自别人之手，而且通过了他们的全部测试。找出毛病，改动越少越好。

# %% tilelab={"role": "solution"}
@tilelang.jit
def row_max(A, rows: int = 16, cols: int = 128):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        tile = T.alloc_fragment((rows, cols), "float32")
        best = T.alloc_fragment((rows,), "float32")
        T.fill(best, -T.infinity("float32"))
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(A[bx * rows, k * cols], tile)
            T.reduce_max(tile, best, dim=1, clear=False)
        T.copy(best, out[bx * rows])
    return out


# %% [markdown] lang="en"
# **See it fail**: all numbers are negative, and yet the largest of some rows is 0.

# %% [markdown] lang="zh"
# **看它出错**：所有的数都是负的，有些行的最大值却成了 0。

# %%
a = -1 - np.random.default_rng(0).random((20, 300), dtype=np.float32)
trace = tilelab.simulate(row_max, a)
print("yours:", trace.result[:4], " right:", a.max(axis=1)[:4])
trace.findings

# %%
puzzle.check(row_max)

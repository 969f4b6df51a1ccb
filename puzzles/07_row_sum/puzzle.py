# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("7")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and every sum is zero. Each block has `rows` rows, and `total` holds one sum for each.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是所有的和都是零。每个线程块负责 `rows` 行，`total` 为每一行存一个和。

# %% tilelab={"role": "solution"}
@tilelang.jit
def row_sum(A, rows: int = 16, cols: int = 256):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        total = T.alloc_fragment((rows,), "float32")
        T.clear(total)
        ### BEGIN SOLUTION
        #| # Walk along the rows, tile by tile, and add up what each tile holds.
        tile = T.alloc_fragment((rows, cols), "float32")
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(A[bx * rows, k * cols], tile)
            T.reduce_sum(tile, total, dim=1, clear=False)
        ### END SOLUTION
        T.copy(total, out[bx * rows])
    return out


# %% [markdown] lang="en"
# **Try it** where nothing divides evenly: 33 rows are two blocks and a bit, 300 columns one tile and a bit.

# %% [markdown] lang="zh"
# **试一试**除不尽的情形：33 行要两个多线程块，300 列要一个多分块。

# %%
a = np.random.default_rng(0).standard_normal((33, 300), dtype=np.float32)
trace = tilelab.simulate(row_sum, a)
print("largest error:", np.abs(trace.result - a.sum(axis=1)).max())
trace.findings

# %%
puzzle.check(row_sum)

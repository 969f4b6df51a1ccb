# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("8")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and every sum is zero. Each block has `cols` columns, and `total` holds one sum for each.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是所有的和都是零。每个线程块负责 `cols` 列，`total` 为每一列存一个和。

# %% tilelab={"role": "solution"}
@tilelang.jit
def bias_gradient(dY, rows: int = 64, cols: int = 64):
    M, N = T.const("M, N")
    dY: T.Tensor[[M, N], "float16"]
    db = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, cols), threads=128) as bx:
        total = T.alloc_fragment((cols,), "float32")
        T.clear(total)
        # Walk down the columns, tile by tile. Which axis of a tile is to disappear?
        T.copy(total, db[bx * cols])
    return db


# %% [markdown] lang="en"
# **Try it** on more rows than one tile has: what the first tile gave must still be there after the second.

# %% [markdown] lang="zh"
# **试一试**行数超过一个分块的情形：走完第二块之后，第一块的贡献应当还在。

# %%
dy = np.random.default_rng(0).standard_normal((100, 200)).astype(np.float16)
trace = tilelab.simulate(bias_gradient, dy)
print("largest error:", np.abs(trace.result - dy.astype(np.float64).sum(axis=0)).max())
trace.findings

# %%
puzzle.check(bias_gradient)

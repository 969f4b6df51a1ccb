# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("59")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns exp(L) without any scaling. Each thread has one matrix in its own registers.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是返回未经归一化的 exp(L)。每个线程的寄存器里各有一个矩阵。

# %% tilelab={"role": "solution"}
@tilelang.jit
def sinkhorn(L, limit: int = 2000, threads: int = 128):
    B = T.const("B")
    L: T.Tensor[[B, 4, 4], "float32"]
    P = T.empty((B, 4, 4), "float32")
    with T.Kernel(T.ceildiv(B, threads), threads=threads) as bx:
        b = bx * threads + T.get_thread_binding()
        if b < B:
            p = T.alloc_local((4, 4), "float32")
            for i, j in T.grid(4, 4):
                p[i, j] = T.exp(L[b, i, j])
            # Divide each column by its sum, then each row by its sum, until the rows were right before they were divided.
            for i, j in T.grid(4, 4):
                P[b, i, j] = p[i, j]
    return P


# %% [markdown] lang="en"
# **Try it**: all rows and all columns must sum to 1.

# %% [markdown] lang="zh"
# **试一试**：每一行、每一列的和都应该是 1。

# %%
l = np.random.default_rng(0).standard_normal((130, 4, 4), dtype=np.float32)
trace = tilelab.simulate(sinkhorn, l)
p = trace.result.astype(np.float64)
print("rows are off by", np.abs(p.sum(axis=2) - 1).max(), "and columns by", np.abs(p.sum(axis=1) - 1).max())
trace.findings

# %%
puzzle.check(sinkhorn)

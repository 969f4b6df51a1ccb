# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("13")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and copies `A`. `sums` lies in global memory, with one place for each block; nobody uses it yet.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是照抄了 `A`。`sums` 在全局内存里，每个线程块一个位置，眼下还没有人用它。

# %% tilelab={"role": "solution"}
@tilelang.jit
def center(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    blocks = T.ceildiv(N, block)
    sums = T.alloc_global((blocks,), "float32")
    # One launch so far. No block knows what the others have found out: who adds up all of A, and when?
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        part = T.alloc_fragment((block,), "float32")
        T.copy(A[bx * block], part)
        T.copy(part, B[bx * block])
    return B


# %% [markdown] lang="en"
# **Try it** on three blocks: the mean of what comes out should be zero.

# %% [markdown] lang="zh"
# **试一试**三个线程块的情形：结果的平均值应当为零。

# %%
a = np.random.default_rng(0).random(3000, dtype=np.float32)
trace = tilelab.simulate(center, a)
print("mean before:", a.mean(), " after:", trace.result.mean())
trace.findings

# %%
puzzle.check(center)

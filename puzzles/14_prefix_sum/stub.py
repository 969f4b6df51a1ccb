# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("14")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and writes zeros. `sums` has one place for each block.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是写出来全是零。`sums` 给每个线程块留了一个位置。

# %% tilelab={"role": "solution"}
@tilelang.jit
def prefix_sum(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "int32"]
    B = T.empty((N,), "int32")
    blocks = T.ceildiv(N, block)
    sums = T.alloc_global((blocks,), "int32")
    # First the sum of each block, as in puzzle 13. Then a scan of each block, on top of all the blocks before it.
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        zeros = T.alloc_shared((block,), "int32")
        T.clear(zeros)
        T.copy(zeros, B[bx * block : bx * block + block])
    return B


# %% [markdown] lang="en"
# **Try it** on five blocks: with two, a carry from the neighbour alone would look right.

# %% [markdown] lang="zh"
# **试一试**五个线程块的情形：如果只有两块，光从邻居那里进位也会看起来没错。

# %%
a = np.random.default_rng(0).integers(1, 1000, 5000, dtype=np.int32)
trace = tilelab.simulate(prefix_sum, a)
wrong = np.flatnonzero(trace.result != np.cumsum(a))
print("first wrong element:", wrong[:1], "of", wrong.size)
trace.findings

# %%
puzzle.check(prefix_sum)

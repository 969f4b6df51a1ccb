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
    ### BEGIN SOLUTION
    #| # First the sum of each block, as in puzzle 13. Then a scan of each block, on top of all the blocks before it.
    #| with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
    #|     zeros = T.alloc_shared((block,), "int32")
    #|     T.clear(zeros)
    #|     T.copy(zeros, B[bx * block : bx * block + block])
    with T.Kernel(blocks, threads=128) as bx:
        part = T.alloc_fragment((block,), "int32")
        own = T.alloc_fragment((1,), "int32")
        T.copy(A[bx * block], part)
        T.reduce_sum(part, own, dim=0)
        T.copy(own, sums[bx : bx + 1])
    with T.Kernel(blocks, threads=128) as bx:
        some = T.alloc_fragment((128,), "int32")
        carry = T.alloc_fragment((1,), "int32")
        T.clear(carry)
        for k in T.serial(T.ceildiv(blocks, 128)):
            for i in T.Parallel(128):
                some[i] = T.if_then_else(k * 128 + i < bx, sums[k * 128 + i], 0)
            T.reduce_sum(some, carry, dim=0, clear=False)
        tile = T.alloc_shared((block,), "int32")
        T.copy(A[bx * block : bx * block + block], tile)
        T.cumsum(tile, dim=0)
        for i in T.Parallel(block):
            if bx * block + i < N:
                B[bx * block + i] = tile[i] + carry[0]
    ### END SOLUTION
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

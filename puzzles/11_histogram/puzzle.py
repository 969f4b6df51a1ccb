# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("11")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and counts nothing. `H` is not empty when it comes: your counts are added to what is there.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是什么也没数。`H` 传进来时并不是空的：你数到的要加在原有的数上。

# %% tilelab={"role": "solution"}
@tilelang.jit
def histogram(X, H, block: int = 512):
    N = T.const("N")
    X: T.Tensor[[N], "int32"]
    H: T.Tensor[[64], "int32"]
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        counts = T.alloc_shared((64,), "int32")
        T.clear(counts)
        ### BEGIN SOLUTION
        #| # Count this block's elements in counts, then add what was counted to H.
        for i in T.Parallel(block):
            if bx * block + i < N:
                T.atomic_add(counts[X[bx * block + i]], 1)
        for i in T.Parallel(64):
            T.atomic_add(H[i], counts[i])
        ### END SOLUTION


# %% [markdown] lang="en"
# **Try it** on 700 numbers: two blocks, and the second is not full.

# %% [markdown] lang="zh"
# **试一试** 700 个数：两个线程块，第二块没有装满。

# %%
x = np.random.default_rng(0).integers(0, 64, 700, dtype=np.int32)
empty = np.zeros(64, dtype=np.int32)
trace = tilelab.simulate(histogram, x, empty)
print("wrong bins:", np.count_nonzero(trace.outputs.get("H", empty) != np.bincount(x, minlength=64)))
trace.findings

# %%
puzzle.check(histogram)

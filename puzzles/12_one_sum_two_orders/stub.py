# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("12")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and the sum is zero. One block does it all, on purpose: what is at stake is the order.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是和为零。这里特意只用一个线程块：要紧的是次序。

# %% tilelab={"role": "solution"}
@tilelang.jit
def total(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((1,), "float32")
    with T.Kernel(1, threads=128):
        tile = T.alloc_fragment((block,), "float32")
        result = T.alloc_fragment((1,), "float32")
        T.clear(result)
        # Many short sums, each in a place of its own; and only at the end, one sum of those.
        T.copy(A[0], tile)
        T.copy(result, out)
    return out


# %% [markdown] lang="en"
# **Try it**, and compare with the same numbers added one after another in float32.

# %% [markdown] lang="zh"
# **试一试**，并与用 float32 一个接一个相加的结果作比较。

# %%
a = np.random.default_rng(0).random(100003, dtype=np.float32)
trace = tilelab.simulate(total, a)
exact = a.sum(dtype=np.float64)
print("yours, relative error:            ", abs(trace.result[0] - exact) / exact)
print("one after another, relative error:", abs(np.cumsum(a)[-1] - exact) / exact)
trace.findings

# %%
puzzle.check(total)

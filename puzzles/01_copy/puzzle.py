# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("1")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and writes a single zero. Change what stands below `B = T.empty(...)`.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，不过只写了一个零。请修改 `B = T.empty(...)` 下面的部分。

# %% tilelab={"role": "solution"}
@tilelang.jit
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    ### BEGIN SOLUTION
    #| # How many blocks does it take to cover N elements? Which elements does block bx copy?
    #| with T.Kernel(1, threads=128) as bx:
    #|     T.fill(B[0:1], 0.0)
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        start = bx * block
        T.copy(A[start : start + block], B[start : start + block])
    ### END SOLUTION
    return B


# %% [markdown] lang="en"
# **Try it** on a vector that is no multiple of 128. There is no GPU here: the simulator runs your kernel and says what it noticed.

# %% [markdown] lang="zh"
# **试一试**：向量长度故意不是 128 的倍数。这里不需要 GPU：模拟器会运行你的内核，并告诉你它发现了什么。

# %%
a = np.arange(300, dtype=np.float32)
trace = tilelab.simulate(copy, a)
print("equal:", np.array_equal(trace.result, a))
trace.findings

# %%
puzzle.check(copy)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("0")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands: one single block writes −1 on the first tile. `out` is there already, and is written in place.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行：仅有的一个线程块往第一个分块里写 −1。`out` 已经备好，直接写进去就行。

# %% tilelab={"role": "solution"}
@tilelang.jit
def who_am_i(out, block: int = 32):
    N = T.const("N")
    out: T.Tensor[[N], "int32"]
    ### BEGIN SOLUTION
    #| # How many blocks does it take, and which tile is block bx's own?
    #| with T.Kernel(1, threads=32) as bx:
    #|     T.fill(out[0:block], -1)
    with T.Kernel(T.ceildiv(N, block), threads=32) as bx:
        start = bx * block
        T.fill(out[start : start + block], bx)
    ### END SOLUTION


# %% [markdown] lang="en"
# **Try it** on 100 elements: three tiles of 32, and four elements more.

# %% [markdown] lang="zh"
# **试一试**：100 个元素，即三个 32 的分块，再多出 4 个元素。

# %%
trace = tilelab.simulate(who_am_i, np.zeros(100, dtype=np.int32))
print(trace.outputs["out"])
trace.findings

# %%
puzzle.check(who_am_i)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("35")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and does not wait: it doubles what happens to lie in `s`. The barrier is there, and the way out.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，但它不等待：`s` 里碰巧有什么就加倍什么。屏障和写回都已写好。

# %% tilelab={"role": "solution"}
@tilelang.jit
def double(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float16"]
    B = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        s = T.alloc_shared((64, 64), "float16")
        ready = T.alloc_barrier([1])
        T.clear(s)  # bring the tile in by TMA, and wait for it
        for i, j in T.Parallel(64, 64):
            if by * 64 + i < M and bx * 64 + j < N:
                B[by * 64 + i, bx * 64 + j] = s[i, j] * T.float16(2)
    return B


# %% [markdown] lang="en"
# **Try it** where the tile hangs over both edges: TMA fills it with zeros.

# %% [markdown] lang="zh"
# **试一试**分块伸出两条边的情形：TMA 会补零。

# %%
a = np.random.default_rng(0).standard_normal((100, 72)).astype(np.float16)
trace = tilelab.simulate(double, a)
print("right:", np.array_equal(trace.result, a * 2))
trace.findings

# %%
puzzle.check(double)

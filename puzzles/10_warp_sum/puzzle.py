# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("10")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and every sum is zero. This time you write for **one thread**: `t` is its number, `lane` its place in the warp, and each warp has a row.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是所有的和都是零。这一次你是在为**单个线程**写代码：`t` 是它的编号，`lane` 是它在线程束里的位置，每个线程束负责一行。

# %% tilelab={"role": "solution"}
@tilelang.jit
def warp_sum(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, 4), threads=128) as bx:
        t = T.get_thread_binding()
        lane = t % 32
        row = bx * 4 + t // 32
        total = T.alloc_var("float32", init=0.0)
        ### BEGIN SOLUTION
        #| # First, each lane adds up its own elements: lane, lane + 32, lane + 64, …
        #| # Then the 32 lanes of the warp bring their totals together.
        for k in T.serial(T.ceildiv(N, 32)):
            if row < M and k * 32 + lane < N:
                total += A[row, k * 32 + lane]
        for s in T.serial(5):
            total += T.shfl_xor(total, 16 >> s)
        ### END SOLUTION
        if lane == 0 and row < M:
            out[row] = total
    return out


# %% [markdown] lang="en"
# **Try it** on six rows of 100: the last warps have no row, and the last four elements have only four lanes.

# %% [markdown] lang="zh"
# **试一试** 6 行、每行 100 个：最后两个线程束没有行可管，最后 4 个元素只够 4 个 lane 分。

# %%
a = np.random.default_rng(0).standard_normal((6, 100), dtype=np.float32)
trace = tilelab.simulate(warp_sum, a)
print("largest error:", np.abs(trace.result - a.sum(axis=1)).max())
trace.findings

# %%
puzzle.check(warp_sum)

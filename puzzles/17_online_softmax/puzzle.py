# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("17")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `Y` is a copy of `X`. `top` begins at −1e30: lower than any logit, and yet a number with which one can calculate.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `Y` 照抄了 `X`。`top` 从 −1e30 开始：比任何 logit 都小，却又是个可以参与计算的数。

# %% tilelab={"role": "solution"}
@tilelang.jit
def online_softmax(X, rows: int = 16, cols: int = 128):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float32"]
    Y = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_fragment((rows, cols), "float32")
        top = T.alloc_fragment((rows,), "float32")
        before = T.alloc_fragment((rows,), "float32")
        part = T.alloc_fragment((rows,), "float32")
        total = T.alloc_fragment((rows,), "float32")
        T.annotate_safe_value({X: -T.infinity("float32")})  # puzzle 4: what lies beyond the edge changes nothing
        T.fill(top, -1e30)
        T.clear(total)
        ### BEGIN SOLUTION
        #| # First walk: the maximum so far, and the sum of exp(x − maximum so far). Second walk: the results.
        #| for step in T.serial(T.ceildiv(N, cols)):
        #|     T.copy(X[bx * rows, step * cols], x)
        #|     T.copy(x, Y[bx * rows, step * cols])
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(X[bx * rows, k * cols], x)
            T.copy(top, before)
            T.reduce_max(x, top, dim=1, clear=False)
            for i, j in T.Parallel(rows, cols):
                x[i, j] = T.exp(x[i, j] - top[i])
            T.reduce_sum(x, part, dim=1)
            for i in T.Parallel(rows):
                total[i] = total[i] * T.exp(before[i] - top[i]) + part[i]
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(X[bx * rows, k * cols], x)
            for i, j in T.Parallel(rows, cols):
                x[i, j] = T.exp(x[i, j] - top[i]) / T.max(total[i], 1e-30)
            T.copy(x, Y[bx * rows, k * cols])
        ### END SOLUTION
    return Y


# %% [markdown] lang="en"
# **Try it** on long rows, one of which is −inf from end to end: it is to become zeros, and no NaN.

# %% [markdown] lang="zh"
# **试一试**长长的行，其中一行从头到尾都是 −inf：它应该变成零，而不是 NaN。

# %%
x = np.random.default_rng(0).standard_normal((20, 1000), dtype=np.float32) * 30
x[3] = -np.inf
trace = tilelab.simulate(online_softmax, x)
print("sums of the rows:", trace.result.sum(axis=1).round(3))
trace.findings

# %%
puzzle.check(online_softmax)

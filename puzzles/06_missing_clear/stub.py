# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("6")
puzzle

# %% [markdown] lang="en"
# **The kernel.** It multiplies row by row and adds up. On its author's machine it was right every morning, and wrong in the afternoon.

# %% [markdown] lang="zh"
# **这个内核**逐行相乘再求和。在作者的机器上，它早上总是对的，一到下午就错。

# %% tilelab={"role": "solution"}
@tilelang.jit
def row_dot(A, B, rows: int = 16, cols: int = 128):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B: T.Tensor[[M, N], "float32"]
    out = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        a = T.alloc_fragment((rows, cols), "float32")
        b = T.alloc_fragment((rows, cols), "float32")
        products = T.alloc_fragment((rows, cols), "float32")
        total = T.alloc_fragment((rows,), "float32")
        for k in T.serial(T.ceildiv(N, cols)):
            T.copy(A[bx * rows, k * cols], a)
            T.copy(B[bx * rows, k * cols], b)
            for i, j in T.Parallel(rows, cols):
                products[i, j] += a[i, j] * b[i, j]
        T.reduce_sum(products, total, dim=1)
        T.copy(total, out[bx * rows])
    return out


# %% [markdown] lang="en"
# **See it fail**: the simulator fills what nobody has written with values that show.

# %% [markdown] lang="zh"
# **看它出错**：凡是没人写过的地方，模拟器都会填上显眼的值。

# %%
a, b = np.random.default_rng(0).standard_normal((2, 20, 300), dtype=np.float32)
trace = tilelab.simulate(row_dot, a, b)
print("yours:", trace.result[:4], " right:", (a * b).sum(axis=1)[:4])
trace.findings

# %%
puzzle.check(row_dot)

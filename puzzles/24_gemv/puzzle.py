# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("24")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `y` is all zeros. A block has `rows` rows; `total` holds one sum for each, and the way out is there.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `y` 全是零。一个线程块负责 `rows` 行，`total` 为每行存一个和；写回已经写好。


# %% tilelab={"role": "solution"}
@tilelang.jit
def gemv(A, x, rows: int = 8, cols: int = 256):
    M, K = T.const("M, K")
    A: T.Tensor[[M, K], "float16"]
    x: T.Tensor[[K], "float16"]
    y = T.empty((M,), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        total = T.alloc_fragment((rows,), "float32")
        ### BEGIN SOLUTION
        #| # How do 128 threads share eight rows, so that neighbours read neighbours?
        #| T.clear(total)
        a = T.alloc_fragment((rows, cols), "float16")
        part = T.alloc_fragment((cols,), "float16")
        products = T.alloc_fragment((rows, cols), "float32")
        T.clear(products)
        for k in T.serial(T.ceildiv(K, cols)):
            T.copy(A[bx * rows, k * cols], a)
            T.copy(x[k * cols], part)
            for i, j in T.Parallel(rows, cols):
                products[i, j] += T.cast(a[i, j], "float32") * T.cast(part[j], "float32")
        T.reduce_sum(products, total, dim=1)
        ### END SOLUTION
        T.copy(total, y[bx * rows])
    return y


# %% [markdown] lang="en"
# **Try it** on nine rows of 520: one row more than a block has, and a tile that hangs over.

# %% [markdown] lang="zh"
# **试一试** 9 行、520 列：比一个线程块多一行，最后一个分块还伸出了边界。

# %%
rng = np.random.default_rng(0)
a, x = rng.standard_normal((9, 520)).astype(np.float16), rng.standard_normal(520).astype(np.float16)
trace = tilelab.simulate(gemv, a, x)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ x.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(gemv)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("42")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and writes nothing. Block `(bx, by, e)` is the `by`-th tile of rows of expert `e`, if there is one.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是什么都不写。线程块 `(bx, by, e)` 是专家 `e` 的第 `by` 块行——如果有的话。

# %% tilelab={"role": "solution"}
@tilelang.jit
def grouped(A, B, starts, block_m: int = 64, block_n: int = 64, block_k: int = 32):
    M, N, K, E, F = T.const("M, N, K, E, F")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[E, K, N], "float16"]
    starts: T.Tensor[[F], "int32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), E, threads=128) as (bx, by, e):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        ### BEGIN SOLUTION
        #| first = starts[e + 1]  # the first row of this tile
        first = starts[e] + by * block_m
        ### END SOLUTION
        if first < starts[e + 1]:
            T.clear(c)
            for k in T.serial(T.ceildiv(K, block_k)):
                T.copy(A[first : first + block_m, k * block_k : (k + 1) * block_k], a)
                T.copy(B[e, k * block_k, bx * block_n], b)
                T.gemm(a, b, c)
            ### BEGIN SOLUTION
            #| # Write the rows that are this expert's, and no others.
            for i, j in T.Parallel(block_m, block_n):
                if first + i < starts[e + 1] and bx * block_n + j < N:
                    C[first + i, bx * block_n + j] = c[i, j]
            ### END SOLUTION
    return C


# %% [markdown] lang="en"
# **Try it** with groups of 70, 0, 5 and 75 rows.

# %% [markdown] lang="zh"
# **试一试**四组分别有 70、0、5 和 75 行。

# %%
rng = np.random.default_rng(0)
starts = np.array([0, 70, 70, 75, 150], np.int32)
a = rng.standard_normal((150, 72)).astype(np.float16)
b = rng.standard_normal((4, 72, 96)).astype(np.float16)
trace = tilelab.simulate(grouped, a, b, starts)
print("rows 70 to 75 are expert 2's:", np.allclose(trace.result[70:75], a[70:75].astype(float) @ b[2].astype(float), atol=1e-3))
trace.findings

# %%
puzzle.check(grouped)

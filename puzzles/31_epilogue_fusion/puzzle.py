# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("31")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns `A @ B`. What comes behind the multiplication is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，返回的是 `A @ B`。乘法之后的事由你完成。


# %% tilelab={"role": "solution"}
@tilelang.jit
def linear_gelu(A, B, bias, block_m: int = 128, block_n: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    bias: T.Tensor[[N], "float32"]
    C = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        ### BEGIN SOLUTION
        #| # c holds A @ B. Column j of the tile still lacks its bias, and everything its GELU.
        for i, j in T.Parallel(block_m, block_n):
            c[i, j] += T.if_then_else(bx * block_n + j < N, bias[bx * block_n + j], 0.0)
        for i, j in T.Parallel(block_m, block_n):
            c[i, j] = 0.5 * c[i, j] * (1.0 + T.erf(c[i, j] * 0.7071067811865476))
        ### END SOLUTION
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** on sizes that no tile divides.

# %% [markdown] lang="zh"
# **试一试**分块除不尽的尺寸。

# %%
from math import erf

rng = np.random.default_rng(0)
a, b = rng.standard_normal((70, 72)).astype(np.float16), rng.standard_normal((72, 200)).astype(np.float16)
bias = rng.standard_normal(200, dtype=np.float32)
trace = tilelab.simulate(linear_gelu, a, b, bias)
x = a.astype(np.float64) @ b.astype(np.float64) + bias
print("largest error:", np.abs(trace.result - 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2)))).max())
trace.findings

# %%
puzzle.check(linear_gelu)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("28")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands: three statements in one stage, and no multiplication. `q` holds the int8 tile, `b` the same numbers in float16.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行：三条语句都在同一级，还没有乘法。`q` 是 int8 的分块，`b` 是换成 float16 的同一批数。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "int8"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        q = T.alloc_shared((32, 64), "int8")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), order=[0, 1, 2], stage=[0, 0, 0]):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], q)
            for i, j in T.Parallel(32, 64):
                b[i, j] = T.cast(q[i, j], "float16")
            # The multiplication; then every statement needs its place and its stage.
        T.copy(c, C[by * 64, bx * 64])
    return C


# %% [markdown] lang="en"
# **Try it** on sizes that no tile divides.

# %% [markdown] lang="zh"
# **试一试**分块除不尽的尺寸。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((70, 72)).astype(np.float16), rng.integers(-8, 8, (72, 80)).astype(np.int8)
trace = tilelab.simulate(matmul, a, b)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

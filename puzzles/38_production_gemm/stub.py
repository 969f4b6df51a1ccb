# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("38")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns zeros: the walk along K is missing, and the tiles are those of puzzle 25. Make it right, then fast.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是返回零：沿 K 的循环还没有，分块也还是第 25 题的。先让它正确，再让它快起来。

# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, block_m: int = 128, block_n: int = 128, block_k: int = 32, stages: int = 2, group: int = 1):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "bfloat16"]
    B: T.Tensor[[N, K], "bfloat16"]
    C = T.empty((M, N), "bfloat16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=256) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "bfloat16")
        b = T.alloc_shared((block_n, block_k), "bfloat16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.use_swizzle(group)
        T.clear(c)
        T.copy(c, C[by * block_m, bx * block_n])  # before that, the walk along K
    return C


# %% [markdown] lang="en"
# **Try it**, and see what would change with other tiles: `tilelab.whatif` lowers each variant.

# %% [markdown] lang="zh"
# **试一试**，再看看换别的分块会怎样：`tilelab.whatif` 会逐个编译各种变体。

# %%
import ml_dtypes

rng = np.random.default_rng(0)
a, b = (rng.standard_normal((n, 136)).astype(ml_dtypes.bfloat16) for n in (200, 264))
trace = tilelab.simulate(matmul, a, b, params=tilelab.SimParams(target="sm_90"))
print("largest error:", np.abs(trace.result.astype(float) - a.astype(float) @ b.astype(float).T).max())
[f for f in trace.findings if f.severity != "info"]

# %%
puzzle.check(matmul)

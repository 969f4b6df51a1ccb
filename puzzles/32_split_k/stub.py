# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("32")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `C` is all zeros. `splits` is how many blocks shall share one tile of `C`.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `C` 全是零。`splits` 是合做 `C` 的一个分块的线程块个数。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, splits: int = 8, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    # A block for each tile of C: only a few, and each walks along all of K. (This one does not even walk.)
    with T.Kernel(T.ceildiv(M, 16), T.ceildiv(N, block_n), threads=128) as (by, bx):
        zero = T.alloc_fragment((16, block_n), "float32")
        T.clear(zero)
        T.copy(zero, C[by * 16, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** on a K that does not split evenly.

# %% [markdown] lang="zh"
# **试一试**除不尽的 K。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((20, 1160)).astype(np.float16), rng.standard_normal((1160, 72)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

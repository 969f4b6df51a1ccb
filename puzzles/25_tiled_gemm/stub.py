# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("25")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `C` is all zeros. The grid, the accumulator `c` and the way out are there; the work along K is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `C` 全是零。网格、累加器 `c` 和写回都已写好；沿 K 方向的工作由你完成。

# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, block_m: int = 128, block_n: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        # Bring a tile of A and a tile of B into shared memory, multiply them into c, and go on along K.
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** on a matrix with only 16 rows: most of the tile hangs over the edge, and nothing of that may show.

# %% [markdown] lang="zh"
# **试一试**只有 16 行的矩阵：分块的大部分都伸出了边界，而结果里不该看出这一点。

# %%
rng = np.random.default_rng(0)
a = rng.standard_normal((16, 72)).astype(np.float16)
b = rng.standard_normal((72, 200)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

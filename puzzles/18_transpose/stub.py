# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("18")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands and writes zeros. Block `(bx, by)` has the tile of `A` at row `by * block`, column `bx * block`.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是写的全是零。线程块 `(bx, by)` 负责 `A` 中从第 `by * block` 行、第 `bx * block` 列开始的分块。


# %% tilelab={"role": "solution"}
@tilelang.jit
def transpose(A, block: int = 32):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    B = T.empty((N, M), "float32")
    with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
        # Where does the tile at row by * block, column bx * block of A go? This one holds nothing but zeros.
        tile = T.alloc_fragment((block, block), "float32")
        T.clear(tile)
        T.copy(tile, B[bx * block, by * block])
    return B


# %% [markdown] lang="en"
# **Try it** on 33 × 70: neither side is a multiple of 32, and a mix-up of rows and columns shows at once.

# %% [markdown] lang="zh"
# **试一试** 33 × 70：两边都不是 32 的倍数，行列一旦弄混，马上就看得出来。

# %%
a = np.arange(33 * 70, dtype=np.float32).reshape(33, 70)
trace = tilelab.simulate(transpose, a)
print("equal:", np.array_equal(trace.result, a.T))
trace.findings

# %%
puzzle.check(transpose)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("36")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and adds nothing up. `s` has two stages, `full` two barriers; the first copy is started before the loop.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是什么都没加。`s` 有两级，`full` 有两个屏障；第一次复制在循环之前就已发起。

# %% tilelab={"role": "solution"}
@tilelang.jit
def column_sum(A, rows: int = 32, cols: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float16"]
    out = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, cols), threads=128) as bx:
        s = T.alloc_shared((2, rows, cols), "float16")
        tile = T.alloc_fragment((rows, cols), "float32")
        total = T.alloc_fragment((cols,), "float32")
        full = T.alloc_barrier([1, 1])
        tiles = T.ceildiv(M, rows)
        T.clear(total)
        T.tma_copy(A[0:rows, bx * cols : (bx + 1) * cols], s[0, :, :], barrier=full[0])
        if T.shuffle_elect(128):
            T.mbarrier_arrive(full[0])
        ### BEGIN SOLUTION
        #| T.mbarrier_wait_parity(full[0], 0)  # the first tile is there: add it up, and while you do, let the next one come
        for k in T.serial(tiles):
            if k + 1 < tiles:
                T.tma_copy(
                    A[(k + 1) * rows : (k + 2) * rows, bx * cols : (bx + 1) * cols], s[(k + 1) % 2, :, :], barrier=full[(k + 1) % 2]
                )
                if T.shuffle_elect(128):
                    T.mbarrier_arrive(full[(k + 1) % 2])
            T.mbarrier_wait_parity(full[k % 2], k // 2 % 2)
            for i, j in T.Parallel(rows, cols):
                tile[i, j] = s[k % 2, i, j]
            T.reduce_sum(tile, total, dim=0, clear=False)
            T.sync_threads()
        ### END SOLUTION
        T.copy(total, out[bx * cols])
    return out


# %% [markdown] lang="en"
# **Try it** with seven tiles.

# %% [markdown] lang="zh"
# **试一试**七个分块。

# %%
a = np.random.default_rng(0).standard_normal((200, 128)).astype(np.float16)
trace = tilelab.simulate(column_sum, a)
print("largest error:", np.abs(trace.result - a.astype(np.float64).sum(axis=0)).max())
trace.findings

# %%
puzzle.check(column_sum)

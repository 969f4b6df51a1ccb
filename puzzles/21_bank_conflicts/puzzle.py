# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("21")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and what comes out is `A` with holes. The way in and the way out of the tile are there; walking along the rows is yours, and so is the width of a row.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，不过出来的是打了洞的 `A`。分块的进和出都已写好；沿着行往前走由你完成，一行该有多宽也由你定。


# %% tilelab={"role": "solution"}
@tilelang.jit
def row_scan(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float32"]
    S = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, 128), threads=128) as bx:
        t = T.get_thread_binding()
        four = T.alloc_local((4,), "float32")
        carry = T.alloc_local((1,), "float32")
        carry[0] = 0.0
        ### BEGIN SOLUTION
        #| tile = T.alloc_shared((128, 32), "float32")  # how wide must a row be?
        tile = T.alloc_shared((128, 32 + 4), "float32")
        ### END SOLUTION
        for k in T.serial(T.ceildiv(N, 32)):
            T.copy(A[bx * 128, k * 32], tile[:, 0:32], annotations={"disable_tma": True})
            ### BEGIN SOLUTION
            #| # Your turn: thread t walks along its row, four elements at a time. So far it makes holes.
            #| for e in T.unroll(4):
            #|     four[e] = carry[0]
            #|     tile[t, e] = four[e]
            for c in T.serial(8):
                for e in T.vectorized(4):
                    four[e] = tile[t, c * 4 + e]
                for e in T.serial(4):
                    carry[0] += four[e]
                    four[e] = carry[0]
                for e in T.vectorized(4):
                    tile[t, c * 4 + e] = four[e]
            ### END SOLUTION
            T.copy(tile[:, 0:32], S[bx * 128, k * 32], annotations={"disable_tma": True})
    return S


# %% [markdown] lang="en"
# **Try it** on 140 rows of 68: the second block has only 12 rows, and the third tile only 4 columns.

# %% [markdown] lang="zh"
# **试一试** 140 行、68 列：第二个线程块只有 12 行，第三个分块只有 4 列。

# %%
a = np.random.default_rng(0).standard_normal((140, 68), dtype=np.float32)
trace = tilelab.simulate(row_scan, a)
print("largest error:", np.abs(trace.result - a.cumsum(axis=1, dtype=np.float64)).max())
trace.findings

# %%
puzzle.check(row_scan)

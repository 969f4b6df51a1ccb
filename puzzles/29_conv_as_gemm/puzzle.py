# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("29")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `Y` is all zeros. The multiplication is there; the tile `x` of gathered pixels is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `Y` 全是零。乘法已经写好；把像素拼成分块 `x` 由你完成。


# %% tilelab={"role": "solution"}
@tilelang.jit
def conv(X, F, block_p: int = 64, block_k: int = 64, block_c: int = 32):
    N, H, W, C, K = T.const("N, H, W, C, K")
    X: T.Tensor[[N, H, W, C], "float16"]
    F: T.Tensor[[9, C, K], "float16"]
    Y = T.empty((N * H * W, K), "float32")
    with T.Kernel(T.ceildiv(K, block_k), T.ceildiv(N * H * W, block_p), threads=128) as (bx, by):
        x = T.alloc_shared((block_p, block_c), "float16")
        f = T.alloc_shared((block_c, block_k), "float16")
        y = T.alloc_fragment((block_p, block_k), "float32")
        filters = T.Tensor((9 * C, K), "float16", F.data)
        T.clear(y)
        for k in T.Pipelined(T.ceildiv(9 * C, block_c), num_stages=2):
            T.copy(filters[k * block_c, bx * block_k], f)
            ### BEGIN SOLUTION
            #| # x[i, j]: output pixel by * block_p + i, and row k * block_c + j of the filter matrix. Which element of X is that?
            #| T.clear(x)
            for i, j in T.Parallel(block_p, block_c):
                pixel = by * block_p + i
                tap = (k * block_c + j) // C
                row = pixel // W % H + tap // 3 - 1
                column = pixel % W + tap % 3 - 1
                inside = (pixel < N * H * W) and (tap < 9) and (row >= 0) and (row < H) and (column >= 0) and (column < W)
                x[i, j] = T.if_then_else(inside, X[pixel // (H * W), row, column, (k * block_c + j) % C], T.float16(0))
            ### END SOLUTION
            T.gemm(x, f, y)
        T.copy(y, Y[by * block_p, bx * block_k])
    return Y


# %% [markdown] lang="en"
# **Try it** on two small images of 5 × 7: every second pixel is at a border.

# %% [markdown] lang="zh"
# **试一试**两张 5 × 7 的小图：一半的像素都在边上。

# %%
rng = np.random.default_rng(0)
x, f = rng.standard_normal((2, 5, 7, 24)).astype(np.float16), rng.standard_normal((9, 24, 40)).astype(np.float16)
trace = tilelab.simulate(conv, x, f)
padded = np.pad(x.astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
right = sum(padded[:, t // 3 : t // 3 + 5, t % 3 : t % 3 + 7] @ f[t].astype(np.float64) for t in range(9))
print("largest error:", np.abs(trace.result - right.reshape(-1, 40)).max())
trace.findings

# %%
puzzle.check(conv)

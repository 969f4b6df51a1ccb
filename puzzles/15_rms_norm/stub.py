# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("15")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `Y` is a copy of `X`. `T.copy` turns float16 into float32 on the way in, and back on the way out. A row has at most `cols` elements.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `Y` 照抄了 `X`。`T.copy` 在读入时把 float16 变成 float32，写出时再变回去。一行最多有 `cols` 个元素。

# %% tilelab={"role": "solution"}
@tilelang.jit
def rms_norm(X, W, rows: int = 4, cols: int = 1024):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float16"]
    W: T.Tensor[[N], "float16"]
    Y = T.empty((M, N), "float16")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        x = T.alloc_fragment((rows, cols), "float32")
        T.copy(X[bx * rows, 0], x)
        # Squares, their sum along each row, and then x / sqrt(mean + 1e-5) · w.
        T.copy(x, Y[bx * rows, 0])
    return Y


# %% [markdown] lang="en"
# **Try it** on numbers of about 1000: their squares are far above 65504, the largest float16.

# %% [markdown] lang="zh"
# **试一试** 1000 上下的数：它们的平方远远超过 float16 的上限 65504。

# %%
rng = np.random.default_rng(0)
x = (rng.standard_normal((6, 300)) * 1000).astype(np.float16)
w = rng.standard_normal(300).astype(np.float16)
trace = tilelab.simulate(rms_norm, x, w)
wide = x.astype(np.float64)
want = wide / np.sqrt((wide**2).mean(axis=1, keepdims=True) + 1e-5) * w
print("largest error:", np.abs(trace.result - want).max())
trace.findings

# %%
puzzle.check(rms_norm)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("30")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `C` is all zeros. Keep three stages: then one block fits on an SM, and 108 of them make a wave.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `C` 全是零。请保持三级流水：这样一个 SM 上放一个线程块，108 个组成一波。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, block_m: int = 128, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        # The multiplication, and one more line: in which order do the blocks walk over C?
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** where the last panel is not full: the order may change, the result may not.

# %% [markdown] lang="zh"
# **试一试**最后一条带子不满的情形：次序可以变，结果不能变。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((300, 72)).astype(np.float16), rng.standard_normal((72, 520)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

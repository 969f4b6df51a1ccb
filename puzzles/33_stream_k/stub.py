# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("33")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `C` stays zero. The first launch sets `C` to zero; the second has `workers` blocks, each with `share` units of work. Both stay as they are.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `C` 一直是零。第一次启动把 `C` 清零；第二次有 `workers` 个线程块，每个分到 `share` 份活。这两处都不用改。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, workers: int = 108, block: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    across, steps = T.ceildiv(N, block), T.ceildiv(K, block_k)
    work = across * T.ceildiv(M, block) * steps
    share = T.ceildiv(work, workers)
    with T.Kernel(across, T.ceildiv(M, block), threads=128) as (bx, by):
        zero = T.alloc_fragment((block, block), "float32")
        T.clear(zero)
        T.copy(zero, C[by * block, bx * block])
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((block, block_k), "float16")
        b = T.alloc_shared((block_k, block), "float16")
        c = T.alloc_fragment((block, block), "float32")
        T.clear(c)
        for u in T.serial(share):
            unit = w * share + u
            # Unit of work number `unit`: which tile, which step along K? When does what c holds have to go into C?
            T.copy(A[unit * block, 0], a)
            T.copy(B[0, unit * block], b)
    return C


# %% [markdown] lang="en"
# **Try it** with five workers on six tiles of five steps: each gets six units, so some tiles are cut.

# %% [markdown] lang="zh"
# **试一试** 5 个工人做 6 个分块、每块 5 步：每人 6 份，于是有的分块会被切开。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((200, 136)).astype(np.float16), rng.standard_normal((136, 264)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b, consts={"workers": 5})
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

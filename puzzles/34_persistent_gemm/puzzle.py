# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("34")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and each worker writes one tile of zeros. `tiles` is how many there are, `across` how many in a row.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，每个工人写一个全零的分块。`tiles` 是分块总数，`across` 是一行的个数。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, workers: int = 108, block: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    across = T.ceildiv(N, block)
    tiles = across * T.ceildiv(M, block)
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((block, block_k), "float16")
        b = T.alloc_shared((block_k, block), "float16")
        c = T.alloc_fragment((block, block), "float32")
        ### BEGIN SOLUTION
        #| # Worker w makes one tile, of zeros. Which others are its own, and when is there none left?
        #| T.fill(c, 0.0)
        #| T.copy(c, C[w // across * block, w % across * block])
        for turn in T.serial(T.ceildiv(tiles, workers)):
            tile = turn * workers + w
            if tile < tiles:
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
                    T.copy(A[tile // across * block, k * block_k], a)
                    T.copy(B[k * block_k, tile % across * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[tile // across * block, tile % across * block])
        ### END SOLUTION
    return C


# %% [markdown] lang="en"
# **Try it** with four workers on 15 tiles: three whole turns, and a last one for three of them.

# %% [markdown] lang="zh"
# **试一试** 4 个工人做 15 个分块：整整三轮，最后一轮只有三个人有活。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((300, 72)).astype(np.float16), rng.standard_normal((72, 520)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b, consts={"workers": 4})
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

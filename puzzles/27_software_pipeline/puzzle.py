# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("27")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands: it fetches all tiles, one after the other, and multiplies none. A tile of `A` and one of `B` take 32 KiB together.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行：把分块一个一个取来，却一个也没乘。`A` 和 `B` 各一个分块合起来占 32 KiB。


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
        ### BEGIN SOLUTION
        #| for k in T.serial(T.ceildiv(K, block_k)):  # fetch, wait: nothing overlaps, and nothing is multiplied yet
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=5):
            ### END SOLUTION
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[k * block_k, bx * block_n], b)
            ### BEGIN SOLUTION
            T.gemm(a, b, c)
            ### END SOLUTION
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** on sizes that no tile divides.

# %% [markdown] lang="zh"
# **试一试**分块除不尽的尺寸。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((70, 200)).astype(np.float16), rng.standard_normal((200, 72)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b)
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

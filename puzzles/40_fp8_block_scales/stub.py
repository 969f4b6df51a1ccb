# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("40")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and forgets the scales. `part` is there for the products of one step along K.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是忘了缩放因子。`part` 用来装沿 K 走一步所得的乘积。

# %% tilelab={"role": "solution"}
@tilelang.jit
def scaled_matmul(A, B, sa, sb, block_m: int = 64, block_n: int = 128):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float8_e4m3fn"]
    B: T.Tensor[[N, K], "float8_e4m3fn"]
    sa: T.Tensor[[M, K // 128], "float32"]
    sb: T.Tensor[[N // 128, K // 128], "float32"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, 128), "float8_e4m3fn")
        b = T.alloc_shared((block_n, 128), "float8_e4m3fn")
        s = T.alloc_fragment((block_m,), "float32")
        part = T.alloc_fragment((block_m, block_n), "float32")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(K // 128, num_stages=2):
            T.copy(A[by * block_m, k * 128], a)
            T.copy(B[bx * block_n, k * 128], b)
            T.gemm(a, b, c, transpose_B=True)  # right if all scales were 1
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** with three steps along K.

# %% [markdown] lang="zh"
# **试一试**沿 K 走三步。

# %%
import ml_dtypes

rng = np.random.default_rng(0)
a, b = (rng.standard_normal((n, 384)).astype(ml_dtypes.float8_e4m3fn) for n in (70, 256))
sa, sb = rng.random((70, 3), dtype=np.float32), rng.random((2, 3), dtype=np.float32)
trace = tilelab.simulate(scaled_matmul, a, b, sa, sb)
want = sum(sa[:, [k]] * (a[:, k * 128 :][:, :128].astype(float) @ b[:, k * 128 :][:, :128].T.astype(float)) * np.repeat(sb[:, k], 128) for k in range(3))
print("largest error:", np.abs(trace.result - want).max())
trace.findings

# %%
puzzle.check(scaled_matmul)

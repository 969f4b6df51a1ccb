# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("39")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, with weights of 0. The packed tile is in `w`; make the float16 tile `b` out of it.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是权重全是 0。打包的分块在 `w` 里，请由它做出 float16 的分块 `b`。

# %% tilelab={"role": "solution"}
@tilelang.jit
def dequantised(A, W, scale, zero, block_m: int = 64, block_n: int = 64, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    W: T.Tensor[[N, K // 2], "uint8"]
    scale: T.Tensor[[N, K // 64], "float16"]
    zero: T.Tensor[[N, K // 64], "uint8"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        w = T.alloc_shared((block_n, block_k // 2), "uint8")
        b = T.alloc_shared((block_n, block_k), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.serial(K // block_k):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(W[bx * block_n, k * (block_k // 2)], w)
            ### BEGIN SOLUTION
            #| T.clear(b)  # two weights a byte: unpack, subtract the zero point, scale
            for i, j in T.Parallel(block_n, block_k):
                four = (w[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15)
                if bx * block_n + i < N:
                    b[i, j] = (T.cast(four, "float16") - T.cast(zero[bx * block_n + i, k], "float16")) * scale[bx * block_n + i, k]
                else:
                    b[i, j] = 0
            ### END SOLUTION
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** on weights that you can read: row 0 holds 1, 2, 3, 4, …

# %% [markdown] lang="zh"
# **试一试**看得懂的权重：第 0 行是 1、2、3、4……

# %%
a = np.eye(64, 64, dtype=np.float16)
w = np.zeros((64, 32), np.uint8)
w[0, :4] = [0x21, 0x43, 0x65, 0x87]
trace = tilelab.simulate(dequantised, a, w, np.ones((64, 1), np.float16), np.zeros((64, 1), np.uint8))
print(trace.result[:10, 0])
trace.findings

# %%
puzzle.check(dequantised)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("41")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and keeps nothing but zeros. In the first launch each thread has 16 numbers of a row, four groups of four; the product in the second launch is there.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是留下的全是零。第一次启动里，每个线程负责一行里的 16 个数，即四组四个；第二次启动里的乘法已经写好。

# %% tilelab={"role": "solution"}
@tilelang.jit
def sparse_matmul(A, B, block_m: int = 64, block_n: int = 64, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    values = T.alloc_global((M, K // 2), "float16")
    codes = T.alloc_global((M, K // 16), "int16")
    with T.Kernel(T.ceildiv(M * (K // 16), 128), threads=128) as bx:
        at = bx * 128 + T.get_thread_binding()
        if at < M * (K // 16):
            code = T.alloc_var("int32")
            kept = T.alloc_var("int32")
            code = 0
            for g in T.serial(4):  # of each group: the two that count, and where they stood
                values[at // (K // 16), at % (K // 16) * 8 + g * 2] = T.float16(0)
                values[at // (K // 16), at % (K // 16) * 8 + g * 2 + 1] = T.float16(0)
                code = code | (0b0100 << (g * 4))
            codes[at // (K // 16), at % (K // 16)] = T.cast(code, "int16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k // 2), "float16")
        e = T.alloc_shared((block_m, block_k // 16), "int16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
            T.copy(values[by * block_m, k * (block_k // 2)], a)
            T.copy(codes[by * block_m, k * (block_k // 16)], e)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm_sp(a, e, b, c)
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** with groups that you can read.

# %% [markdown] lang="zh"
# **试一试**看得懂的分组。

# %%
a = np.zeros((64, 64), np.float16)
a[0, :8] = [0, 5, 0, 7, 2, 0, 0, 0]
trace = tilelab.simulate(sparse_matmul, a, np.eye(64, dtype=np.float16))
print(trace.result[0, :8])
trace.findings

# %%
puzzle.check(sparse_matmul)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("45")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and writes nothing. Block `(bx, h, b)` has query head `h` of sequence `b`; the softmax of puzzle 44 is there. Where the sequence lies, and whose keys it reads, is yours.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是什么都不写。线程块 `(bx, h, b)` 负责序列 `b` 的 query 头 `h`；第 44 题的 softmax 已经写好。序列在哪里、读谁的 key，由你来写。

# %% tilelab={"role": "solution"}
@tilelang.jit
def varlen(Q, K, V, starts, block_m: int = 64, block_n: int = 64):
    L, H, G, C = T.const("L, H, G, C")
    Q: T.Tensor[[L, H, G, 64], "float16"]
    K: T.Tensor[[L, H, 64], "float16"]
    V: T.Tensor[[L, H, 64], "float16"]
    starts: T.Tensor[[C], "int32"]
    O = T.empty((L, H, G, 64), "float16")
    scale = 1.44269504 * 0.125
    with T.Kernel(T.ceildiv(L, block_m), H * G, C - 1, threads=128) as (bx, h, b):
        q = T.alloc_shared((block_m, 64), "float16")
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        p = T.alloc_fragment((block_m, block_n), "float16")
        o = T.alloc_fragment((block_m, 64), "float32")
        m = T.alloc_fragment((block_m,), "float32")
        before = T.alloc_fragment((block_m,), "float32")
        now = T.alloc_fragment((block_m,), "float32")
        total = T.alloc_fragment((block_m,), "float32")
        first = 0  # where sequence b begins
        length = 0  # and how many tokens it has
        if bx * block_m < length:
            for i, j in T.Parallel(block_m, 64):
                q[i, j] = T.if_then_else(bx * block_m + i < length, Q[T.min(first + bx * block_m + i, L - 1), h // G, h % G, j], 0)
            T.clear(o)
            T.clear(total)
            T.fill(m, -1e30)
            for n in T.serial(T.ceildiv(length, block_n)):
                T.clear(k)  # the keys and the values of this tile, of the right head
                T.clear(v)
                T.clear(s)
                T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                for i, j in T.Parallel(block_m, block_n):
                    s[i, j] = s[i, j] * scale  # which keys belong to this sequence?
                T.copy(m, before)
                T.reduce_max(s, m, dim=1, clear=False)
                for i, j in T.Parallel(block_m, block_n):
                    s[i, j] = T.exp2(s[i, j] - m[i])
                T.reduce_sum(s, now, dim=1)
                for i in T.Parallel(block_m):
                    total[i] = total[i] * T.exp2(before[i] - m[i]) + now[i]
                for i, j in T.Parallel(block_m, 64):
                    o[i, j] *= T.exp2(before[i] - m[i])
                T.copy(s, p)
                T.gemm(p, v, o, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_m, 64):
                if bx * block_m + i < length:
                    O[first + bx * block_m + i, h // G, h % G, j] = o[i, j] / total[i]
    return O


# %% [markdown] lang="en"
# **Try it** with lengths 70, 0, 1 and 79.

# %% [markdown] lang="zh"
# **试一试**长度为 70、0、1 和 79 的四个序列。

# %%
rng = np.random.default_rng(0)
starts = np.array([0, 70, 70, 71, 150], np.int32)
q = rng.standard_normal((150, 2, 2, 64)).astype(np.float16)
k, v = (rng.standard_normal((150, 2, 64)).astype(np.float16) for _ in range(2))
trace = tilelab.simulate(varlen, q, k, v, starts)
print("the sequence of one token returns its own value:", np.array_equal(trace.result[70, 1, 0], v[70, 1]))
trace.findings

# %%
puzzle.check(varlen)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("26")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and `C` is all zeros. It is checked with 64, 128 and 256 threads, with 0 to 4 stages, and with three layouts of `c`.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是 `C` 全是零。检查时会用 64、128、256 个线程，0 到 4 级流水，以及 `c` 的三种布局。


# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, threads: int = 128, num_stages: int = 2, policy: int = 0):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=threads) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        # The dataflow: tiles of A and B along K, multiplied into c. The schedule: num_stages, and the policy of the multiplication.
        T.copy(c, C[by * 64, bx * 64])
    return C


# %% [markdown] lang="en"
# **Try it** with a schedule of your choice; the result must not notice.

# %% [markdown] lang="zh"
# **试一试**任选一种调度；结果不应有任何变化。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((70, 200)).astype(np.float16), rng.standard_normal((200, 72)).astype(np.float16)
trace = tilelab.simulate(matmul, a, b, consts={"threads": 256, "num_stages": 3, "policy": 1})
print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

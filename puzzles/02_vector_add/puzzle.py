# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("2")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and copies `A`. It also reaches for elements that do not exist; the check will say which.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是照抄了 `A`，还把手伸向了并不存在的元素——检查会告诉你是哪些。

# %% tilelab={"role": "solution"}
@tilelang.jit
def vector_add(A, B, block: int = 256):
    N = T.dynamic("N")
    A: T.Tensor[[N], "float32"]
    B: T.Tensor[[N], "float32"]
    C = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            ### BEGIN SOLUTION
            #| # Does this element exist? And where is B?
            #| C[bx * block + i] = A[bx * block + i]
            if bx * block + i < N:
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
            ### END SOLUTION
    return C


# %% [markdown] lang="en"
# **Try it** with 300 elements: two blocks of 256, and the second one has only 44 left.

# %% [markdown] lang="zh"
# **试一试**：300 个元素，两个 256 的线程块，第二块只剩下 44 个。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal((2, 300), dtype=np.float32)
trace = tilelab.simulate(vector_add, a, b)
print("equal:", np.array_equal(trace.result, a + b))
trace.findings

# %%
puzzle.check(vector_add)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("23")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and writes an eighth of the vector. A block is 128 threads and has 1024 elements.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只写了向量的八分之一。一个线程块有 128 个线程，负责 1024 个元素。


# %% tilelab={"role": "solution"}
@tilelang.jit
def double(X):
    N = T.const("N")
    X: T.Tensor[[N], "float16"]
    Y = T.empty((N,), "float16")
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        t = T.get_thread_binding()
        ### BEGIN SOLUTION
        #| # A block has 1024 elements, so a thread has eight. Which eight?
        #| if bx * 128 + t < N:
        #|     Y[bx * 128 + t] = T.float16(1)
        for v in T.vectorized(8):
            Y[(bx * 128 + t) * 8 + v] = X[(bx * 128 + t) * 8 + v] * T.float16(2)
        ### END SOLUTION
    return Y


# %% [markdown] lang="en"
# **Try it** on 1001 elements: the last vector hangs over the end.

# %% [markdown] lang="zh"
# **试一试** 1001 个元素：最后一个向量伸出了末尾。

# %%
x = np.arange(1001, dtype=np.float16)
trace = tilelab.simulate(double, x)
print("equal:", np.array_equal(trace.result, 2 * x))
trace.findings

# %%
puzzle.check(double)

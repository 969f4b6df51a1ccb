# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("3")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands: one block writes one tile of zeros. A tile has `rows` × `cols` elements.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行：一个线程块写了一个全零的分块。一个分块有 `rows` × `cols` 个元素。

# %% tilelab={"role": "solution"}
@tilelang.jit
def outer_add(A, B, rows: int = 32, cols: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M], "float32"]
    B: T.Tensor[[N], "float32"]
    C = T.empty((M, N), "float32")
    ### BEGIN SOLUTION
    #| # One block is not enough: the grid has two axes. And c[i, j] should be a[i] + b[j].
    #| with T.Kernel(1, 1, threads=128) as (bx, by):
    #|     zeros = T.alloc_fragment((rows, cols), "float32")
    #|     T.clear(zeros)
    #|     T.copy(zeros, C[0, 0])
    with T.Kernel(T.ceildiv(N, cols), T.ceildiv(M, rows), threads=128) as (bx, by):
        a = T.alloc_fragment((rows,), "float32")
        b = T.alloc_fragment((cols,), "float32")
        c = T.alloc_fragment((rows, cols), "float32")
        T.copy(A[by * rows], a)
        T.copy(B[bx * cols], b)
        for i, j in T.Parallel(rows, cols):
            c[i, j] = a[i] + b[j]
        T.copy(c, C[by * rows, bx * cols])
    ### END SOLUTION
    return C


# %% [markdown] lang="en"
# **Try it** on a matrix that is wide and low, so that a mix-up of rows and columns shows.

# %% [markdown] lang="zh"
# **试一试**又宽又矮的矩阵：行列一旦弄混，马上就能看出来。

# %%
rng = np.random.default_rng(0)
a, b = rng.standard_normal(40, dtype=np.float32), rng.standard_normal(200, dtype=np.float32)
trace = tilelab.simulate(outer_add, a, b)
print("wrong elements:", np.count_nonzero(trace.result != a[:, None] + b))
trace.findings

# %%
puzzle.check(outer_add)

# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("57")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands; every expert counts 0 tokens and `source` is never written. The first launch has a block for each expert, the second moves the rows.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是每个专家都数出 0 个 token，`source` 从未写过。第一次启动里每个专家一个线程块，第二次启动搬运各行。

# %% tilelab={"role": "solution"}
@tilelang.jit
def expand(ids, X, counts, source, Y, block: int = 128, rows: int = 16):
    M, K, D, E = T.const("M, K, D, E")
    ids: T.Tensor[[M, K], "int32"]
    X: T.Tensor[[M, D], "float32"]
    counts: T.Tensor[[E], "int32"]
    source: T.Tensor[[M * K], "int32"]
    Y: T.Tensor[[M * K, D], "float32"]
    with T.Kernel(E, threads=128) as e:
        start = T.alloc_var("int32")  # where this expert's rows begin
        count = T.alloc_var("int32")  # how many it has so far
        start = 0
        count = 0
        ### BEGIN SOLUTION
        #| # Count the entries of smaller experts: that is the start. Then number this expert's own entries, in order.
        below = T.alloc_fragment((block,), "int32")
        before = T.alloc_fragment((1,), "int32")
        mine = T.alloc_shared((block,), "int32")
        rank = T.alloc_shared((block,), "int32")
        T.clear(before)
        for n in T.serial(T.ceildiv(M * K, block)):
            for i in T.Parallel(block):
                below[i] = 0
                if n * block + i < M * K:
                    if ids[(n * block + i) // K, (n * block + i) % K] < e:
                        below[i] = 1
            T.reduce_sum(below, before, dim=0, clear=False)
        start = before[0]
        for n in T.serial(T.ceildiv(M * K, block)):
            for i in T.Parallel(block):
                mine[i] = 0
                if n * block + i < M * K:
                    if ids[(n * block + i) // K, (n * block + i) % K] == e:
                        mine[i] = 1
            T.cumsum(mine, rank, dim=0)
            for i in T.Parallel(block):
                if mine[i] == 1:
                    source[start + count + rank[i] - 1] = (n * block + i) // K
            count += rank[block - 1]
        ### END SOLUTION
        if T.get_thread_binding() == 0:
            counts[e] = count
    with T.Kernel(T.ceildiv(M * K, rows), threads=128) as bx:
        for i, j in T.Parallel(rows, D):
            if bx * rows + i < M * K:
                ### BEGIN SOLUTION
                #| Y[bx * rows + i, j] = 0.0  # the row of X that belongs here
                Y[bx * rows + i, j] = X[source[bx * rows + i], j]
                ### END SOLUTION


# %% [markdown] lang="en"
# **Try it** with five tokens for eight experts: at least three experts get nothing.

# %% [markdown] lang="zh"
# **试一试**五个 token、八个专家：至少有三个专家分不到任何 token。

# %%
ids = np.array([[6], [2], [6], [0], [2]], np.int32)
x = np.random.default_rng(0).standard_normal((5, 64), dtype=np.float32)
counts, source, y = np.zeros(8, np.int32), np.zeros(5, np.int32), np.zeros((5, 64), np.float32)
trace = tilelab.simulate(expand, ids, x, counts, source, y)
print("counts", trace.outputs.get("counts"), "source", trace.outputs.get("source"))
trace.findings

# %%
puzzle.check(expand)

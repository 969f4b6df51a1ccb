# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("53")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and takes the first 32 numbers, whatever they are. The keys are made and the last pass is there: it takes every key above `prefix`, and of those equal to it the first `need`.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是不管三七二十一取了前 32 个。键已经做好，最后一遍也写好了：取走所有大于 `prefix` 的键，以及等于它的前 `need` 个。

# %% tilelab={"role": "solution"}
@tilelang.jit
def topk(X, k: int = 32, threads: int = 256):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], "float32"]
    chosen = T.empty((M, k), "int32")
    with T.Kernel(M, threads=threads) as m:
        key = T.alloc_shared((N,), "uint32")
        bins = T.alloc_shared((256,), "int32")
        above = T.alloc_shared((256,), "int32")
        digit = T.alloc_shared((1,), "int32")
        taken = T.alloc_shared((threads,), "int32")
        rank = T.alloc_shared((threads,), "int32")
        equal = T.alloc_shared((threads,), "int32")
        order = T.alloc_shared((threads,), "int32")
        prefix = T.alloc_var("uint32")
        fixed = T.alloc_var("uint32")
        need = T.alloc_var("int32")
        done = T.alloc_var("int32")
        ties = T.alloc_var("int32")
        for i in T.Parallel(N):
            bits = T.reinterpret(X[m, i], "uint32")
            key[i] = T.if_then_else(bits >= T.uint32(0x80000000), ~bits, bits | T.uint32(0x80000000))
        prefix = T.uint32(0)
        fixed = T.uint32(0)
        need = k
        ### BEGIN SOLUTION
        #| prefix = T.uint32(0xFFFFFFFF)  # the 32nd largest key: find it, a digit of eight bits at a time
        #| for i in T.Parallel(N):
        #|     key[i] = T.uint32(0xFFFFFFFF)  # … and remove this
        for r in T.serial(4):
            shift = T.cast(24 - 8 * r, "uint32")
            T.clear(bins)
            for i in T.Parallel(N):
                if ((key[i] ^ prefix) & fixed) == T.uint32(0):
                    T.atomic_add(bins[T.cast((key[i] >> shift) & T.uint32(255), "int32")], 1)
            T.cumsum(bins, above, dim=0, reverse=True)
            for d in T.Parallel(256):
                if above[d] >= need and above[d] - bins[d] < need:
                    digit[0] = d
            need = need - (above[digit[0]] - bins[digit[0]])
            prefix = prefix | (T.cast(digit[0], "uint32") << shift)
            fixed = fixed | (T.uint32(255) << shift)
        ### END SOLUTION
        done = 0
        ties = 0
        for n in T.serial(T.ceildiv(N, threads)):
            for i in T.Parallel(threads):
                equal[i] = 0
                if n * threads + i < N:
                    if key[n * threads + i] == prefix:
                        equal[i] = 1
            T.cumsum(equal, order, dim=0)
            for i in T.Parallel(threads):
                taken[i] = 0
                if n * threads + i < N:
                    if key[n * threads + i] > prefix or (equal[i] == 1 and ties + order[i] <= need):
                        taken[i] = 1
            T.cumsum(taken, rank, dim=0)
            for i in T.Parallel(threads):
                if taken[i] == 1:
                    chosen[m, done + rank[i] - 1] = n * threads + i
            done = done + rank[threads - 1]
            ties = ties + order[threads - 1]
    return chosen


# %% [markdown] lang="en"
# **Try it** on small integers: nearly everything is a tie.

# %% [markdown] lang="zh"
# **试一试**小整数：几乎处处同分。

# %%
x = np.random.default_rng(0).integers(0, 4, (2, 100)).astype(np.float32)
trace = tilelab.simulate(topk, x)
print("chosen:", trace.result[0])
print("their scores:", x[0, trace.result[0]].astype(int))
trace.findings

# %%
puzzle.check(topk)

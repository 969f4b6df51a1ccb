# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("9")
puzzle

# %% [markdown] lang="en"
# **The kernel.** 256 numbers become 128 sums, those 64, and so on. Somebody has spared the idle threads a loop, and since then it is wrong now and then.

# %% [markdown] lang="zh"
# **这个内核**把 256 个数加成 128 个，再加成 64 个，如此下去。有人好心让闲着的线程不必进循环，从那以后它就时不时出错。

# %% tilelab={"role": "solution"}
@tilelang.jit
def block_sum(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((T.ceildiv(N, 256),), "float32")
    with T.Kernel(T.ceildiv(N, 256), threads=256) as bx:
        t = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        s[t] = T.if_then_else(bx * 256 + t < N, A[bx * 256 + t], 0.0)
        if t < 128:  # the upper half has nothing to add
            for k in T.serial(8):
                if t < 128 >> k:
                    s[t] += s[t + (128 >> k)]
        if t == 0:
            out[bx] = s[0]
    return out


# %% [markdown] lang="en"
# **See it fail**: values may well come out right here, and the simulator still says what is wrong.

# %% [markdown] lang="zh"
# **看它出错**：数值在这里也许碰巧是对的，但模拟器还是会指出问题。

# %%
a = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
trace = tilelab.simulate(block_sum, a)
print("yours:", trace.result, " right:", np.pad(a, (0, 24)).reshape(4, 256).sum(axis=1))
trace.findings

# %%
puzzle.check(block_sum)

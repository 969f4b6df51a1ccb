# %%
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("19")
puzzle

# %% [markdown] lang="en"
# **Your layout.** It is a function of the sizes that returns a `T.Fragment`: element `(i, j)` → `(thread, register)`.

# %% [markdown] lang="zh"
# **你的布局。** 它是一个以尺寸为参数的函数，返回一个 `T.Fragment`：元素 `(i, j)` → `(线程, 寄存器)`。


# %% tilelab={"role": "solution"}
def operand(M, K):
    def place(i, j):
        # A thread for each column: not what mma wants.
        thread = j % 32
        register = i * (K // 16) + j // 32
        return thread, register

    return T.Fragment((M, K), forward_fn=place)


# %% [markdown] lang="en"
# **Look at it.** Beside it, the same for the instruction itself; do the first 16 × 16 agree?

# %% [markdown] lang="zh"
# **画出来看看。** 旁边放上指令本身的布局：前 16 × 16 一致吗？

# %%
tilelab.view.layout(operand(16, 16))

# %%
puzzle.check(operand)

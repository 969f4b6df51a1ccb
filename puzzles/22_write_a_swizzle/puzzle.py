# %%
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("22")
puzzle

# %% [markdown] lang="en"
# **Your layout.** It is a function of the sizes that returns a `T.Layout`: element `(i, j)` → address, in elements.

# %% [markdown] lang="zh"
# **你的布局。** 它是一个以尺寸为参数的函数，返回一个 `T.Layout`：元素 `(i, j)` → 地址，以元素为单位。


# %% tilelab={"role": "solution"}
def swizzle(M, N):
    ### BEGIN SOLUTION
    #| return T.Layout((M, N), lambda i, j: i * N // 2 + j)  # rows overlap: not even injective yet
    return T.Layout((M, N), lambda i, j: i * N + ((j // 8) ^ (i % 8)) * 8 + j % 8)
    ### END SOLUTION


# %% [markdown] lang="en"
# **Look at it**: on the right, the banks as your layout has them. A column should have all colours.

# %% [markdown] lang="zh"
# **画出来看看**：右边是按你的布局得到的存储体。一列里应当各种颜色都有。

# %%
tilelab.view.layout(swizzle(32, 64))

# %%
puzzle.check(swizzle)

# %% [markdown] lang="en"
# # Quick start
#
# A TileLang kernel, what it computes, what is wrong with it, and which thread holds what. No GPU is needed.

# %% [markdown] lang="zh"
# # 快速上手
#
# 一个 TileLang 内核：它算什么、哪里有错、哪个线程持有什么。不需要 GPU。

# %%
import tilelang
import tilelang.language as T
import torch

import tilelab

# %% [markdown] lang="en"
# ## A kernel
#
# A tiled matrix product: tiles of `A` and `B` come into shared memory, tensor cores multiply them into a fragment, which lives in the registers of 128 threads.

# %% [markdown] lang="zh"
# ## 一个内核
#
# 分块矩阵乘法：`A` 和 `B` 的块先进入共享内存，再由张量核心相乘，累加到一个片段里；片段存放在 128 个线程的寄存器中。

# %%
@tilelang.jit
def matmul(A, B, block_m: int = 64, block_n: int = 64, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), T.float16)
        b = T.alloc_shared((block_k, block_n), T.float16)
        c = T.alloc_fragment((block_m, block_n), T.float32)
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# ## What it computes
#
# The simulator runs the kernel as it is written, on tensors of any kind, and checks every access on the way.

# %% [markdown] lang="zh"
# ## 它算什么
#
# 模拟器按原样运行内核，并在运行中检查每一次访问。

# %%
a, b = torch.randn(128, 96).half(), torch.randn(96, 128).half()
trace = tilelab.simulate(matmul, a, b)
torch.testing.assert_close(trace.result, a.float() @ b.float(), rtol=1e-3, atol=1e-2)
trace.findings

# %% [markdown] lang="en"
# ## Which thread holds what
#
# Point at an element of the accumulator `c`: its thread and its register light up. Point at a thread: so do its elements. A click holds them. The shared tiles `a` and `b` are under *buffer*: watch how the swizzle spreads a column over the banks.

# %% [markdown] lang="zh"
# ## 哪个线程持有什么
#
# 指向累加器 `c` 的一个元素，它所在的线程和寄存器就会亮起；指向一个线程，它的元素也会亮起。单击可以固定。共享内存中的 `a` 和 `b` 在“缓冲区”里：看看重排怎样把一列分散到各个存储体。

# %% lang="en"
tilelab.view.layout(matmul, "c", consts={"M": 128, "N": 128, "K": 96})

# %% lang="zh"
tilelab.view.layout(matmul, "c", consts={"M": 128, "N": 128, "K": 96}, lang="zh")

# %% [markdown] lang="en"
# A layout need not come from a kernel: here is one of your own, and a tensor-core operand by its name.

# %% [markdown] lang="zh"
# 布局不一定来自内核：这里有一个自己写的，还有一个按名字给出的张量核心操作数。

# %%
tilelab.view.layout(lambda i, j: i * 64 + (j // 8 ^ i % 8) * 8 + j % 8, shape=(64, 64))

# %%
tilelab.view.layout("mma.m16n8k16.D")

# %% [markdown] lang="en"
# ## A mistake is found and explained
#
# All threads write one cell here. On a GPU one of them wins, and which one nobody knows.

# %% [markdown] lang="zh"
# ## 错误会被找到并说明
#
# 这里所有线程写同一个位置。在 GPU 上只有一个会留下来，而没有人知道是哪一个。

# %%
@tilelang.jit
def total(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((1,), T.float32)
    with T.Kernel(1, threads=64) as _:
        for i in T.Parallel(N):
            B[0] = A[i]
    return B


for finding in tilelab.check(total, torch.randn(64)):
    print(finding)

# %% [markdown] lang="en"
# ## What the compiler makes of it
#
# Lowering needs no GPU either: this is the CUDA for an A100.

# %% [markdown] lang="zh"
# ## 编译器把它变成什么
#
# 降级同样不需要 GPU：下面是为 A100 生成的 CUDA 代码。

# %%
print(tilelab.lower(matmul, target="sm_80", consts={"M": 128, "N": 128, "K": 96}).source)

# %% [markdown] lang="en"
# Now it is your turn: puzzle 1 waits in `01_copy.ipynb`.

# %% [markdown] lang="zh"
# 现在轮到你了：第 1 题在 `01_copy.ipynb` 里等着。

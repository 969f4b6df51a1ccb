# %%
import numpy as np
import tilelang
import tilelang.language as T

import tilelab

puzzle = tilelab.puzzle("37")
puzzle

# %% [markdown] lang="en"
# **Your kernel.** It runs as it stands, and returns zeros. Threads 128 to 159 are the producer, threads 0 to 127 the consumers; a stage has a barrier that says full and one that says free.

# %% [markdown] lang="zh"
# **你的内核。** 现在它就能运行，只是返回零。128 到 159 号线程是生产者，0 到 127 号是消费者；每一级有一个表示“满了”的屏障和一个表示“空了”的屏障。

# %% tilelab={"role": "solution"}
@tilelang.jit
def matmul(A, B, stages: int = 3, block_m: int = 64, block_n: int = 128, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=256) as (bx, by):
        a = T.alloc_shared((stages, block_m, block_k), "float16")
        b = T.alloc_shared((stages, block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        full = T.alloc_barrier([1] * stages)
        free = T.alloc_barrier([128] * stages)
        steps = T.ceildiv(K, block_k)
        if T.get_thread_binding() >= 128:
            if T.get_thread_binding() < 160:
                ### BEGIN SOLUTION
                #| pass  # bring in tile after tile, as stages become free
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(free[k % stages], (k // stages) % 2 ^ 1)
                    x, y, z, n = by * block_m, bx * block_n, k * block_k, k % stages
                    T.tma_copy(A[x : x + block_m, z : z + block_k], a[n, :, :], barrier=full[n])
                    T.tma_copy(B[z : z + block_k, y : y + block_n], b[n, :, :], barrier=full[n])
                    if T.shuffle_elect(32):
                        T.mbarrier_arrive(full[k % stages])
                ### END SOLUTION
        else:
            T.clear(c)
            ### BEGIN SOLUTION
            #| # Multiply tile after tile, as stages become full.
            for k in T.serial(steps):
                T.mbarrier_wait_parity(full[k % stages], (k // stages) % 2)
                T.gemm(a[k % stages, :, :], b[k % stages, :, :], c)
                T.mbarrier_arrive(free[k % stages])
            ### END SOLUTION
            T.copy(c, C[by * block_m, bx * block_n])
    return C


# %% [markdown] lang="en"
# **Try it** with one tile along K, and with eight.

# %% [markdown] lang="zh"
# **试一试** K 方向只有一块，以及有八块的情形。

# %%
rng = np.random.default_rng(0)
for k in (64, 512):
    a, b = rng.standard_normal((64, k)).astype(np.float16), rng.standard_normal((k, 128)).astype(np.float16)
    trace = tilelab.simulate(matmul, a, b)
    print("largest error:", np.abs(trace.result - a.astype(np.float64) @ b.astype(np.float64)).max())
trace.findings

# %%
puzzle.check(matmul)

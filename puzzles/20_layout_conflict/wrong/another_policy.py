"""Deals the product out to the warps in another way: row and column still do not live with the same threads."""

import tilelang
import tilelang.language as T


@tilelang.jit
def influence(Q, K):
    B, D = T.const("B, D")
    Q: T.Tensor[[B, 64, D], "float16"]
    K: T.Tensor[[B, 64, D], "float16"]
    out = T.empty((B, 64), "float32")
    with T.Kernel(B, threads=128) as bx:
        q = T.alloc_shared((64, D), "float16")
        k = T.alloc_shared((64, D), "float16")
        score = T.alloc_fragment((64, 64), "float32")
        row = T.alloc_fragment((64,), "float32")
        column = T.alloc_fragment((64,), "float32")
        T.copy(Q[bx, 0, 0], q)
        T.copy(K[bx, 0, 0], k)
        T.clear(score)
        T.gemm(q, k, score, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
        T.reduce_max(score, row, dim=1)
        T.reduce_max(score, column, dim=0)
        for i in T.Parallel(64):
            row[i] = row[i] + column[i]
        T.copy(row, out[bx, 0])
    return out

"""Multiplies the scores with the keys once more instead of the values."""

import tilelang
import tilelang.language as T


@tilelang.jit
def two_products(Q, K, V, block_m: int = 64, block_n: int = 64):
    M, N = T.const("M, N")
    Q: T.Tensor[[M, 64], "float16"]
    K: T.Tensor[[N, 64], "float16"]
    V: T.Tensor[[N, 64], "float16"]
    O = T.empty((M, 64), "float32")
    with T.Kernel(T.ceildiv(M, block_m), threads=128) as bx:
        q = T.alloc_shared((block_m, 64), "float16")
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        p = T.alloc_fragment((block_m, block_n), "float16")
        o = T.alloc_fragment((block_m, 64), "float32")
        T.copy(Q[bx * block_m, 0], q)
        T.clear(o)
        for n in T.Pipelined(T.ceildiv(N, block_n), num_stages=1):
            T.copy(K[n * block_n, 0], k)
            T.copy(V[n * block_n, 0], v)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(s, p)
            T.gemm(p, k, o, policy=T.GemmWarpPolicy.FullRow)
        T.copy(o, O[bx * block_m, 0])
    return O

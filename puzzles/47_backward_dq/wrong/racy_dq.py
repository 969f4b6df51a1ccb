"""Reads, adds and writes back: when two blocks do so at the same time, one of the parts is lost."""

import tilelang
import tilelang.language as T


@tilelang.jit
def backward_q(Q, K, V, dO, lse, delta, dQ, block_m: int = 64, block_n: int = 64):
    H, M, N = T.const("H, M, N")
    Q: T.Tensor[[H, M, 64], "float16"]
    K: T.Tensor[[H, N, 64], "float16"]
    V: T.Tensor[[H, N, 64], "float16"]
    dO: T.Tensor[[H, M, 64], "float16"]
    lse: T.Tensor[[H, M], "float32"]
    delta: T.Tensor[[H, M], "float32"]
    dQ: T.Tensor[[H, M, 64], "float32"]
    scale = 0.125
    with T.Kernel(T.ceildiv(N, block_n), H, threads=128) as (bx, h):
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        q = T.alloc_shared((block_m, 64), "float16")
        do = T.alloc_shared((block_m, 64), "float16")
        s = T.alloc_fragment((block_m, block_n), "float32")
        ds = T.alloc_fragment((block_m, block_n), "float32")
        half = T.alloc_fragment((block_m, block_n), "float16")
        dq = T.alloc_fragment((block_m, 64), "float32")
        l = T.alloc_fragment((block_m,), "float32")
        d = T.alloc_fragment((block_m,), "float32")
        T.copy(K[h, bx * block_n, 0], k)
        T.copy(V[h, bx * block_n, 0], v)
        for n in T.serial(T.ceildiv(M, block_m)):
            T.copy(Q[h, n * block_m, 0], q)
            T.copy(dO[h, n * block_m, 0], do)
            T.copy(lse[h, n * block_m : (n + 1) * block_m], l)
            T.copy(delta[h, n * block_m : (n + 1) * block_m], d)
            T.clear(s)
            T.gemm(q, k, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.clear(ds)
            T.gemm(do, v, ds, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_m, block_n):
                half[i, j] = T.cast(T.exp(s[i, j] * scale - l[i]) * (ds[i, j] - d[i]) * scale, "float16")
            T.clear(dq)
            T.gemm(half, k, dq, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_m, 64):
                if n * block_m + i < M:
                    dQ[h, n * block_m + i, j] += dq[i, j]

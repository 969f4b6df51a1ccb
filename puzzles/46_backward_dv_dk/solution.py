"""The solution of puzzle 46, backward: dv and dk. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def backward_kv(Q, K, V, dO, lse, delta, block_m: int = 64, block_n: int = 64):
    H, M, N = T.const("H, M, N")
    Q: T.Tensor[[H, M, 64], "float16"]
    K: T.Tensor[[H, N, 64], "float16"]
    V: T.Tensor[[H, N, 64], "float16"]
    dO: T.Tensor[[H, M, 64], "float16"]
    lse: T.Tensor[[H, M], "float32"]
    delta: T.Tensor[[H, M], "float32"]
    dK = T.empty((H, N, 64), "float32")
    dV = T.empty((H, N, 64), "float32")
    scale = 0.125
    with T.Kernel(T.ceildiv(N, block_n), H, threads=128) as (bx, h):
        k = T.alloc_shared((block_n, 64), "float16")
        v = T.alloc_shared((block_n, 64), "float16")
        q = T.alloc_shared((block_m, 64), "float16")
        do = T.alloc_shared((block_m, 64), "float16")
        l = T.alloc_shared((block_m,), "float32")
        d = T.alloc_shared((block_m,), "float32")
        s = T.alloc_fragment((block_n, block_m), "float32")
        ds = T.alloc_fragment((block_n, block_m), "float32")
        half = T.alloc_fragment((block_n, block_m), "float16")
        dk = T.alloc_fragment((block_n, 64), "float32")
        dv = T.alloc_fragment((block_n, 64), "float32")
        T.copy(K[h, bx * block_n, 0], k)
        T.copy(V[h, bx * block_n, 0], v)
        T.clear(dk)
        T.clear(dv)
        for n in T.serial(T.ceildiv(M, block_m)):
            T.copy(Q[h, n * block_m, 0], q)
            T.copy(dO[h, n * block_m, 0], do)
            T.copy(lse[h, n * block_m : (n + 1) * block_m], l)
            T.copy(delta[h, n * block_m : (n + 1) * block_m], d)
            T.clear(s)
            T.gemm(k, q, s, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_n, block_m):
                s[i, j] = T.exp(s[i, j] * scale - l[j])
            T.copy(s, half)
            T.gemm(half, do, dv, policy=T.GemmWarpPolicy.FullRow)
            T.clear(ds)
            T.gemm(v, do, ds, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_n, block_m):
                half[i, j] = T.cast(s[i, j] * (ds[i, j] - d[j]) * scale, "float16")
            T.gemm(half, q, dk, policy=T.GemmWarpPolicy.FullRow)
        T.copy(dk, dK[h, bx * block_n, 0])
        T.copy(dv, dV[h, bx * block_n, 0])
    return dK, dV

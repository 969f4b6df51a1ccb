"""Walks over whole tiles of the list only."""

import tilelang
import tilelang.language as T


@tilelang.jit
def sparse_mla(Q, KV, ids, block_n: int = 32):
    M, H, N, S = T.const("M, H, N, S")
    Q: T.Tensor[[M, H, 192], "float16"]
    KV: T.Tensor[[N, 192], "float16"]
    ids: T.Tensor[[M, S], "int32"]
    O = T.empty((M, H, 128), "float16")
    scale = 1.44269504 * 192**-0.5
    with T.Kernel(M, threads=128) as x:
        q = T.alloc_shared((H, 192), "float16")
        kv = T.alloc_shared((block_n, 192), "float16")
        v = T.alloc_shared((block_n, 128), "float16")
        p = T.alloc_shared((H, block_n), "float16")
        s = T.alloc_fragment((H, block_n), "float32")
        o = T.alloc_fragment((H, 128), "float32")
        m = T.alloc_fragment((H,), "float32")
        before = T.alloc_fragment((H,), "float32")
        now = T.alloc_fragment((H,), "float32")
        total = T.alloc_fragment((H,), "float32")
        T.copy(Q[x, :, :], q)
        T.clear(o)
        T.clear(total)
        T.fill(m, -1e30)
        for n in T.serial(T.max(S // block_n, 1)):
            for i, j in T.Parallel(block_n, 192):
                kv[i, j] = 0
                if n * block_n + i < S:
                    if ids[x, n * block_n + i] >= 0:
                        kv[i, j] = KV[ids[x, n * block_n + i], j]
            for i, j in T.Parallel(block_n, 128):
                v[i, j] = kv[i, j]
            T.clear(s)
            T.gemm(q, kv, s, transpose_B=True)
            for h, i in T.Parallel(H, block_n):
                if n * block_n + i < S:
                    s[h, i] = T.if_then_else(ids[x, n * block_n + i] >= 0, s[h, i] * scale, -T.infinity("float32"))
                else:
                    s[h, i] = -T.infinity("float32")
            T.copy(m, before)
            T.reduce_max(s, m, dim=1, clear=False)
            for h, i in T.Parallel(H, block_n):
                s[h, i] = T.exp2(s[h, i] - m[h])
            T.reduce_sum(s, now, dim=1)
            T.copy(s, p)
            for h in T.Parallel(H):
                total[h] = total[h] * T.exp2(before[h] - m[h]) + now[h]
            for h, j in T.Parallel(H, 128):
                o[h, j] *= T.exp2(before[h] - m[h])
            T.gemm(p, v, o)
        for h, j in T.Parallel(H, 128):
            o[h, j] = T.if_then_else(total[h] > 0, o[h, j] / total[h], 0.0)
        T.copy(o, O[x, :, :])
    return O

"""Only the rows are divided by their sums."""

import tilelang
import tilelang.language as T


@tilelang.jit
def sinkhorn(L, limit: int = 2000, threads: int = 128):
    B = T.const("B")
    L: T.Tensor[[B, 4, 4], "float32"]
    P = T.empty((B, 4, 4), "float32")
    with T.Kernel(T.ceildiv(B, threads), threads=threads) as bx:
        b = bx * threads + T.get_thread_binding()
        if b < B:
            p = T.alloc_local((4, 4), "float32")
            for i, j in T.grid(4, 4):
                p[i, j] = T.exp(L[b, i, j])
            total = T.alloc_var("float32")
            off = T.alloc_var("float32")
            steps = T.alloc_var("int32")
            off = 1.0
            steps = 0
            while off > 1e-6 and steps < 50:
                for j in T.unroll(4):
                    total = p[0, j] + p[1, j] + p[2, j] + p[3, j]
                    for i in T.unroll(4):
                        p[i, j] = p[i, j] * 1.0
                off = 0.0
                for i in T.unroll(4):
                    total = p[i, 0] + p[i, 1] + p[i, 2] + p[i, 3]
                    off = T.max(off, T.abs(total - 1.0))
                    for j in T.unroll(4):
                        p[i, j] = p[i, j] / total
                steps += 1
            for i, j in T.grid(4, 4):
                P[b, i, j] = p[i, j]
    return P

"""What was chosen is never taken out, so each round finds it again."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gate(S, k: int = 4, keep: int = 2, groups: int = 4, rows: int = 16):
    M, E = T.const("M, E")
    S: T.Tensor[[M, E], "float32"]
    chosen = T.empty((M, k), "int32")
    weight = T.empty((M, k), "float32")
    with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
        s = T.alloc_fragment((rows, E), "float32")
        left = T.alloc_fragment((rows, E), "float32")  # what may still be chosen; −inf: no more
        best = T.alloc_fragment((rows,), "float32")
        first = T.alloc_fragment((rows,), "int32")
        ids = T.alloc_fragment((rows, k), "int32")
        w = T.alloc_fragment((rows, k), "float32")
        T.copy(S[bx * rows, 0], s)
        at = T.alloc_fragment((rows, E), "int32")
        open_group = T.alloc_fragment((rows, E), "int32")
        total = T.alloc_fragment((rows,), "float32")
        T.clear(open_group)
        T.clear(total)
        T.copy(s, left)
        for _ in T.serial(keep):
            T.reduce_max(left, best, dim=1)
            for i, j in T.Parallel(rows, E):
                at[i, j] = T.if_then_else(left[i, j] == best[i], j, E)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(rows, E):
                if j // (E // groups) == first[i] // (E // groups):
                    open_group[i, j] = 1
                    left[i, j] = -T.infinity("float32")
        for i, j in T.Parallel(rows, E):
            left[i, j] = T.if_then_else(open_group[i, j] == 1, s[i, j], -T.infinity("float32"))
        for n in T.serial(k):
            T.reduce_max(left, best, dim=1)
            for i, j in T.Parallel(rows, E):
                at[i, j] = T.if_then_else(left[i, j] == best[i], j, E)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(rows, E):
                if j == E + first[i]:
                    left[i, j] = -T.infinity("float32")
            for i, j in T.Parallel(rows, k):
                if j == n:
                    ids[i, j] = first[i]
                    w[i, j] = best[i]
            for i in T.Parallel(rows):
                total[i] += best[i]
        for i, j in T.Parallel(rows, k):
            w[i, j] = w[i, j] / T.max(total[i], 1e-30)
        T.copy(ids, chosen[bx * rows, 0])
        T.copy(w, weight[bx * rows, 0])
    return chosen, weight

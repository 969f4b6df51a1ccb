"""The solution of puzzle 60, a moe layer. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def moe(X, Wg, W1, W2, tile: int = 64):
    M, F = T.const("M, F")
    X: T.Tensor[[M, 64], "float16"]
    Wg: T.Tensor[[64, 16], "float16"]
    W1: T.Tensor[[16, 2, 64, F], "float16"]
    W2: T.Tensor[[16, F, 64], "float16"]
    Y = T.empty((M, 64), "float32")
    ids = T.alloc_global((M, 2), "int32")
    weight = T.alloc_global((M, 2), "float32")
    starts = T.alloc_global((17,), "int32")
    source = T.alloc_global((2 * M,), "int32")  # the entry (token · 2 + choice) of each sorted row
    H = T.alloc_global((2 * M, F), "float16")
    Z = T.alloc_global((M, 2, 64), "float32")
    # Gate: the two best of 16 experts, and their softmax.
    with T.Kernel(T.ceildiv(M, tile), threads=128) as bx:
        x = T.alloc_shared((tile, 64), "float16")
        g = T.alloc_shared((64, 16), "float16")
        s = T.alloc_fragment((tile, 16), "float32")
        at = T.alloc_fragment((tile, 16), "int32")
        best = T.alloc_fragment((tile,), "float32")
        second = T.alloc_fragment((tile,), "float32")
        first = T.alloc_fragment((tile,), "int32")
        T.copy(X[bx * tile, 0], x)
        T.copy(Wg, g)
        T.clear(s)
        T.gemm(x, g, s, policy=T.GemmWarpPolicy.FullRow)
        for c in T.unroll(2):
            if c == 0:
                T.reduce_max(s, best, dim=1)
            else:
                T.copy(best, second)
                T.reduce_max(s, best, dim=1)
            for i, j in T.Parallel(tile, 16):
                at[i, j] = T.if_then_else(s[i, j] == best[i], j, 16)
            T.reduce_min(at, first, dim=1)
            for i, j in T.Parallel(tile, 16):
                if j == first[i]:
                    s[i, j] = -T.infinity("float32")
            for i in T.Parallel(tile):
                if bx * tile + i < M:
                    ids[bx * tile + i, c] = first[i]
        for i in T.Parallel(tile):
            if bx * tile + i < M:
                weight[bx * tile + i, 0] = 1.0 / (1.0 + T.exp(best[i] - second[i]))
                weight[bx * tile + i, 1] = 1.0 / (1.0 + T.exp(second[i] - best[i]))
    # Route: the entries of each expert, in order.
    with T.Kernel(16, threads=128) as e:
        below = T.alloc_fragment((128,), "int32")
        before = T.alloc_fragment((1,), "int32")
        mine = T.alloc_shared((128,), "int32")
        rank = T.alloc_shared((128,), "int32")
        count = T.alloc_var("int32")
        T.clear(before)
        for n in T.serial(T.ceildiv(2 * M, 128)):
            for i in T.Parallel(128):
                below[i] = 0
                if n * 128 + i < 2 * M:
                    if ids[(n * 128 + i) // 2, (n * 128 + i) % 2] < e:
                        below[i] = 1
            T.reduce_sum(below, before, dim=0, clear=False)
        count = before[0]
        if T.get_thread_binding() == 0:
            starts[e] = count
        for n in T.serial(T.ceildiv(2 * M, 128)):
            for i in T.Parallel(128):
                mine[i] = 0
                if n * 128 + i < 2 * M:
                    if ids[(n * 128 + i) // 2, (n * 128 + i) % 2] == e:
                        mine[i] = 1
            T.cumsum(mine, rank, dim=0)
            for i in T.Parallel(128):
                if mine[i] == 1:
                    source[count + rank[i] - 1] = n * 128 + i
            count = count + rank[127]
        if e == 15:
            if T.get_thread_binding() == 0:
                starts[16] = count
    # Up: gate and value of each expert's rows, and SwiGLU.
    with T.Kernel(F // 64, T.ceildiv(M, tile), 16, threads=128) as (bx, by, e):
        x = T.alloc_shared((tile, 64), "float16")
        w = T.alloc_shared((64, 64), "float16")
        v = T.alloc_shared((64, 64), "float16")
        gate = T.alloc_fragment((tile, 64), "float32")
        up = T.alloc_fragment((tile, 64), "float32")
        row = starts[e] + by * tile
        if row < starts[e + 1]:
            for i, j in T.Parallel(tile, 64):
                x[i, j] = 0
                if row + i < starts[e + 1]:
                    x[i, j] = X[source[row + i] // 2, j]
            T.copy(W1[e, 0, :, bx * 64 : bx * 64 + 64], w)
            T.copy(W1[e, 1, :, bx * 64 : bx * 64 + 64], v)
            T.clear(gate)
            T.clear(up)
            T.gemm(x, w, gate)
            T.gemm(x, v, up)
            for i, j in T.Parallel(tile, 64):
                if row + i < starts[e + 1]:
                    H[row + i, bx * 64 + j] = T.cast(gate[i, j] / (1.0 + T.exp(-gate[i, j])) * up[i, j], "float16")
    # Down: back to 64 columns, each row to the place of its entry.
    with T.Kernel(T.ceildiv(M, tile), 16, threads=128) as (by, e):
        h = T.alloc_shared((tile, 64), "float16")
        w = T.alloc_shared((64, 64), "float16")
        z = T.alloc_fragment((tile, 64), "float32")
        row = starts[e] + by * tile
        if row < starts[e + 1]:
            T.clear(z)
            for k in T.serial(F // 64):
                for i, j in T.Parallel(tile, 64):
                    h[i, j] = 0
                    if row + i < starts[e + 1]:
                        h[i, j] = H[row + i, k * 64 + j]
                T.copy(W2[e, k * 64 : k * 64 + 64, :], w)
                T.gemm(h, w, z)
            for i, j in T.Parallel(tile, 64):
                if row + i < starts[e + 1]:
                    Z[source[row + i] // 2, source[row + i] % 2, j] = z[i, j]
    # Combine: the two answers, by weight.
    with T.Kernel(T.ceildiv(M, tile), threads=128) as bx:
        for i, j in T.Parallel(tile, 64):
            if bx * tile + i < M:
                m = bx * tile + i
                Y[m, j] = weight[m, 0] * Z[m, 0, j] + weight[m, 1] * Z[m, 1, j]
    return Y

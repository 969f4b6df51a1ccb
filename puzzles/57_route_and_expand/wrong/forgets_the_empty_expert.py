"""An expert without tokens leaves early, and its count is never written."""

import tilelang
import tilelang.language as T


@tilelang.jit
def expand(ids, X, counts, source, Y, block: int = 128, rows: int = 16):
    M, K, D, E = T.const("M, K, D, E")
    ids: T.Tensor[[M, K], "int32"]
    X: T.Tensor[[M, D], "float32"]
    counts: T.Tensor[[E], "int32"]
    source: T.Tensor[[M * K], "int32"]
    Y: T.Tensor[[M * K, D], "float32"]
    with T.Kernel(E, threads=128) as e:
        start = T.alloc_var("int32")  # where this expert's rows begin
        count = T.alloc_var("int32")  # how many it has so far
        start = 0
        count = 0
        below = T.alloc_fragment((block,), "int32")
        before = T.alloc_fragment((1,), "int32")
        mine = T.alloc_shared((block,), "int32")
        rank = T.alloc_shared((block,), "int32")
        T.clear(before)
        for n in T.serial(T.ceildiv(M * K, block)):
            for i in T.Parallel(block):
                below[i] = 0
                if n * block + i < M * K:
                    if ids[(n * block + i) // K, (n * block + i) % K] < e:
                        below[i] = 1
            T.reduce_sum(below, before, dim=0, clear=False)
        start = before[0]
        for n in T.serial(T.ceildiv(M * K, block)):
            for i in T.Parallel(block):
                mine[i] = 0
                if n * block + i < M * K:
                    if ids[(n * block + i) // K, (n * block + i) % K] == e:
                        mine[i] = 1
            T.cumsum(mine, rank, dim=0)
            for i in T.Parallel(block):
                if mine[i] == 1:
                    source[start + count + rank[i] - 1] = (n * block + i) // K
            count += rank[block - 1]
        if T.get_thread_binding() == 0 and count > 0:
            counts[e] = count
    with T.Kernel(T.ceildiv(M * K, rows), threads=128) as bx:
        for i, j in T.Parallel(rows, D):
            if bx * rows + i < M * K:
                Y[bx * rows + i, j] = X[source[bx * rows + i], j]

"""Takes the tile's number for the phase: stage 1 is then waited for in its second round first."""

import tilelang
import tilelang.language as T


@tilelang.jit
def column_sum(A, rows: int = 32, cols: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], "float16"]
    out = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, cols), threads=128) as bx:
        s = T.alloc_shared((2, rows, cols), "float16")
        tile = T.alloc_fragment((rows, cols), "float32")
        total = T.alloc_fragment((cols,), "float32")
        full = T.alloc_barrier([1, 1])
        tiles = T.ceildiv(M, rows)
        T.clear(total)
        T.tma_copy(A[0:rows, bx * cols : (bx + 1) * cols], s[0, :, :], barrier=full[0])
        if T.shuffle_elect(128):
            T.mbarrier_arrive(full[0])
        for k in T.serial(tiles):
            if k + 1 < tiles:
                T.tma_copy(
                    A[(k + 1) * rows : (k + 2) * rows, bx * cols : (bx + 1) * cols], s[(k + 1) % 2, :, :], barrier=full[(k + 1) % 2]
                )
                if T.shuffle_elect(128):
                    T.mbarrier_arrive(full[(k + 1) % 2])
            T.mbarrier_wait_parity(full[k % 2], k % 2)
            for i, j in T.Parallel(rows, cols):
                tile[i, j] = s[k % 2, i, j]
            T.reduce_sum(tile, total, dim=0, clear=False)
            T.sync_threads()
        T.copy(total, out[bx * cols])
    return out

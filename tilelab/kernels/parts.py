"""Pieces that several kernels share: the order in which tiles are visited, and small steps of warp-specialised roles."""

from typing import Any

import tilelang.language as T


def place(t: Any, rows: Any, columns: Any, group: int) -> tuple[Any, Any]:
    """Tile number → (row, column): panels of ``group`` rows, column by column within a panel, so that blocks that run together share the
    L2."""
    panel = t // (group * columns)
    height = T.min(group, rows - panel * group)
    left = t - panel * (group * columns)
    return panel * group + left % height, left // height


@T.macro
def release(barriers, s):
    """One lane of each warp arrives."""
    if T.shuffle_elect(32):
        T.mbarrier_arrive(barriers[s])


@T.macro
def product(full, s, phase, A, B, C, clear):
    """Starts ``C (+)= A Bᵀ`` as soon as stage s is there."""
    T.mbarrier_wait_parity(full[s], phase)
    T.wgmma_gemm(A, B, C, transpose_B=True, clear_accum=clear)


@T.macro
def publish(P, p, barriers, s):
    """Puts a fragment into shared memory, for another warpgroup's products."""
    T.copy(P, p)
    T.fence_proxy_async()
    T.mbarrier_arrive(barriers[s])


@T.macro
def scale_rows(X, factor):
    """Multiplies each row of a fragment."""
    for r, c in T.Parallel(X.shape[0], X.shape[1]):
        X[r, c] *= factor[r]

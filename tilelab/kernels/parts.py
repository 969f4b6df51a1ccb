"""Pieces that several persistent kernels share: the order in which tiles are visited, and the release of a ring's stage."""

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

"""The tables of operations: what a Program may hold and what the positions of its arguments mean."""

from __future__ import annotations

from collections.abc import Mapping

#: Tile operation → names of its positional arguments (TileLang 0.1.15). A trailing ``*`` takes the rest.
TILE_OPS: Mapping[str, tuple[str, ...]] = {
    "copy": ("src", "dst"),
    "async_copy": ("src", "dst"),
    "tma_copy": ("src", "dst"),
    "fill": ("dst", "value"),
    "gemm": (
        "a", "b", "c", "transpose_a", "transpose_b", "m", "n", "k", "policy", "clear_accum", "cn_row", "cn_col", "wg_wait", "mbar*",
    ),
    "reduce": ("src", "dst", "kind", "dim", "clear"),
}  # fmt: skip


def arg(op: str, args: tuple[object, ...], name: str) -> object:
    """Return the argument called ``name`` of tile operation ``op``."""
    return args[TILE_OPS[op].index(name)]

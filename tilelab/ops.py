"""The table of tile operations: what the positions of their arguments mean (TileLang 0.1.15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DENSE = ("a", "b", "c", "transpose_a", "transpose_b", "m", "n", "k", "policy", "clear_accum", "mbar", "c_row", "c_col")
_SCALED = (*_DENSE, "scale_a", "scale_b", "k_start")
_SPARSE = ("a", "e", "b", "c", "transpose_a", "transpose_e", "transpose_b", "m", "n", "k", "policy", "clear_accum")
_SCAN = ("src", "dst", "dim", "reverse")
_PAIR = ("src", "dst")
_IM2COL = ("img", "col", "nhw_step", "c_step", "kernel", "stride", "dilation", "pad")

#: Tile operation → names of its positional arguments. A name ending in ``?`` may be missing.
#:
#: ``m``, ``n``, ``k``, ``policy`` and the flags are constants, except ``clear_accum``, which may be an expression;
#: ``mbar`` is a constant 0 where there is none; the kind of a ``reduce`` is a :class:`tilelab.ir.Str`.
TILE_OPS: Mapping[str, tuple[str, ...]] = {
    "copy": _PAIR,
    "async_copy": _PAIR,
    "tma_copy": _PAIR,
    "transpose": _PAIR,
    "fill": ("dst", "value"),
    "im2col": _IM2COL,
    "c2d_im2col": _IM2COL,
    "gemm": _DENSE,
    "wgmma_gemm": _DENSE,
    "tcgen05_gemm": _DENSE,
    "gemm_blockscaled": _SCALED,
    "tcgen05_gemm_blockscaled": _SCALED,
    "gemm_sp": _SPARSE,
    "wgmma_gemm_sp": _SPARSE,
    "tcgen05_gemm_sp": _SPARSE,
    "reduce": ("src", "dst", "kind", "dim", "clear"),
    "cumsum": _SCAN,
    "cummax": _SCAN,
    "atomicadd": _PAIR,
    "atomicmax": _PAIR,
    "atomicmin": _PAIR,
    "reducer_init": ("dst", "init?"),
    "finalize_reducer": ("dst",),
    "finalize_reducer_v2": ("src", "dst"),
}

#: How a user writes each operation, for messages.
SPELLING: Mapping[str, str] = {
    **{op: f"T.{op}" for op in TILE_OPS},
    "reduce": "T.reduce",
    "atomicadd": "T.atomic_add",
    "atomicmax": "T.atomic_max",
    "atomicmin": "T.atomic_min",
    "finalize_reducer_v2": "T.finalize_reducer",
}


def position(op: str, name: str) -> int:
    """Return the position of the argument called ``name`` of tile operation ``op``."""
    return [n.rstrip("?") for n in TILE_OPS[op]].index(name)


def arg(op: str, args: tuple[Any, ...], name: str) -> Any:
    """Return the argument called ``name`` of tile operation ``op``; None where an optional one is missing."""
    at = position(op, name)
    return args[at] if at < len(args) else None

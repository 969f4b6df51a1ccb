"""Reductions of a tile along one dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import arg
from tilelab.sim import arith, dtypes, numbers
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.tileops.gemm import Cell
from tilelab.sim.tileops.space import Space, per_thread


def _quiet(plain: Callable[..., Value], skipping: Callable[..., Value]) -> Callable[[Value, int, bool], Value]:
    """A maximum or minimum in which NaN loses, as CUDA's fmax and fmin have it (unless it is to propagate)."""

    def fold(x: Value, axis: int, propagate: bool) -> Value:
        out = plain(x, axis=axis)
        if x.dtype.kind == "f" and not propagate and np.isnan(out).any():
            return skipping(x, axis=axis)
        return out

    return fold


_MAX, _MIN = _quiet(np.maximum.reduce, np.fmax.reduce), _quiet(np.minimum.reduce, np.fmin.reduce)

#: Kind → (fold along an axis, combine two results). All-NaN rows of a maximum give what it starts from.
KINDS: Mapping[str, tuple[Callable[[Value, int, bool], Value], Callable[[Value, Value], Value]]] = {
    "sum": (lambda x, axis, p: np.add.reduce(x, axis=axis), np.add),
    "abssum": (lambda x, axis, p: np.add.reduce(np.abs(x), axis=axis), np.add),
    "max": (_MAX, np.fmax),
    "min": (_MIN, np.fmin),
    "absmax": (lambda x, axis, p: _MAX(np.abs(x), axis, p), np.fmax),
    "bitand": (lambda x, axis, p: np.bitwise_and.reduce(x, axis=axis), np.bitwise_and),
    "bitor": (lambda x, axis, p: np.bitwise_or.reduce(x, axis=axis), np.bitwise_or),
    "bitxor": (lambda x, axis, p: np.bitwise_xor.reduce(x, axis=axis), np.bitwise_xor),
}


def start(kind: str, dtype: str) -> Any:
    """What a reduction starts from when it is cleared."""
    d = dtypes.info(dtype)
    if kind in ("max", "min"):
        if d.kind == "f":
            return d.carrier.type(-np.inf if kind == "max" else np.inf)
        low, high = (-(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1) if d.kind == "i" else (0, (1 << d.bits) - 1)
        return d.carrier.type(low if kind == "max" else high)
    return d.carrier.type(-1 if kind == "bitand" and d.kind == "i" else (1 << d.bits) - 1 if kind == "bitand" else 0)


def reduce(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``dst = fold(src along dim)``, or combined with ``dst`` where it is not cleared."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    kind, dim, clear = (_plain(arg(s.op, s.args, n)) for n in ("kind", "dim", "clear"))
    if kind not in KINDS:
        raise Unsupported(f"T.reduce of kind {kind}", s.loc)
    what = f"T.reduce_{kind}"
    tile = not per_thread(comp, s)
    sp = Space(comp, ctx, comp.exprs(src.extents, ctx), what, tile=tile)
    read = sp.access(src, sp.vars, "read")
    keep = tuple(d for d in range(len(src.mins)) if d != dim)
    out = Space(comp, ctx, tuple(sp.extents[d] for d in keep), what, tile=tile)
    at: tuple[Ex | None, ...] = out.vars
    if len(dst.mins) == len(src.mins):
        at = (*out.vars[:dim], None, *out.vars[dim:])
    elif not keep and len(dst.mins) == 1:
        at = (None,)
    old, write = out.access(dst, at, "read"), out.access(dst, at, "write")
    fold, combine = KINDS[kind]
    propagate = bool(s.attrs.get("nan_propagate", False))
    if propagate and kind in ("max", "min", "absmax"):
        combine = np.minimum if kind == "min" else np.maximum
    axis = sp.axes[dim]
    wide = dtypes.carrier(dst.buffer.dtype)
    ints = dtypes.info(src.buffer.dtype).kind in "iub"
    finish = arith.finisher(dst.buffer.dtype)
    first = start(kind, dst.buffer.dtype)
    floats = dtypes.info(dst.buffer.dtype).kind == "f"
    cell, result = Cell(), Cell()
    # lanes that are masked off must not matter, only be left alone: the write is masked
    gather = sp.runs(cell.keep(read.read))

    def store(fr: Frame) -> None:
        x = result.value
        if not clear:
            x = combine(old.read(fr), x)
        elif kind in ("max", "min", "absmax") and floats and not propagate:
            x = np.where(np.isnan(x), first, x)
        write.write(fr, finish(x))

    put = out.runs(store)
    watch = numbers.product_watch(ctx, dst.buffer.name, what) if floats and kind in ("sum", "abssum") else None

    def run(fr: Frame) -> None:
        gather(fr)
        x = cell.value
        n = sp.extents[dim].fn(fr)
        if x.shape[axis] != n:
            x = np.broadcast_to(x, (*x.shape[:axis], n, *x.shape[axis + 1 :]))
        if ints and x.dtype != wide:
            x = x.astype(wide)
        result.value = fold(x, axis, propagate)
        if watch is not None and fr.run.checks:
            watch(fr, finish(result.value), (x,))
        put(fr)

    return Op(run)


def _plain(e: Any) -> Any:
    return e.value if isinstance(e, ir.Const | ir.Str) else e


TABLE = {"reduce": reduce}

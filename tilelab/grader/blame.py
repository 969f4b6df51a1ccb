"""Which line, and which block, should have written an element: interval arithmetic over the captured Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.ops import TILE_OPS

Ints = NDArray[np.int64]
#: The least and the greatest value of an expression, for each block.
Span = tuple[Ints, Ints]


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """A statement that may write an element; ``block`` where exactly one block can."""

    loc: ir.SourceLoc | None
    block: tuple[int, int, int] | None


def writer_of(program: ir.Program, param: ir.Param, index: tuple[int, ...]) -> Writer | None:
    """Return the last statement of the Program that writes element ``index`` of ``param``, or None if none is known to."""
    found: Writer | None = None
    for launch in (n for n in ir.walk(program) if isinstance(n, ir.Launch)):
        grid = tuple(_const(e) or 0 for e in launch.grid)
        if min(grid) <= 0 or int(np.prod(grid)) > 1 << 22:
            continue
        axes = [np.arange(g).reshape((g,) + (1,) * (len(grid) - 1 - i)) for i, g in enumerate(grid)]
        spans: dict[ir.Var, Span] = {v: (a, a) for v, a in zip(launch.block_vars, axes, strict=False)}
        for loc, mins, maxs in _writes(launch.body, param, spans):
            found = _match(loc, mins, maxs, index, grid) or found
    return found


def _match(
    loc: ir.SourceLoc | None, mins: list[Span | None], maxs: list[Span | None], index: tuple[int, ...], grid: tuple[int, ...]
) -> Writer | None:
    if len(mins) != len(index):
        return None
    inside: Any = np.ones(grid, bool)
    known = True
    for low, high, i in zip(mins, maxs, index, strict=True):
        if low is None or high is None:
            known = False
            continue
        inside = inside & (low[0] <= i) & (i <= high[1])
    if not inside.any():
        return None
    block = None
    if known and int(inside.sum()) == 1:
        at = [int(x) for x in np.unravel_index(int(np.argmax(inside)), grid)]
        x, y, z = [*at, 0, 0][:3]
        block = (x, y, z)
    return Writer(loc=loc, block=block)


def _writes(
    body: ir.Body, param: ir.Param, spans: Mapping[ir.Var, Span]
) -> Iterator[tuple[ir.SourceLoc | None, list[Span | None], list[Span | None]]]:
    """Yield the location and the index spans of every write to ``param``; ``spans`` grows with loops and bindings."""
    spans = dict(spans)
    for s in body:
        if isinstance(s, ir.Bind):
            span = _span(s.value, spans)
            if span is not None:
                spans[s.var] = span
        elif isinstance(s, ir.For):
            inner = dict(spans)
            low, extent = _span(s.min, spans), _span(s.extent, spans)
            if low is not None and extent is not None and s.step is None:
                inner[s.var] = (low[0], np.maximum(low[1] + extent[1] - 1, low[0]))
            yield from _writes(s.body, param, inner)
        elif isinstance(s, ir.Store) and _is(s.buffer, param):
            at = [_span(i, spans) for i in s.indices]
            yield s.loc, at, at
        elif isinstance(s, ir.Tile) and "dst" in TILE_OPS.get(s.op, ()):
            dst = s.args[TILE_OPS[s.op].index("dst")]
            if isinstance(dst, ir.Region) and _is(dst.buffer, param):
                lows = [_span(m, spans) for m in dst.mins]
                extents = [_span(e, spans) for e in dst.extents]
                highs = [None if a is None or b is None else (a[0], a[1] + b[1] - 1) for a, b in zip(lows, extents, strict=True)]
                yield s.loc, lows, highs
        else:
            for name in ("body", "then", "orelse"):
                yield from _writes(getattr(s, name, ()), param, spans)


def _is(buffer: ir.Buffer, param: ir.Param) -> bool:
    return param.buffer is not None and (buffer is param.buffer or buffer.data is param.buffer.data)


def _const(e: ir.Expr) -> int | None:
    return int(e.value) if isinstance(e, ir.Const) else None


def _span(e: ir.Expr, spans: Mapping[ir.Var, Span]) -> Span | None:
    if isinstance(e, ir.Const):
        value = np.asarray(int(e.value))
        return value, value
    if isinstance(e, ir.Var):
        return spans.get(e)
    if isinstance(e, ir.Cast):
        return _span(e.a, spans)
    if isinstance(e, ir.Bin) and e.op in _SPANS:
        left, right = _span(e.a, spans), _span(e.b, spans)
        return None if left is None or right is None else _SPANS[e.op](left, right)
    return None


def _corners(f: Callable[[Any, Any], Any]) -> Callable[[Span, Span], Span]:
    def apply(a: Span, b: Span) -> Span:
        values = np.broadcast_arrays(*(f(x, y) for x in a for y in b))
        return np.minimum.reduce(values), np.maximum.reduce(values)

    return apply


def _division(a: Span, b: Span) -> Span | None:
    return _corners(np.floor_divide)(a, b) if np.all(b[0] > 0) else None


def _remainder(a: Span, b: Span) -> Span | None:
    if not (np.all(b[0] > 0) and np.array_equal(b[0], b[1])):
        return None
    if np.array_equal(a[0], a[1]):
        r = a[0] % b[0]
        return r, r
    return np.zeros_like(b[0]), b[0] - 1


_SPANS: Mapping[str, Callable[[Span, Span], Span | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _corners(np.multiply),
    "min": lambda a, b: (np.minimum(a[0], b[0]), np.minimum(a[1], b[1])),
    "max": lambda a, b: (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])),
    "floordiv": _division,
    "floormod": _remainder,
    "div": lambda a, b: _division(a, b) if np.all(a[0] >= 0) else None,
    "mod": lambda a, b: _remainder(a, b) if np.all(a[0] >= 0) else None,
}

"""Where a step writes, and from which operands the first NaN or Inf came: small readings of the program's expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import arg
from tilelab.sim.context import Context
from tilelab.sim.lanes import Frame

Interval = tuple[int, int]
_MOST = 6  # operands told of one element


# --------------------------------------------------------------------------------------------------- windows
def window(
    comp: Any, ctx: Context, where: ir.Region | ir.Store | Any, loops: tuple[ir.For, ...]
) -> Callable[[Frame], tuple[slice, ...] | None]:
    """Return the function that gives the box that ``where`` touches, clipped to its buffer; None where that is not known."""
    uniform = {v for v, (ex, _) in comp.scope.items() if not ex.axes or all(a < len(ctx.grid.blocks) for a in ex.axes)}
    evaluate = {v: comp.scope[v][0].fn for n in ir.walk(where) if isinstance(n, ir.Var) for v in (n,) if v in uniform}

    def at(fr: Frame) -> tuple[slice, ...] | None:
        env: dict[ir.Var, Interval] = {}
        for v, fn in evaluate.items():
            x = np.asarray(fn(fr)).reshape(-1)
            if x.size == 1 and x.dtype.kind in "iu":
                env[v] = (int(x[0]), int(x[0]))
        for loop in loops:
            lo, n = interval(loop.min, env), interval(loop.extent, env)
            if lo is not None and n is not None:
                env[loop.var] = (lo[0], lo[1] + max(0, n[1] - 1))
        box = []
        if isinstance(where, ir.Region):
            for low, extent in zip(where.mins, where.extents, strict=True):
                a, n = interval(low, env), interval(extent, env)
                box.append(None if a is None or n is None else (a[0], a[1] + n[1]))
        else:
            for i in where.indices:
                a = interval(i, env)
                box.append(None if a is None else (a[0], a[1] + 1))
        if any(b is None for b in box):
            return None
        return tuple(slice(max(0, b[0]), max(0, b[1])) for b in box if b is not None)

    return at


def interval(e: ir.Expr, env: Mapping[ir.Var, Interval]) -> Interval | None:
    """Bounds of an integer expression, where they are known."""
    if isinstance(e, ir.Const):
        return (int(e.value), int(e.value)) if isinstance(e.value, int) else None
    if isinstance(e, ir.Var):
        return env.get(e)
    if isinstance(e, ir.Cast):
        return interval(e.a, env)
    if not isinstance(e, ir.Bin):
        return None
    a, b = interval(e.a, env), interval(e.b, env)
    if a is None or b is None:
        return (0, b[0] - 1) if e.op == "floormod" and b is not None and b[0] == b[1] > 0 else None
    if e.op in _ENDS:
        ends = [_ENDS[e.op](x, y) for x in a for y in b]
        return min(ends), max(ends)
    if b[0] == b[1] and b[0] > 0:
        n = b[0]
        if e.op in ("floordiv", "div") and (e.op == "floordiv" or a[0] >= 0):
            return a[0] // n, a[1] // n
        if e.op in ("floormod", "mod") and a[0] >= 0:
            return (a[0] % n, a[1] % n) if a[0] // n == a[1] // n else (0, n - 1)
    return None


_ENDS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "min": min, "max": max,
}  # fmt: skip


# -------------------------------------------------------------------------------------------------- operands
def operands(site: Any, fr: Frame, recorder: Any, name: str, index: tuple[int, ...]) -> list[dict[str, Any]]:
    """The elements that went into ``name[index]`` at this step, each with its value, as far as the statement tells."""
    comp = site.comp
    for n in ir.walk(site.s):
        writes = n.buffer if isinstance(n, ir.Store) else None
        if isinstance(n, ir.Tile):
            writes = next((a.buffer for a in n.args if isinstance(a, ir.Region) and "w" in a.access), None)
        if writes is None or writes.data not in comp.buffers or comp.name_of(comp.buffers[writes.data]) != name:
            continue
        look = _Look(site, fr, recorder)
        try:
            found = _of_store(n, index, look) if isinstance(n, ir.Store) else _of_tile(n, index, look)
        except (LookupError, TypeError, ValueError):
            found = []
        if found:
            return found[:_MOST]
    return []


class _Look:
    """Values of buffers before the step."""

    def __init__(self, site: Any, fr: Frame, recorder: Any) -> None:
        self.site, self.fr, self.recorder = site, fr, recorder
        self.seen: dict[ir.Var, Any] = {}

    def array(self, buffer: ir.Buffer) -> Any:
        if buffer.data not in self.seen:
            value = self.recorder.earlier(self.site, self.fr, buffer.data)
            self.seen[buffer.data] = np.ma.getdata(value) if value is not None else self.fr.mem[self.site.comp.buffers[buffer.data]].full()
        return self.seen[buffer.data]

    def scalar(self, v: ir.Var) -> int:
        x = np.asarray(self.site.comp.scope[v][0].fn(self.fr)).reshape(-1)
        if x.size != 1:
            raise LookupError(v.name)
        return int(x[0])

    def told(self, buffer: ir.Buffer, index: tuple[int, ...]) -> dict[str, Any]:
        array = self.array(buffer)
        full = (*(0,) * (array.ndim - len(index)), *index)
        name = self.site.comp.name_of(self.site.comp.buffers[buffer.data])
        return {"buffer": name, "index": list(index), "value": _number(array[full])}


def _number(value: Any) -> Any:
    x = float(value)
    return x if np.isfinite(x) else "NaN" if np.isnan(x) else "Inf" if x > 0 else "-Inf"


def _of_store(s: ir.Store, index: tuple[int, ...], look: _Look) -> list[dict[str, Any]]:
    """The loads of a store, at the iteration that wrote the element."""
    env: dict[ir.Var, int] = {}
    index = index[len(index) - len(s.indices) :]
    for e, at in zip(s.indices, index, strict=True):
        _solve(e, at, env, look)
    out = []
    for n in ir.walk(s.value):
        if isinstance(n, ir.Load):
            told = look.told(n.buffer, tuple(_whole(i, env, look) for i in n.indices))
            if told not in out:
                out.append(told)
    return out


def _solve(e: ir.Expr, at: int, env: dict[ir.Var, int], look: _Look) -> None:
    """Find the loop variable of an index such as ``i``, ``base + i`` or ``i * 4``."""
    loops = {n.var for n in ir.walk(look.site.s) if isinstance(n, ir.For)}
    inside = {n for n in ir.walk(e) if isinstance(n, ir.Var) and n in loops}
    if len(inside) != 1:
        return
    (v,) = inside
    first, second = _whole(e, {**env, v: 0}, look), _whole(e, {**env, v: 1}, look)
    step = second - first
    if step and (at - first) % step == 0:
        env[v] = (at - first) // step


def _whole(e: ir.Expr, env: Mapping[ir.Var, int], look: _Look) -> int:
    if isinstance(e, ir.Const):
        return int(e.value)
    if isinstance(e, ir.Var):
        return env[e] if e in env else look.scalar(e)
    if isinstance(e, ir.Cast):
        return _whole(e.a, env, look)
    if isinstance(e, ir.Bin):
        return _WHOLE[e.op](_whole(e.a, env, look), _whole(e.b, env, look))
    if isinstance(e, ir.Load):
        return int(look.array(e.buffer)[tuple(_whole(i, env, look) for i in e.indices)])
    raise LookupError(type(e).__name__)


_WHOLE: Mapping[str, Callable[[int, int], int]] = {
    **_ENDS, "floordiv": lambda x, y: x // y, "floormod": lambda x, y: x % y,
    "div": lambda x, y: int(x / y), "mod": lambda x, y: x - y * int(x / y),
}  # fmt: skip


def _of_tile(s: ir.Tile, index: tuple[int, ...], look: _Look) -> list[dict[str, Any]]:
    """A product: the terms of the row and column that are not finite; a reduction or copy: the elements that are not."""
    if s.op.endswith("gemm"):
        return _of_product(s, index, look)
    src = next((a for a in s.args if isinstance(a, ir.Region) and "r" in a.access), None)
    if src is None:
        return []
    array = look.array(src.buffer)
    lows = tuple(_whole(m, {}, look) for m in src.mins)
    tile = array[(..., *(slice(lo, lo + _whole(n, {}, look)) for lo, n in zip(lows, src.extents, strict=True)))]
    bad = np.argwhere(~np.isfinite(np.asarray(tile, np.float64)))
    chosen = [b[-len(lows) :] for b in bad] or [np.zeros(len(lows), int)]
    return [look.told(src.buffer, tuple(int(lo + i) for lo, i in zip(lows, b, strict=True))) for b in chosen[:_MOST]]


def _of_product(s: ir.Tile, index: tuple[int, ...], look: _Look) -> list[dict[str, Any]]:
    a, b = arg(s.op, s.args, "a"), arg(s.op, s.args, "b")
    flip_a, flip_b = (bool(arg(s.op, s.args, f"transpose_{n}").value) for n in "ab")
    i, j = index[-2:]
    sides = []
    for region, line, across in ((a, i, flip_a), (b, j, not flip_b)):
        lows = tuple(_whole(m, {}, look) for m in region.mins)
        n = _whole(region.extents[-2 if across else -1], {}, look)
        array = look.array(region.buffer)
        cells = [(*lows[:-2], lows[-2] + k, lows[-1] + line) if across else (*lows[:-2], lows[-2] + line, lows[-1] + k) for k in range(n)]
        values = np.array([float(array[(*(0,) * (array.ndim - len(c)), *c)]) for c in cells])
        sides.append((region.buffer, cells, values))
    (ba, ca, va), (bb, cb, vb) = sides
    n = min(len(va), len(vb))
    with np.errstate(all="ignore"):
        terms = va[:n] * vb[:n]
    wrong = np.flatnonzero(~np.isfinite(terms))
    chosen = [int(k) for k in wrong[:3]] or [int(np.argmax(np.abs(terms)))]
    return [look.told(buffer, cells[k]) for k in chosen for buffer, cells in ((ba, ca), (bb, cb))]


__all__ = ["interval", "operands", "window"]

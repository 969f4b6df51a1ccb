"""Global memory traffic of a tile-level Program, predicted: bytes read and written by its accesses, tails left out.

Each access is counted for every block and every turn of the loops around it, and for every thread where it, or the
condition around it, names the thread, over the elements that exist. Caches are not modelled: this is what the kernel asks
for, and for tiled kernels close to what it moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.analysis.expr import dtype_bits

Array = NDArray[Any]
_AXES = 15  # three of the grid, three of the block, the rest for loops
_MOST_POINTS = 1 << 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes of global memory that a Program's accesses read and write."""

    bytes_read: int
    bytes_written: int

    @property
    def bytes_moved(self) -> int:
        """Both together."""
        return self.bytes_read + self.bytes_written


class Unpredictable(Exception):
    """The traffic depends on data, or the loops are too many to enumerate."""


def traffic(program: ir.Program, sizes: Mapping[ir.Var, int] | None = None) -> Traffic | None:
    """Return the predicted traffic, or None where it depends on data or on sizes that the Program does not know.

    Args:
        program: A tile-level Program.
        sizes: What its symbolic sizes (``T.dynamic``) are.
    """
    counter = _Counter(sizes)
    try:
        for n in ir.walk(program):
            if isinstance(n, ir.Launch):
                counter.launch(n)
    except Unpredictable:
        return None
    return Traffic(bytes_read=(counter.read_bits + 7) // 8, bytes_written=(counter.written_bits + 7) // 8)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where a statement stands: values of variables, each along an axis of its own, and which points run it."""

    values: Mapping[ir.Var, Array]
    mask: Array
    shape: tuple[int, ...]

    def with_axis(self, var: ir.Var, low: Array, extent: Array) -> _Scope:
        """Enter a loop: its variable gets the next axis."""
        n = int(extent.max()) if extent.size else 0
        at = len(self.shape)
        if at >= _AXES or np.prod(self.shape, dtype=float) * max(n, 1) > _MOST_POINTS:
            raise Unpredictable
        turns = np.arange(n).reshape((n,) + (1,) * (_AXES - at - 1))
        mask = self.mask & (turns < extent) if extent.size > 1 else self.mask
        return _Scope({**self.values, var: low + turns}, mask, (*self.shape, n))

    def with_threads(self, var: ir.Var, n: int) -> _Scope:
        """Give a thread's number an axis of one point: only what depends on it is spread along the axis."""
        return _Scope({**self.values, var: np.arange(n).reshape((n,) + (1,) * (_AXES - len(self.shape) - 1))}, self.mask, (*self.shape, 1))

    def total(self, count: Array) -> int:
        """Return the sum of ``count`` over all points: along axes that it does not depend on it repeats."""
        return int(count.sum()) * math.prod(n for n, own in zip(self.shape, count.shape, strict=False) if own == 1)


class _Counter:
    def __init__(self, sizes: Mapping[ir.Var, int] | None = None) -> None:
        self.read_bits = 0
        self.written_bits = 0
        self.threads: tuple[int, ...] = ()  # the axes of the threads' numbers
        self.sizes = {v: np.full((1,) * _AXES, n, np.int64) for v, n in (sizes or {}).items()}

    def launch(self, n: ir.Launch) -> None:
        scope = _Scope(self.sizes, np.ones((1,) * _AXES, bool), ())
        for var, extent in zip(n.block_vars, n.grid, strict=False):
            scope = scope.with_axis(var, np.zeros((1,) * _AXES, np.int64), _known(extent, scope))
        self.threads = tuple(range(len(scope.shape), len(scope.shape) + min(len(n.thread_vars), len(n.threads))))
        for var, extent in zip(n.thread_vars, n.threads, strict=False):
            scope = scope.with_threads(var, int(_known(extent, scope).max()))
        self.body(n.body, scope)

    def body(self, body: ir.Body, scope: _Scope) -> None:
        for s in body:
            if isinstance(s, ir.Bind):
                value = _value(s.value, scope)
                self.loads(s.value, scope)
                if value is not None:
                    scope = _Scope({**scope.values, s.var: value}, scope.mask, scope.shape)
            elif isinstance(s, ir.For):
                if s.step is not None and not (isinstance(s.step, ir.Const) and s.step.value == 1):
                    step = _known(s.step, scope)
                    inner = scope.with_axis(s.var, np.zeros((1,) * _AXES, np.int64), -(-_known(s.extent, scope) // step))
                    values = {**inner.values, s.var: _known(s.min, scope) + inner.values[s.var] * step}
                    self.body(s.body, _Scope(values, inner.mask, inner.shape))
                else:
                    self.body(s.body, scope.with_axis(s.var, _known(s.min, scope), _known(s.extent, scope)))
            elif isinstance(s, ir.If):
                self.loads(s.cond, scope)
                cond = _value(s.cond, scope)
                if cond is not None:
                    _spread(scope.mask, cond)
                yes = scope.mask if cond is None else scope.mask & cond.astype(bool)
                no = scope.mask if cond is None else scope.mask & ~cond.astype(bool)
                self.body(s.then, _Scope(scope.values, yes, scope.shape))
                self.body(s.orelse, _Scope(scope.values, no, scope.shape))
            elif isinstance(s, ir.While):
                raise Unpredictable
            elif isinstance(s, ir.Store):
                self.access(s.buffer, s.indices, None, scope, "w")
                for e in (s.value, *s.indices):
                    self.loads(e, scope)
            elif hasattr(s, "body"):
                self.body(s.body, scope)
            else:
                self.leaf(s, scope)

    def leaf(self, s: ir.Stmt, scope: _Scope) -> None:
        """Count a statement without a body; a tile operation is one for all threads of a role."""
        if isinstance(s, ir.Tile) and any(scope.mask.shape[a] > 1 for a in self.threads):
            scope = _Scope(scope.values, np.asarray(scope.mask.any(axis=self.threads, keepdims=True)), scope.shape)
        for e in ir.children(s):
            self.loads(e, scope)

    def loads(self, e: Any, scope: _Scope) -> None:
        """Count the accesses within an expression."""
        for n in ir.walk(e) if isinstance(e, ir.Expr) else ():
            if isinstance(n, ir.Load):
                self.access(n.buffer, n.indices, None, scope, "r")
            elif isinstance(n, ir.Region):
                self.access(n.buffer, n.mins, n.extents, scope, n.access)

    def access(self, buffer: ir.Buffer, mins: tuple[ir.Expr, ...], extents: tuple[ir.Expr, ...] | None, scope: _Scope, how: str) -> None:
        if buffer.scope != "global":
            return
        count: Array = scope.mask.astype(np.int64)
        for axis, low in enumerate(mins):
            size = _known(buffer.shape[axis], scope)
            start = _value(low, scope)
            length = _known(extents[axis], scope) if extents is not None else np.ones((1,) * _AXES, np.int64)
            if start is None:
                if extents is not None:
                    raise Unpredictable
                continue  # an index that comes from data: taken to be in bounds
            _spread(count, start, length)
            count = count * np.clip(np.minimum(start + length, size) - np.maximum(start, 0), 0, None)
        bits = scope.total(count) * dtype_bits(buffer.dtype)
        self.read_bits += bits if "r" in how else 0
        self.written_bits += bits if "w" in how else 0


def _spread(*arrays: Array) -> None:
    """Refuse what together would have too many points to be held."""
    if np.prod(np.broadcast_shapes(*(a.shape for a in arrays)), dtype=float) > _MOST_POINTS:
        raise Unpredictable


def _known(e: ir.Expr, scope: _Scope) -> Array:
    value = _value(e, scope)
    if value is None:
        raise Unpredictable
    return value


def _value(e: ir.Expr, scope: _Scope) -> Array | None:
    """Return an expression's value at every point, or None where it comes from data."""
    if isinstance(e, ir.Const):
        return np.full((1,) * _AXES, int(e.value), np.int64)
    if isinstance(e, ir.Var):
        return scope.values.get(e)
    if isinstance(e, ir.Cast):
        return _value(e.a, scope)
    if isinstance(e, ir.Not):
        a = _value(e.a, scope)
        return None if a is None else ~a.astype(bool)
    if isinstance(e, ir.Bin) and e.op in _OPS:
        a, b = _value(e.a, scope), _value(e.b, scope)
        if a is None or b is None or (e.op in _DIVIDE and not b.all()):
            return None
        _spread(a, b)
        out: Array = _OPS[e.op](a, b)
        return out
    return None


def _truncate(a: Array, b: Array) -> Array:
    q: Array = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return q


_DIVIDE = frozenset(("div", "mod", "floordiv", "floormod"))
_OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "floordiv": np.floor_divide,
    "floormod": np.mod,
    "div": _truncate,
    "mod": lambda a, b: a - b * _truncate(a, b),
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}

"""Layouts as arrays: which thread and register, or which shared address, holds each element of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.errors import InputError

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Where the elements of a buffer (or the iterations of a parallel loop) live.

    Attributes:
        name: Name of the buffer, or of the loop.
        kind: ``"fragment"`` (element → thread, register), ``"shared"`` (element → address) or ``"loop"``.
        shape: Logical shape in elements.
        dtype: Element type; empty for a loop.
        scope: TVM scope of the buffer; empty for a loop.
        map: The layout as expressions.
        threads: Threads of the block; 0 for a shared layout.
        offset_bytes: Where the buffer starts in shared memory, in bytes, when known.
        loc: The line that allocates the buffer or holds the loop.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: str
    scope: str
    map: ir.IndexMap
    threads: int = 0
    offset_bytes: int | None = None
    loc: ir.SourceLoc | None = None

    def threads_of(self) -> Ints:
        """Return the owner threads: shape ``(*shape, replicas)``."""
        if self.map.thread is None:
            raise InputError(f"{self.name} is a {self.kind} layout: no thread owns its elements", fix="ask for addresses()")
        return self._evaluate(self.map.thread)

    def registers(self) -> Ints:
        """Return each element's position within its thread's registers, in elements: shape ``(*shape, replicas)``."""
        return self._flat_index()

    def addresses(self) -> Ints:
        """Return each element's address within the buffer, in elements: shape ``shape``."""
        return self._flat_index()[..., 0]

    def _flat_index(self) -> Ints:
        """Row-major offset of the output index, whose extents are taken from its largest values."""
        outs = [self._evaluate(e) for e in self.map.index]
        flat = np.zeros_like(outs[0])
        for out in outs:
            flat = flat * (int(out.max()) + 1) + out
        return flat

    def _evaluate(self, expr: ir.Expr) -> Ints:
        full = (*self.shape, self.map.replicate_extent)
        env: dict[ir.Var, Any] = {}
        for axis, (var, n) in enumerate(zip(self.map.params, self.shape, strict=True)):
            env[var] = np.arange(n, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(full))])
        if self.map.replicate is not None:
            env[self.map.replicate] = np.arange(full[-1], dtype=np.int64)
        return np.broadcast_to(evaluate(expr, env), full)


def evaluate(expr: ir.Expr, env: Mapping[ir.Var, Any]) -> Any:
    """Evaluate an integer expression over ints or broadcastable integer arrays.

    Raises:
        InputError: The expression holds something other than integer arithmetic, or a variable not in ``env``.
    """
    if isinstance(expr, ir.Const):
        return expr.value
    if isinstance(expr, ir.Var):
        if expr not in env:
            raise InputError(f"{expr.name} has no value here")
        return env[expr]
    if isinstance(expr, ir.Bin):
        return _ops()[expr.op](evaluate(expr.a, env), evaluate(expr.b, env))
    if isinstance(expr, ir.Cast):
        return evaluate(expr.a, env)
    if isinstance(expr, ir.Select):
        return np.where(evaluate(expr.cond, env), evaluate(expr.a, env), evaluate(expr.b, env))
    if isinstance(expr, ir.Call) and expr.op in _ops():
        return _ops()[expr.op](*(evaluate(a, env) for a in expr.args))
    what = expr.op if isinstance(expr, ir.Call) else type(expr).__name__
    raise InputError(f"{what} is not integer arithmetic")


@cache
def _ops() -> dict[str, Any]:
    def trunc_div(a: Any, b: Any) -> Any:
        return np.sign(a) * np.sign(b) * (abs(a) // abs(b))

    return {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
        "div": trunc_div, "mod": lambda a, b: a - trunc_div(a, b) * b,
        "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b,
        "min": np.minimum, "max": np.maximum,
        "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "and": np.logical_and, "or": np.logical_or,
        "tirx.bitwise_and": lambda a, b: a & b, "tirx.bitwise_or": lambda a, b: a | b,
        "tirx.bitwise_xor": lambda a, b: a ^ b, "tirx.bitwise_not": lambda a: ~a,
        "tirx.shift_left": lambda a, b: a << b, "tirx.shift_right": lambda a, b: a >> b,
        "tirx.if_then_else": np.where,
    }  # fmt: skip

"""Arithmetic of a tile-level Program, counted: matrix products by the dtype of their operands, and ordinary arithmetic.

A product of m×k by k×n is 2·m·n·k operations; an addition, multiplication, division or function of a float is one. Loops and blocks are
enumerated as :mod:`tilelab.analysis.traffic` does; tails count in full, as the hardware runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilelab import ir
from tilelab.analysis.expr import const_int
from tilelab.analysis.shared import buffer_bytes
from tilelab.analysis.traffic import Unpredictable, _Counter, _Scope
from tilelab.ops import TILE_OPS, arg

_ARITHMETIC = frozenset(("add", "sub", "mul", "div", "max", "min"))
_MOVES = frozenset(("tirx.if_then_else", "tirx.address_of", "tl.access_ptr", "tirx.reinterpret"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a Program computes and moves.

    Attributes:
        matrix_flops: Dtype of the operands → operations of matrix products.
        vector_flops: Operations of ordinary arithmetic.
        bytes_asked: Bytes of global memory that its accesses ask for.
        bytes_least: Bytes of its tensors, each read or written once: no kernel moves fewer.
    """

    matrix_flops: Mapping[str, int]
    vector_flops: int
    bytes_asked: int
    bytes_least: int

    @property
    def flops(self) -> int:
        """All operations."""
        return sum(self.matrix_flops.values()) + self.vector_flops

    @property
    def dtype(self) -> str:
        """The dtype of most of the matrix arithmetic; float32 where there is none."""
        return max(self.matrix_flops, key=lambda k: self.matrix_flops[k], default="float32")

    @property
    def matrix_share(self) -> float:
        """Which part of the operations the tensor cores do."""
        return sum(self.matrix_flops.values()) / self.flops if self.flops else 0.0


def work(program: ir.Program) -> Work | None:
    """Return what ``program`` computes and moves, or None where that depends on data or on sizes that it does not know."""
    counter = _Work()
    try:
        for n in ir.walk(program):
            if isinstance(n, ir.Launch):
                counter.launch(n)
    except Unpredictable:
        return None
    least = sum(buffer_bytes(p.buffer) or 0 for p in program.params if p.buffer is not None)
    asked = (counter.read_bits + 7) // 8 + (counter.written_bits + 7) // 8
    return Work(matrix_flops=dict(counter.matrix), vector_flops=counter.vector, bytes_asked=asked, bytes_least=least)


class _Work(_Counter):
    def __init__(self) -> None:
        super().__init__()
        self.matrix: dict[str, int] = {}
        self.vector = 0

    def body(self, body: ir.Body, scope: _Scope) -> None:
        super().body(body, scope)
        for s in body:
            if isinstance(s, ir.Store) and s.value.dtype.startswith(("float", "bfloat")):
                self.vector += _operations(s.value) * _points(scope)

    def leaf(self, s: ir.Stmt, scope: _Scope) -> None:
        super().leaf(s, scope)
        if not isinstance(s, ir.Tile):
            return
        if "gemm" in s.op and {"m", "n", "k", "a"} <= set(TILE_OPS[s.op]):
            sizes = [const_int(arg(s.op, s.args, name)) for name in ("m", "n", "k")]
            operand = arg(s.op, s.args, "a")
            if isinstance(operand, ir.Region) and None not in sizes:
                m, n, k = (v or 0 for v in sizes)
                key = operand.buffer.dtype
                self.matrix[key] = self.matrix.get(key, 0) + 2 * m * n * k * _points(scope)
        elif s.op in ("reduce", "cumsum", "cummax") and isinstance(s.args[0], ir.Region):
            extents = [const_int(e) or 0 for e in s.args[0].extents]
            self.vector += int(np.prod(extents, dtype=np.int64)) * _points(scope)


def _points(scope: _Scope) -> int:
    """How often a statement of this scope runs."""
    return scope.total(scope.mask.astype(np.int64))


def _operations(e: ir.Expr) -> int:
    count = 0
    for n in ir.walk(e):
        if n.dtype.startswith(("float", "bfloat")):
            count += (isinstance(n, ir.Bin) and n.op in _ARITHMETIC) or (isinstance(n, ir.Call) and n.op not in _MOVES)
    return count

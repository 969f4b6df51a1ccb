"""Layouts as arrays: which thread and register, or which shared address, holds each element of a tile."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import Finding, finding

Ints = NDArray[np.int64]

BANKS = 32  #: banks of shared memory (CUDA C++ Programming Guide, compute capability 5.x and later)
BANK_BYTES = 4  #: successive words of this many bytes lie in successive banks


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
        return _threads_of(self) if self._small() else self._evaluate(self.map.thread)

    def registers(self) -> Ints:
        """Return each element's position within its thread's registers, in elements: shape ``(*shape, replicas)``."""
        return self._flat_index()

    def addresses(self) -> Ints:
        """Return each element's address within the buffer, in elements: shape ``shape``."""
        return self._flat_index()[..., 0]

    @property
    def params(self) -> tuple[ir.Var, ...]:
        """The variables of the axes; TileLang lists the replica among the parameters of a fragment, and this leaves it out."""
        rep = self.map.replicate
        return tuple(v for v in self.map.params if rep is None or (v is not rep and v.name != rep.name))

    @property
    def bits(self) -> int:
        """Width of an element in bits; 0 for a loop."""
        return bits_of(self.dtype) if self.dtype else 0

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def byte_addresses(self) -> Ints:
        """Return the address of each element's first byte within shared memory: shape ``shape``."""
        return (self.offset_bytes or 0) + self.addresses() * self.bits // 8

    def banks(self) -> Ints:
        """Return the shared-memory bank of each element's first byte: shape ``shape``."""
        return self.byte_addresses() // BANK_BYTES % BANKS

    # ------------------------------------------------------------------------------------------- inverse
    def elements_of(self) -> Ints:
        """Return what each thread holds: ``(threads, registers)`` row-major element numbers, -1 where nothing is."""
        thread, register = self.threads_of(), self.registers()
        held = np.full((max(self.threads, int(thread.max()) + 1), int(register.max()) + 1), -1, dtype=np.int64)
        held[thread, register] = self._numbers()[..., None]
        return held

    def element_at(self) -> Ints:
        """Return which element lies at each address, in elements: ``(addresses,)``, -1 where nothing lies (padding)."""
        address = self.addresses()
        lies = np.full(int(address.max()) + 1, -1, dtype=np.int64)
        lies[address] = self._numbers()
        return lies

    def _numbers(self) -> Ints:
        return np.arange(self.size, dtype=np.int64).reshape(self.shape)

    # ------------------------------------------------------------------------------------------- algebra
    def compose(self, outer: Layout) -> Layout:
        """Return ``outer ∘ self``: this layout's index is taken as ``outer``'s coordinates.

        Thread and replication are those of this layout.

        Raises:
            InputError: The outputs of this layout do not fit the shape of ``outer``.
        """
        extents = self.index_shape()
        if len(extents) != len(outer.shape) or any(a > b for a, b in zip(extents, outer.shape, strict=False)):
            raise InputError(f"{self.name} ends in {shape_text(extents)}, but {outer.name} starts from {shape_text(outer.shape)}",
                             fix="reshape one of them, so that the first fits into the second")  # fmt: skip
        env = dict(zip(outer.params, self.map.index, strict=True))
        index = tuple(substitute(e, env) for e in outer.map.index)
        new = ir.IndexMap(params=self.map.params, shape=self.map.shape, index=index, thread=self.map.thread,
                          replicate=self.map.replicate, replicate_extent=self.map.replicate_extent)  # fmt: skip
        return replace(self, name=f"{outer.name} ∘ {self.name}", map=new)

    def through(self, shared: Layout) -> Ints:
        """Return where each thread finds its elements in ``shared``: ``(threads, registers)`` addresses, -1 where none.

        Raises:
            InputError: The two layouts are of different shapes.
        """
        if self.shape != shared.shape:
            raise InputError(f"{self.name} is {shape_text(self.shape)}, but {shared.name} is {shape_text(shared.shape)}")
        held = self.elements_of()
        return np.where(held < 0, -1, shared.addresses().reshape(-1)[held])

    def index_shape(self) -> tuple[int, ...]:
        """Return the extents of the index outputs (largest value + 1): the physical shape."""
        return tuple(int(self._evaluate(e).max()) + 1 for e in self.map.index)

    # ------------------------------------------------------------------------------------------- checks
    def check(self) -> tuple[Finding, ...]:
        """Return what is wrong: a place that does not exist, or two elements in one place (TL404)."""
        owned = self.map.thread is not None
        index = self.registers() if owned else self.addresses()[..., None]
        thread = self.threads_of() if owned else np.zeros_like(index)
        outside = (index < 0) | (thread < 0) | (thread >= (self.threads or np.iinfo(np.int64).max))
        if outside.any():
            at = int(np.argmax(outside))
            element = self.coordinates(at // index.shape[-1])
            place = self._place(owned, int(thread.flat[at]), int(index.flat[at]))
            has = f"; the block has {self.threads} threads" if owned else ""
            return (
                self._broken(
                    f"{self.name} sends element {element} to {place}, which does not exist{has}", "keep every output in range", [element]
                ),
            )
        # two different elements in one place; replicas of one element may coincide
        flat = (thread * (int(index.max()) + 1) + index).reshape(-1)
        order = np.argsort(flat, kind="stable")
        number = order // index.shape[-1]
        clash = (flat[order][1:] == flat[order][:-1]) & (number[1:] != number[:-1])
        if not clash.any():
            return ()
        at = int(np.argmax(clash))
        a, b = self.coordinates(int(number[at])), self.coordinates(int(number[at + 1]))
        place = self._place(owned, int(thread.flat[order[at]]), int(index.flat[order[at]]))
        return (self._broken(f"{self.name} puts elements {a} and {b} both at {place}", "make the layout one-to-one", [a, b]),)

    @staticmethod
    def _place(owned: bool, thread: int, index: int) -> str:
        return f"register {index} of thread {thread}" if owned else f"address {index}"

    def _broken(self, message: str, fix: str, elements: list[tuple[int, ...]]) -> Finding:
        file, line = (self.loc.file, self.loc.line) if self.loc else (None, None)
        return finding(
            "TL404", message, fix=fix, file=file, line=line, evidence={"layout": self.name, "elements": [list(e) for e in elements]}
        )

    def coordinates(self, number: int) -> tuple[int, ...]:
        """Return the coordinates of row-major element ``number``."""
        return tuple(int(c) for c in np.unravel_index(number, self.shape))

    # ----------------------------------------------------------------------------------------- evaluation
    def _small(self) -> bool:
        return self.size * self.map.replicate_extent <= _KEPT

    def _flat_index(self) -> Ints:
        """The flat index, kept for small layouts: a view asks for it many times."""
        return _index_of(self) if self._small() else self._flat()

    def _flat(self) -> Ints:
        """Row-major offset of the output index, whose extents are taken from its largest values."""
        outs = [self._evaluate(e) for e in self.map.index]
        flat = np.zeros_like(outs[0])
        for out in outs:
            flat = flat * (int(out.max()) + 1) + out
        return flat

    def _evaluate(self, expr: ir.Expr) -> Ints:
        full = (*self.shape, self.map.replicate_extent)
        env: dict[ir.Var, Any] = {}
        for axis, (var, n) in enumerate(zip(self.params, self.shape, strict=True)):
            env[var] = np.arange(n, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(full))])
        if self.map.replicate is not None:
            env[self.map.replicate] = np.arange(full[-1], dtype=np.int64)
        return np.broadcast_to(evaluate(expr, env), full)


_KEPT = 1 << 16  # elements and copies of layouts whose arrays are kept


@lru_cache(maxsize=64)
def _threads_of(layout: Layout) -> Ints:
    assert layout.map.thread is not None
    return _frozen(layout._evaluate(layout.map.thread))


@lru_cache(maxsize=64)
def _index_of(layout: Layout) -> Ints:
    return _frozen(layout._flat())


def _frozen(a: Ints) -> Ints:
    a = np.ascontiguousarray(a)
    a.flags.writeable = False
    return a


def bits_of(dtype: str) -> int:
    """Return the width of one element of ``dtype`` in bits (bool: 8, as in memory).

    Raises:
        InputError: The name carries no width.
    """
    if dtype == "bool":
        return 8
    found = re.match(r"[a-z]+(\d+)", dtype)
    if not found:
        raise InputError(f"{dtype} is not a dtype with a known width", fix='name it as TileLang does, e.g. "float16"')
    return int(found[1])


def shape_text(shape: Sequence[int]) -> str:
    """Return ``"16×8"``."""
    return "×".join(map(str, shape)) or "scalar"


def substitute(expr: ir.Expr, env: Mapping[ir.Var, ir.Expr]) -> ir.Expr:
    """Return ``expr`` with the variables of ``env`` replaced."""
    if isinstance(expr, ir.Var):
        return env.get(expr, expr)
    if isinstance(expr, ir.Bin):
        return ir.Bin(dtype=expr.dtype, op=expr.op, a=substitute(expr.a, env), b=substitute(expr.b, env))
    if isinstance(expr, ir.Cast):
        return ir.Cast(dtype=expr.dtype, a=substitute(expr.a, env))
    if isinstance(expr, ir.Select):
        cond, a, b = (substitute(e, env) for e in (expr.cond, expr.a, expr.b))
        return ir.Select(dtype=expr.dtype, cond=cond, a=a, b=b)
    if isinstance(expr, ir.Call):
        return ir.Call(dtype=expr.dtype, op=expr.op, args=tuple(substitute(a, env) for a in expr.args), attrs=expr.attrs)
    return expr


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

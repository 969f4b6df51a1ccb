"""How much shared memory a tile-level Program needs: its buffers, their copies for pipelining, and which can share space.

TileLang gives buffers whose uses do not overlap the same space, and keeps ``num_stages`` copies of a buffer that a pipelined
loop copies into from global memory. Uses are counted as TileLang does: a buffer used inside a loop is in use for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tilelab import ir
from tilelab.analysis.expr import const_int, dtype_bits

_COPIES = ("copy", "async_copy", "tma_copy", "im2col", "c2d_im2col")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBuffer:
    """One shared buffer of a launch.

    Attributes:
        buffer: The buffer.
        copies: How many copies pipelining makes of it.
        bytes: Its size with all copies.
        first: Position of the first statement that uses it.
        last: Position of the last one (loops count as a whole).
        loop: The pipelined loop that makes the copies.
    """

    buffer: ir.Buffer
    copies: int
    bytes: int
    first: int
    last: int
    loop: ir.For | None = None

    @property
    def single_bytes(self) -> int:
        """Its size without copies."""
        return self.bytes // self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedUse:
    """The shared memory of one launch. ``peak`` are the buffers in use at once where that is most; ``unknown`` have symbolic shapes."""

    launch: ir.Launch
    buffers: tuple[SharedBuffer, ...]
    peak: tuple[SharedBuffer, ...]
    unknown: tuple[ir.Buffer, ...]

    @property
    def bytes(self) -> int:
        """Bytes a block needs at least (reductions and alignment may add a little)."""
        return sum(b.bytes for b in self.peak)


@lru_cache(maxsize=16)
def shared_use(program: ir.Program) -> tuple[SharedUse, ...]:
    """Return the shared memory of each launch of ``program``, in order."""
    return tuple(_of_launch(s) for s in ir.walk(program) if isinstance(s, ir.Launch))


def buffer_bytes(buffer: ir.Buffer) -> int | None:
    """Size of ``buffer`` in bytes, or None if its shape is not constant."""
    shape = [const_int(e) for e in buffer.shape]
    if any(n is None for n in shape):
        return None
    bits = 64 if "barrier" in buffer.scope else dtype_bits(buffer.dtype)
    return (prod(n for n in shape if n is not None) * bits + 7) // 8


def is_shared(buffer: ir.Buffer) -> bool:
    """Whether ``buffer`` lies in a block's shared memory."""
    return buffer.scope.startswith("shared") and "tmem" not in buffer.scope


class _Uses:
    """Positions of uses by storage, gathered in one pass over a launch."""

    def __init__(self) -> None:
        self.position = 0
        self.buffers: dict[int, ir.Buffer] = {}  # id of the data variable → the largest buffer on it
        self.spans: dict[int, tuple[int, int]] = {}
        self.loops: dict[int, ir.For] = {}
        self.copies: dict[int, int] = {}

    def declare(self, buffer: ir.Buffer) -> None:
        key = id(buffer.data)
        old = self.buffers.get(key)
        if is_shared(buffer) and (old is None or (buffer_bytes(buffer) or 0) > (buffer_bytes(old) or 0)):
            self.buffers[key] = buffer

    def touch(self, key: int, first: int, last: int) -> None:
        low, high = self.spans.get(key, (first, last))
        self.spans[key] = (min(low, first), max(high, last))

    def visit(self, body: ir.Body) -> set[int]:
        """Number the statements of ``body`` and return the storages that it uses."""
        used: set[int] = set()
        for s in body:
            used |= self._statement(s)
        return used

    def _statement(self, s: ir.Stmt) -> set[int]:
        start = self.position
        self.position += 1
        for b in s.allocs if isinstance(s, ir.Block) else (s.buffer,) if isinstance(s, ir.Alloc | ir.Declare) else ():
            self.declare(b)
        used = {id(b.data) for b in _used_buffers(s)} | {id(v) for v in _variables(s)}
        for b in _used_buffers(s):
            self.declare(b)
        for key in used:
            self.touch(key, start, start)
        inner: set[int] = set()
        for block in _bodies(s):
            inner |= self.visit(block)
        if isinstance(s, ir.For | ir.While):
            for key in inner | used:
                self.touch(key, start, self.position - 1)
        if isinstance(s, ir.For):
            self._multiply(s)
        return used | inner

    def _multiply(self, loop: ir.For) -> None:
        stages = loop.attrs.get("num_stages")
        count = stages if isinstance(stages, int) else const_int(stages) if isinstance(stages, ir.Expr) else None
        if not count or count < 2:
            return
        for s in ir.walk(loop.body):
            if isinstance(s, ir.Tile) and s.op in _COPIES:
                regions = [a for a in s.args if isinstance(a, ir.Region)]
                if len(regions) >= 2 and regions[0].buffer.scope == "global" and is_shared(regions[1].buffer):
                    key = id(regions[1].buffer.data)
                    if self.copies.get(key, 1) < count:
                        self.copies[key], self.loops[key] = count, loop


def _of_launch(launch: ir.Launch) -> SharedUse:
    uses = _Uses()
    uses.visit(launch.body)
    found, unknown = [], []
    for key, buffer in uses.buffers.items():
        size = buffer_bytes(buffer)
        if size is None:
            unknown.append(buffer)
        elif key in uses.spans:
            copies = uses.copies.get(key, 1)
            first, last = uses.spans[key]
            found.append(SharedBuffer(buffer=buffer, copies=copies, bytes=size * copies, first=first, last=last, loop=uses.loops.get(key)))
    at_once = [tuple(b for b in found if b.first <= at <= b.last) for at in {b.first for b in found}]
    peak = max(at_once, key=lambda group: sum(b.bytes for b in group), default=())
    return SharedUse(launch=launch, buffers=tuple(found), peak=peak, unknown=tuple(unknown))


def _bodies(s: ir.Stmt) -> Iterator[ir.Body]:
    for name in ("body", "then", "orelse"):
        block = getattr(s, name, None)
        if block:
            yield block


def _own_expressions(s: ir.Stmt) -> Iterator[ir.Expr]:
    for child in ir.children(s):
        if isinstance(child, ir.Expr):
            yield child


def _used_buffers(s: ir.Stmt) -> Iterator[ir.Buffer]:
    if isinstance(s, ir.Store):
        yield s.buffer
    for e in _own_expressions(s):
        for n in ir.walk(e):
            if isinstance(n, ir.Load | ir.Region):
                yield n.buffer


def _variables(s: ir.Stmt) -> Iterator[ir.Var]:
    for e in _own_expressions(s):
        for n in ir.walk(e):
            if isinstance(n, ir.Var) and n.dtype == "handle":
                yield n

"""Every access of a Program to memory, with the loops, conditions and bindings around it: what a proof is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from tilelab import ir

Mode = Literal["r", "w", "atomic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """``cond`` holds (or, if ``negated``, does not hold) at the access."""

    cond: ir.Expr
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """``var`` is ``value`` at the access."""

    var: ir.Var
    value: ir.Expr


Frame: TypeAlias = "ir.Launch | ir.For | Guard | Binding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One access: the box of ``buffer`` from ``mins`` of ``extents`` (None: a single element).

    Attributes:
        buffer: The buffer.
        mins: First element along each axis.
        extents: Elements along each axis; empty for a single element.
        mode: Read, write, or atomic.
        stmt: The statement.
        frames: What encloses it, outermost first: launches, loops, guards, bindings.
        loads: Whether its indices or guards depend on loaded data (set by whoever translates them).
    """

    buffer: ir.Buffer
    mins: tuple[ir.Expr, ...]
    extents: tuple[ir.Expr, ...] = ()
    mode: Mode
    stmt: ir.Stmt
    frames: tuple[Frame, ...] = field(default=())

    @property
    def launch(self) -> ir.Launch | None:
        """The launch it is in."""
        return next((f for f in self.frames if isinstance(f, ir.Launch)), None)

    @property
    def space(self) -> ir.For | None:
        """The outermost parallel loop around it."""
        return next((f for f in self.frames if isinstance(f, ir.For) and f.kind == "parallel"), None)


def accesses(program: ir.Program) -> tuple[Access, ...]:
    """Return all accesses of ``program``, in the order of the source."""
    return tuple(_body(program.body, ()))


def written(program: ir.Program) -> set[ir.Var]:
    """The storages that ``program`` writes."""
    return {a.buffer.data for a in accesses(program) if a.mode != "r"}


# ------------------------------------------------------------------------------------------------ statements
def _body(body: ir.Body, frames: tuple[Frame, ...]) -> Iterator[Access]:
    for s in body:
        yield from _statement(s, frames)
        if isinstance(s, ir.Bind):
            frames = (*frames, Binding(var=s.var, value=s.value))
        elif isinstance(s, ir.Assert):
            frames = (*frames, Guard(cond=s.cond))
        elif isinstance(s, ir.Eval) and isinstance(s.value, ir.Call) and s.value.op == "tirx.assume":
            frames = (*frames, Guard(cond=s.value.args[0]))


def _statement(s: ir.Stmt, frames: tuple[Frame, ...]) -> Iterator[Access]:
    if isinstance(s, ir.Store):
        for e in (s.predicate, s.value, *s.indices):
            if e is not None:
                yield from _expression(e, s, frames)
        inside = (*frames, Guard(cond=s.predicate)) if s.predicate is not None else frames
        yield Access(buffer=s.buffer, mins=s.indices, mode="w", stmt=s, frames=inside)
        return
    if isinstance(s, ir.Tile):
        yield from _tile(s, frames)
        return
    if isinstance(s, ir.If):
        yield from _expression(s.cond, s, frames)
        yield from _body(s.then, (*frames, Guard(cond=s.cond)))
        yield from _body(s.orelse, (*frames, Guard(cond=s.cond, negated=True)))
        return
    for child in ir.children(s):
        if isinstance(child, ir.Expr):
            yield from _expression(child, s, frames)
    if isinstance(s, ir.Launch | ir.For):
        yield from _body(s.body, (*frames, s))
    elif isinstance(s, ir.While):
        yield from _body(s.body, (*frames, Guard(cond=s.cond)))
    elif isinstance(s, ir.Block | ir.Attribute):
        yield from _body(s.body, frames)


def _tile(s: ir.Tile, frames: tuple[Frame, ...]) -> Iterator[Access]:
    for a in s.args:
        if not isinstance(a, ir.Region):
            yield from _expression(a, s, frames)
            continue
        for e in (*a.mins, *a.extents):
            yield from _expression(e, s, frames)
        modes: tuple[Mode, ...] = ("r", "w") if a.access == "rw" else ("r",) if a.access == "r" else ("w",)
        if s.op.startswith("atomic") and "w" in modes:
            modes = ("atomic",)
        for mode in modes:
            yield Access(buffer=a.buffer, mins=a.mins, extents=a.extents, mode=mode, stmt=s, frames=frames)


# ------------------------------------------------------------------------------------------------ expressions
def _expression(e: ir.Expr, s: ir.Stmt, frames: tuple[Frame, ...]) -> Iterator[Access]:
    if isinstance(e, ir.Load):
        for i in e.indices:
            yield from _expression(i, s, frames)
        yield Access(buffer=e.buffer, mins=e.indices, mode="r", stmt=s, frames=frames)
    elif isinstance(e, ir.Bin) and e.op in ("and", "or"):  # the right side runs only where the left one does not decide
        yield from _expression(e.a, s, frames)
        yield from _expression(e.b, s, (*frames, Guard(cond=e.a, negated=e.op == "or")))
    elif isinstance(e, ir.Call):
        yield from _call(e, s, frames)
    elif isinstance(e, ir.LetExpr):
        yield from _expression(e.value, s, frames)
        yield from _expression(e.body, s, (*frames, Binding(var=e.var, value=e.value)))
    else:
        for child in ir.children(e):
            yield from _expression(child, s, frames)


def _call(e: ir.Call, s: ir.Stmt, frames: tuple[Frame, ...]) -> Iterator[Access]:
    if e.op == "tirx.if_then_else":
        cond, a, b = e.args
        yield from _expression(cond, s, frames)
        yield from _expression(a, s, (*frames, Guard(cond=cond)))
        yield from _expression(b, s, (*frames, Guard(cond=cond, negated=True)))
        return
    is_atomic = e.op.startswith(("tl.atomic_", "tirx.atomic_"))
    for k, a in enumerate(e.args):
        target = _pointee(a) if is_atomic and k == 0 else None
        if target is not None:
            for i in target.indices:
                yield from _expression(i, s, frames)
            yield Access(buffer=target.buffer, mins=target.indices, mode="atomic", stmt=s, frames=frames)
        else:
            yield from _expression(a, s, frames)


def _pointee(e: ir.Expr) -> ir.Load | None:
    """The element that ``address_of(A[i])`` or ``access_ptr(A[i], …)`` points to."""
    while isinstance(e, ir.Call) and e.op in ("tirx.address_of", "tl.access_ptr") and e.args:
        e = e.args[0]
    return e if isinstance(e, ir.Load) else None

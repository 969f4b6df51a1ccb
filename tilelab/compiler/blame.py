"""A user's line for every lowered statement: TileLang keeps few of them, so they are found again from what a statement touches.

The rules, in order: the line that TileLang kept; the tile operation that moves or multiplies the buffers which the
statement names; for a wait, the statement behind it, for an arrival or commit the one before; the enclosing statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tilelab import ir
from tilelab.ops import arg

Loc = ir.SourceLoc | None

_COPIES = frozenset({"copy", "async_copy", "tma_copy", "im2col", "transpose"})
_INTO = re.compile(r"tma_load|cp_async(?!.*wait)|tma_store|st_bulk|stmatrix|fill")
_GEMM = re.compile(r"mma|ldmatrix|wgmma|warpgroup|descriptor|tcgen05")
_REDUCE = re.compile(r"AllReduce|thread_allreduce")
_WAITS = re.compile(r"wait|storage_sync|expect_tx|fence_proxy|shuffle_elect|lds|set_max_nreg")
_SETUP = re.compile(r"init_barrier|barrier_init|prefetch_tma")
_SUFFIX = re.compile(r"(?:_desc|_local(?:_cast)?|_cast|_\d+)+$")


@dataclass(frozen=True, slots=True)
class _Lines:
    """Where the tile program touches each buffer, by name."""

    into: dict[str, Loc] = field(default_factory=dict)
    gemms: dict[str, Loc] = field(default_factory=dict)
    makes: dict[str, Loc] = field(default_factory=dict)
    reductions: dict[str, Loc] = field(default_factory=dict)
    launch: list[Loc] = field(default_factory=list)


def located(device: ir.Body, tile: ir.Program) -> ir.Body:
    """Return the statements of a lowered program, each with the user's line it comes from."""
    lines = _lines_of(tile)
    out: list[ir.Stmt] = []
    launches = iter(lines.launch)
    for s in device:
        if isinstance(s, ir.Launch):
            at = next(launches, s.loc)
            out.append(replace(s, loc=at or s.loc, body=_body(s.body, at or s.loc, lines)))
        else:
            out.extend(_body((s,), s.loc or _first(lines.launch), lines))
    return tuple(out)


def _lines_of(tile: ir.Program) -> _Lines:
    lines = _Lines()
    for s in ir.walk(tile):
        if isinstance(s, ir.Launch):
            lines.launch.append(s.loc)
        elif isinstance(s, ir.Block):
            for b in s.allocs:
                lines.makes.setdefault(b.name, b.loc)
        elif isinstance(s, ir.Tile):
            _note(s, lines)
    return lines


def _note(s: ir.Tile, lines: _Lines) -> None:
    if s.op in _COPIES:
        for which in ("dst", "src") if s.op != "im2col" else ("col", "img"):
            region = arg(s.op, s.args, which)
            if isinstance(region, ir.Region):
                lines.into.setdefault(region.buffer.name, s.loc)
    elif "gemm" in s.op:
        for region in s.args:
            if isinstance(region, ir.Region):
                lines.gemms.setdefault(region.buffer.name, s.loc)
        for operand in ("a", "b", "c"):  # what TileLang calls the copies of operands in registers
            lines.gemms.setdefault(operand.upper(), s.loc)
    elif s.op == "reduce":
        for which in ("dst", "src"):
            region = arg(s.op, s.args, which)
            if isinstance(region, ir.Region):
                lines.reductions.setdefault(region.buffer.name, s.loc)


# ------------------------------------------------------------------------------------------------ statements
def _body(body: ir.Body, parent: Loc, lines: _Lines) -> ir.Body:
    """Locate statements; those that say nothing themselves follow their neighbours."""
    known = [_one(s, lines) for s in body]
    for i, s in enumerate(known):
        if s.loc is None:
            before = next((k.loc for k in reversed(known[:i]) if k.loc is not None), None)
            after = next((k.loc for k in known[i + 1 :] if k.loc is not None), None)
            waits = any(_WAITS.search(n) for n in _ops(s))
            known[i] = replace(s, loc=(after or before if waits else before or after) or parent)
    return tuple(_inside(s, lines) for s in known)


def _one(s: ir.Stmt, lines: _Lines) -> ir.Stmt:
    if s.loc is not None:
        return s
    return replace(s, loc=_blame(s, lines))


def _blame(s: ir.Stmt, lines: _Lines) -> Loc:
    if isinstance(s, ir.Alloc | ir.Declare):
        return _of((s.buffer.name,), lines.makes)
    if isinstance(s, ir.Bind) and s.var.pointee:
        return _of((s.var.name,), lines.makes)
    kept = next((n.loc for n in ir.walk(s) if isinstance(n, ir.Stmt) and n.loc is not None), None)
    if kept is not None:
        return kept
    names, ops = _names(s), " ".join(_ops(s))
    if _SETUP.search(ops):
        return _first(lines.launch)
    for pattern, table in ((_GEMM, lines.gemms), (_INTO, lines.into), (_REDUCE, lines.reductions)):
        if pattern.search(ops) and (loc := _of(names, table)) is not None:
            return loc
    if isinstance(s, ir.Store) and (loc := _of((s.buffer.name,), lines.into)) is not None:
        return loc
    return None


def _of(names: Iterable[str], table: Mapping[str, Loc]) -> Loc:
    for name in names:
        for known in (name, _SUFFIX.sub("", name)):
            if table.get(known) is not None:
                return table[known]
    return None


def _inside(s: ir.Stmt, lines: _Lines) -> ir.Stmt:
    changes: dict[str, Any] = {}
    for part in ("body", "then", "orelse"):
        inner = getattr(s, part, None)
        if inner:
            changes[part] = _body(inner, s.loc, lines)
    return replace(s, **changes) if changes else s


def _first(locs: Iterable[Loc]) -> Loc:
    return next((x for x in locs if x is not None), None)


def _names(s: ir.Stmt) -> list[str]:
    """Names of buffers and pointers in a statement, in its order."""
    out: dict[str, None] = {}
    for n in ir.walk(s):
        if isinstance(n, ir.Load | ir.Store | ir.Region):
            out.setdefault(n.buffer.name)
        elif isinstance(n, ir.Var) and n.dtype == "handle":
            out.setdefault(n.name)
    return list(out)


def _ops(s: ir.Stmt) -> list[str]:
    return [_op_name(n) for n in ir.walk(s) if isinstance(n, ir.Call)]


def _op_name(call: ir.Call) -> str:
    first = call.args[0] if call.args else None
    return f"{call.op} {first.value}" if isinstance(first, ir.Str) else call.op


def share_located(program: ir.Program) -> float:
    """Return the share of statements that have a location."""
    stmts = [s for s in ir.walk(program) if isinstance(s, ir.Stmt)]
    return sum(s.loc is not None for s in stmts) / max(1, len(stmts))

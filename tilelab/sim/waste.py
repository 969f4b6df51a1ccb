"""What every thread of a block does by itself: work repeated (TL601), one element updated by all of them (TL201); lost guards (TL802)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim.context import Context
from tilelab.sim.lanes import Frame
from tilelab.sim.origin import interval
from tilelab.sim.taint import Taint, is_local

#: Iterations from which repeating them is worth a word.
WORTH = 8
#: Threads that run in step.
WARP = 32
#: Updates whose result is the same however often they are done.
_IDEMPOTENT = frozenset({"max", "min", "and", "or"})


def repeated(s: ir.For, ctx: Context, taint: Taint | None) -> dict[str, Any] | None:
    """The finding for a plain loop whose elements every thread writes by itself; None if it is not one."""
    if ctx.host or ctx.parallel or taint is None or taint.stmts(s.body) or ctx.nest is not None:
        return None
    known = isinstance(s.extent, ir.Const)
    if (known and s.extent.value < WORTH) or any(isinstance(n, ir.Load) for n in ir.walk(s.extent)):  # type: ignore[attr-defined]
        return None
    threads = int(np.prod(ctx.grid.extents))
    if threads == 1 or any(
        isinstance(n, ir.Tile) or (isinstance(n, ir.For) and n.kind in ("parallel", "vectorized")) for n in ir.walk(s.body)
    ):
        return None
    if any(isinstance(n, ir.Load) and n.buffer.scope == "local.fragment" for n in ir.walk(s.body)):
        return None  # who owns the elements is the question there
    for n in ir.walk(s.body):
        if isinstance(n, ir.Store) and not is_local(n.buffer) and any(v is s.var for i in n.indices for v in ir.walk(i)):
            loc = n.loc or s.loc
            count = s.extent.value if isinstance(s.extent, ir.Const) else None
            return {
                "key": ("waste", loc and (loc.file, loc.line)),
                "code": "TL601",
                "message": f"all {threads} threads of the block run this loop: each of its {f'{count} ' if count else ''}elements of "
                f"{n.buffer.name} is written {threads} times.",
                "loc": s.loc,
                "fix": f"for {s.var.name} in T.Parallel({count or '…'}), which shares the iterations out among the threads",
                "evidence": {"threads": threads, "iterations": count, "buffer": n.buffer.name, "repeated": threads},
            }
    return None


def lost_guard(s: ir.For, ctx: Context, ranges: Mapping[ir.Var, tuple[int, int]]) -> dict[str, Any] | None:
    """The finding for a loop of no turn or one, whose test TileLang leaves out (TL802); None if it is not one."""
    extent = s.extent
    while isinstance(extent, ir.Cast):
        extent = extent.a
    if ctx.host or not isinstance(extent, ir.Bin) or extent.op not in ("floordiv", "div") or interval(extent, ranges) != (0, 1):
        return None
    return {
        "key": ("guard", s.loc and (s.loc.file, s.loc.line)),
        "code": "TL802",
        "message": "this loop has one turn or none: TileLang 0.1.15 takes it for one turn always, so that blocks or threads that have "
        "nothing to do do it all the same.",
        "loc": s.loc,
        "fix": "loop over the greatest number of turns, with the test inside: if tile < tiles: …",
        "evidence": {"least": 0, "most": 1},
    }


def updated_by_all(s: ir.Store, ctx: Context) -> Callable[[Frame], None] | None:
    """A watch for a plain statement ``O[b] = O[b] + x`` that warps do one after another, or all at once; None if it is not one."""
    threads = int(np.prod(ctx.grid.extents))
    if ctx.host or ctx.parallel or ctx.nest is not None or threads <= WARP or s.buffer.scope.startswith("local"):
        return None
    if isinstance(s.value, ir.Bin) and s.value.op in _IDEMPOTENT:
        return None
    loads = (n for n in ir.walk(s.value) if isinstance(n, ir.Load) and n.buffer.data is s.buffer.data)
    if not any(all(map(_alike, n.indices, s.indices)) for n in loads):
        return None
    name, axes = s.buffer.name, ctx.grid.thread_axes

    def watch(fr: Frame) -> None:
        if any(m is not None and any(m.ndim > a and m.shape[a] > 1 for a in axes) for m in (fr.mask, fr.outer)):
            return  # for some threads only
        fr.run.findings.report(
            ("update", s.loc and (s.loc.file, s.loc.line), name), "TL201",
            f"all {threads} threads of the block run this line, and each updates the same element of {name}: "
            "a warp may read what another has already updated, so that the update happens more than once.",
            s.loc or ctx.loc, block=ctx.block(fr, ()),
            fix="let one thread do it (if T.get_thread_binding() == 0), keep the sum in a fragment or a T.alloc_var, or use T.reduce_sum",
            evidence={"buffer": name, "threads": threads},
        )  # fmt: skip

    return watch


def _alike(a: ir.Expr, b: ir.Expr) -> bool:
    """Whether two indices are written the same way."""
    if isinstance(a, ir.Const) and isinstance(b, ir.Const):
        return a.value == b.value
    if isinstance(a, ir.Bin) and isinstance(b, ir.Bin):
        return a.op == b.op and _alike(a.a, b.a) and _alike(a.b, b.b)
    return a is b

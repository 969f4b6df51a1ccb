"""What a run leaves: output arrays, and outputs that nobody wrote (TL104)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks, dtypes
from tilelab.sim.lanes import Frame, aff_range, aff_values
from tilelab.sim.memory import Buf


def collect(run: Any, host: Frame, *, complete: bool) -> tuple[dict[str, Any], Any]:
    """The written parameters and the returned tensors of a run, and what the kernel returns."""
    outputs: dict[str, Any] = {}
    returned: list[Any] = []
    compiled = run.compiled
    for i, (p, slot) in enumerate(compiled.params):
        if p.buffer is None:
            continue
        buf: Buf = host.mem[slot]
        is_output = i in run.program.outputs
        if complete and run.checks:
            if is_output and buf.init is not True:
                _not_written(run, buf)
            elif not is_output and buf.reach is not None and buf.written:
                buf.reach.tell(run, buf)
        views = [host.mem[own] for own, *_ in compiled.views_of.get(slot, ())]
        if buf.written or is_output or any(v is not None and v.written for v in views):
            buf.poison_rest()
            out = dtypes.store(np.ascontiguousarray(buf.full()), p.buffer.dtype)
            if not buf.own and np.shares_memory(out, buf.root):
                out = out.copy()
            if is_output:
                outputs[f"out{len(returned)}"] = out
                returned.append(out)
            else:
                outputs[p.name] = out
    for slot, *_ in compiled.pools.values():
        if host.mem[slot].written:
            outputs |= run.memory.outputs(slot, host.mem[slot])
    result = None if not returned else returned[0] if len(returned) == 1 else tuple(returned)
    return outputs, result


def _not_written(run: Any, buf: Buf) -> None:
    """Report elements of a returned tensor that hold garbage."""
    missing = ~buf.init if buf.init is not None else np.ones(buf.shape, np.bool_)
    count = int(missing.sum())
    if not count:
        return
    first = [int(i) for i in np.unravel_index(int(np.argmax(missing)), missing.shape)] if missing.ndim else []
    whole = count == missing.size
    run.findings.report(
        ("unwritten", buf.name), "TL104",
        f"the output {buf.name} is {'never written' if whole else 'not written everywhere'}: "
        f"{count} of its {missing.size} elements hold garbage, the first is {checks.element(buf.name, first)}.",
        buf.loc, fix=_COVER, evidence={"buffer": buf.name, "missing": count, "elements": int(missing.size), "first": first},
    )  # fmt: skip


_COVER = "make the grid and the tiles cover the whole output (T.ceildiv for the number of blocks)"


class Reach:
    """How far the writes to a plain output went, along each axis."""

    __slots__ = ("high", "low")

    def __init__(self, rank: int) -> None:
        self.low = [1 << 62] * rank
        self.high = [-1] * rank

    def note(self, acc: Any, fr: Frame, buf: Buf) -> None:
        """Take one write into account; ``buf`` forgets to watch once all of it is reached."""
        ranges = []
        for (aff, ex), n in zip(acc.dims, buf.shape, strict=True):
            if fr.mask is not None or aff is None:
                x = np.asarray(aff_values(aff, fr, acc.rank) if aff is not None else ex.fn(fr))
                if fr.mask is not None:
                    on = np.broadcast_to(fr.mask, np.broadcast_shapes(x.shape, fr.mask.shape))
                    x = np.broadcast_to(x, on.shape)[on]
                if not x.size:
                    return
                lo, hi = int(x.min()), int(x.max())
            else:
                lo, hi = aff_range(aff, fr)
            lo, hi = max(lo, 0), min(hi, n - 1)
            if lo > hi:
                return
            ranges.append((lo, hi))
        whole = True
        for d, (lo, hi) in enumerate(ranges):
            self.low[d], self.high[d] = min(self.low[d], lo), max(self.high[d], hi)
            whole &= self.low[d] == 0 and self.high[d] == buf.shape[d] - 1
        if whole:
            buf.reach = None

    def tell(self, run: Any, buf: Buf) -> None:
        """Report an output that was not written to its end (TL104)."""
        for d, n in enumerate(buf.shape):
            if self.high[d] < 0 or (self.low[d] == 0 and self.high[d] == n - 1):
                continue
            first = [0] * len(buf.shape)
            first[d] = self.high[d] + 1 if self.high[d] < n - 1 else 0
            part = f"{self.low[d]}..{self.high[d]}"
            run.findings.report(
                ("unwritten", buf.name), "TL104",
                f"the kernel writes {buf.name} only at {part} of the {n} places of axis {d}: {checks.element(buf.name, first)}, for one, "
                "holds what was there before.",
                buf.loc, severity="warning", fix=f"{_COVER}; nothing, if the rest is meant to stay",
                evidence={"buffer": buf.name, "axis": d, "low": self.low[d], "high": self.high[d], "size": n, "first": first},
            )  # fmt: skip
            return


def tiled(program: ir.Program) -> frozenset[ir.Var]:
    """Data pointers of plain parameters that the kernel only writes, where blocks and loops alone decide where and whether."""
    params = {p.buffer.data for i, p in enumerate(program.params) if p.buffer is not None and i not in program.outputs}
    written: set[ir.Var] = set()
    other: set[ir.Var] = set()
    from_data: set[ir.Var] = {p.var for p in program.params if p.buffer is None}
    for s, free in _statements(program.body, True, from_data):
        for n in ir.walk(s) if not isinstance(s, ir.For | ir.If | ir.While | ir.Block | ir.Launch | ir.Attribute) else ():
            if isinstance(n, ir.Store):
                (written if free and not _depends(n.indices, from_data) else other).add(n.buffer.data)
            elif isinstance(n, ir.Region):
                plain = n.access == "w" and isinstance(s, ir.Tile) and not s.op.startswith("atomic") and not s.attrs.get("is_scatter4")
                (written if plain and free and not _depends(n.mins, from_data) else other).add(n.buffer.data)
            elif isinstance(n, ir.Load):
                other.add(n.buffer.data)
            elif isinstance(n, ir.Var) and n.dtype == "handle":
                other.add(n)
    return frozenset(params & written - other)


def _depends(exprs: tuple[ir.Expr, ...], from_data: set[ir.Var]) -> bool:
    return any(isinstance(n, ir.Load) or n in from_data for e in exprs for n in ir.walk(e))


def _statements(body: ir.Body, free: bool, from_data: set[ir.Var]) -> Iterator[tuple[ir.Stmt, bool]]:
    """Every statement, and whether it is reached whatever the data are."""
    for s in body:
        yield s, free
        if isinstance(s, ir.Bind) and _depends((s.value,), from_data):
            from_data.add(s.var)
        if isinstance(s, ir.If):
            inside = free and not _depends((s.cond,), from_data)
            yield from _statements((*s.then, *s.orelse), inside, from_data)
        elif isinstance(s, ir.For):
            inside = free and not _depends((s.min, s.extent), from_data)
            yield from _statements(s.body, inside, from_data)
        elif isinstance(s, ir.While):
            yield from _statements(s.body, False, from_data)
        elif isinstance(s, ir.Block | ir.Launch | ir.Attribute):
            yield from _statements(s.body, free, from_data)

"""Races: how blocks divide a global buffer, who touched what, and what lanes of one parallel space do to each other.

Uniform statements of a block are ordered by the compiler (it inserts the barriers), so only three kinds of race are
looked for here: inside one parallel space (a T.Parallel nest, or code that depends on the thread, between barriers),
and between blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.sim import checks
from tilelab.sim.lanes import Frame, Value, aff_range, value_of
from tilelab.sim.memory import Buf


class NeedShadow(Exception):
    """The blocks do not visibly divide ``buffers``: run again and watch each element of them."""

    def __init__(self, buffers: set[str]) -> None:
        super().__init__(", ".join(sorted(buffers)))
        self.buffers = buffers


class Partition:
    """Proof that blocks touch disjoint parts of a buffer: equal strides of the block indices, apart by at least the rest.

    ``failed`` is set when the proof does not go through; the run is then repeated with a :class:`Shadow`.
    """

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid  # blocks along each block axis
        self.signature: Any = None
        self.low: list[int] = []
        self.high: list[int] = []
        self.failed = False

    def note(self, acc: Any, fr: Frame, box: Any, buf: Buf, kind: str, value: Value = None) -> None:
        """Take one access into account."""
        if self.failed:
            return
        nb = len(self.grid)
        signature = []
        for d, (aff, _) in enumerate(acc.dims):
            if aff is None:
                if box is None or acc.indices[d].axes:
                    self.failed = True
                    return
                lo = hi = box[0][d]
                steps: tuple[tuple[int, int], ...] = ()
            else:
                steps = tuple(sorted((a, value_of(c, fr)) for a, c in aff.terms if a < nb and self.grid[a] > 1))
                lo, hi = aff_range(type(aff)(aff.base, tuple((a, c) for a, c in aff.terms if a >= nb or self.grid[a] == 1)), fr)
            signature.append(steps)
            if len(self.low) <= d:
                self.low.append(lo)
                self.high.append(hi)
            else:
                self.low[d], self.high[d] = min(self.low[d], lo), max(self.high[d], hi)
        if self.signature is None:
            self.signature = signature
        elif self.signature != signature:
            self.failed = True

    def proven(self) -> bool:
        """Whether blocks were apart in everything noted."""
        if self.failed:
            return False
        if self.signature is None:
            return True
        told = set()
        for d, steps in enumerate(self.signature):
            reach = self.high[d] - self.low[d] + 1
            for c, a in sorted((abs(c), a) for a, c in steps):
                if c < reach:
                    break
                reach += c * (self.grid[a] - 1)
                told.add(a)
        return all(a in told for a, n in enumerate(self.grid) if n > 1)


class Shadow:
    """Which block last wrote, read or atomically changed each element of a global buffer."""

    def __init__(self, shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
        self.grid = grid
        self.shape = shape
        self.reset()
        self.ordered: Any = None  # block → blocks known to come before it

    def reset(self) -> None:
        """Everything before is ordered before everything after."""
        self.writer = np.full(self.shape, -1, np.int32)
        self.reader = np.full(self.shape, -1, np.int32)
        self.atomic = np.full(self.shape, -1, np.int32)

    def block_ids(self, fr: Frame, rank: int) -> Value:
        """The linear block number over the lanes."""
        out: Value = np.zeros((1,) * rank, np.int32)
        for a, n in enumerate(self.grid):
            shape = [1] * rank
            shape[a] = fr.size[a]
            out = out * n + np.arange(fr.start[a], fr.start[a] + fr.size[a], dtype=np.int32).reshape(shape)
        return out

    def note(self, acc: Any, fr: Frame, box: Any, buf: Buf, kind: str, value: Value = None) -> None:
        """Check one access and remember it."""
        index, valid = acc.positions(fr, buf)
        active = valid if fr.mask is None else fr.mask if valid is None else valid & fr.mask
        me = self.block_ids(fr, acc.rank)
        parts = [np.asarray(i) for i in index] + [me] + ([np.asarray(active)] if active is not None else [])
        flat = np.broadcast_arrays(*(p.reshape((1,) * acc.rank) if p.ndim == 0 else p for p in parts))
        n = len(index)
        where = tuple(flat[:n])
        mine = flat[n]
        on = flat[n + 1] if active is not None else None
        bad = self._other(self.writer[where], mine, fr)
        kinds = {"read": "write-read", "write": "write-write", "atomic": "write-write"}
        if kind != "atomic":
            bad |= self._other(self.atomic[where], mine, fr)
        hit = kinds[kind]
        if kind != "read":
            by_read = self._other(self.reader[where], mine, fr)
            if by_read.any() and not bad.any():
                hit = "read-write"
            bad |= by_read
        if on is not None:
            bad &= on
        sel = tuple(w[on] for w in where) if on is not None else tuple(w.reshape(-1) for w in where)
        who = mine[on] if on is not None else mine.reshape(-1)
        table = {"read": self.reader, "write": self.writer, "atomic": self.atomic}[kind]
        earlier = table[sel]
        table[sel] = who
        if kind == "write" and not bad.any():
            clash = self.writer[where] != mine
            if on is not None:
                clash &= on
            bad = clash
        if kind in ("read", "atomic"):
            table[sel] = np.where(((earlier != -1) & (earlier != who)) | (table[sel] != who), -2, who)
        if bad.any():
            self._report(acc, fr, buf, bad, hit, value)

    def _other(self, table: Value, mine: Value, fr: Frame) -> Value:
        bad = (table != -1) & (table != mine)
        if self.ordered is not None and bad.any():
            bad &= ~self.ordered(table, mine)
        return bad

    def _report(self, acc: Any, fr: Frame, buf: Buf, bad: Value, kind: str, value: Value) -> None:
        lane = checks.first_lane(bad)
        severity = "error"
        if kind == "write-write" and value is not None:
            index, _ = acc.positions(fr, buf)
            now = np.broadcast_to(buf.full()[index], bad.shape)[bad]
            new = np.broadcast_to(np.asarray(value).reshape(np.shape(value) or (1,) * acc.rank), bad.shape)[bad]
            if bool(np.all((now == new) | (now != now) & (new != new))) and self._init(buf, index, bad):
                severity = "warning"
        index0 = acc.at(fr, lane)
        seen = {t: int(getattr(self, t)[tuple(index0)]) for t in ("writer", "reader", "atomic")} if self._inside(index0) else {}
        checks.race(
            acc, fr, buf, lane, kind, "blocks", {"blocks": seen},
            "give each block its own part, T.atomic_add for a sum, or a second T.Kernel after the first has ended", severity,
        )  # fmt: skip

    def _init(self, buf: Buf, index: Any, bad: Value) -> bool:
        return buf.init is True or (buf.init is not None and bool(np.broadcast_to(buf.init[index], bad.shape)[bad].all()))

    def _inside(self, index: list[Any]) -> bool:
        return all(0 <= i < n for i, n in zip(index, self.shape, strict=True))


class NestPlan:
    """The accesses of one parallel space, gathered while it is compiled; :meth:`close` decides which must be watched."""

    def __init__(self, axes_from: int, who: str) -> None:
        self.axes_from = axes_from  # lanes of the space: axes of the context from this one on
        self.who = who
        self.accesses: list[tuple[Any, str]] = []
        self.watch = False

    def close(self) -> bool:
        """Mark the accesses that can meet at one element; whether there are any."""
        groups: dict[Any, list[tuple[Any, str]]] = {}
        for acc, kind in self.accesses:
            groups.setdefault(acc.buffer.data, []).append((acc, kind))
        for items in groups.values():
            if not any(kind == "write" for _, kind in items):
                continue
            if self._apart(items):
                continue
            for acc, _ in items:
                acc.watched = True
                self.watch = True
        return self.watch

    def _apart(self, items: list[tuple[Any, str]]) -> bool:
        """Whether every access names its element by one expression that tells the lanes of the space apart."""
        first = items[0][0]
        keys = tuple(i.key for i in first.indices)
        if any(k is None for k in keys) and len(items) > 1:
            return False
        if any(tuple(i.key for i in acc.indices) != keys or acc.rank != first.rank or acc.slot != first.slot for acc, _ in items):
            return False
        axes = {a for a in range(self.axes_from, first.rank)}
        if len(items) == 1 and not any(a in i.axes for i in first.indices for a in axes):
            return True  # one write at one place: the values decide, when it runs
        told: set[int] = set()
        for aff, _ in first.dims:
            if aff is None:
                continue
            inner = [a for a, _ in aff.terms if a in axes]
            if len(inner) == 1:
                told.add(inner[0])
            elif inner and len(items) == 1:
                told.update(inner)  # one write: whether lanes meet is seen from the strides, when it runs
        return axes <= told


class Nest:
    """The shadow memory of one run of a parallel space: which lane wrote and read each element since the last barrier."""

    def __init__(self, plan: NestPlan, fr: Frame) -> None:
        self.plan = plan
        self.tables: dict[int, tuple[Value, Value]] = {}

    def barrier(self) -> None:
        """What came before is ordered before what follows."""
        self.tables.clear()

    def warp_barrier(self) -> None:
        """Lanes of one warp are ordered; other warps are not."""
        self.tables = {k: (np.where(w >= 0, -1, w), np.where(r >= 0, -1, r)) for k, (w, r) in self.tables.items()}

    def _lanes(self, acc: Any, fr: Frame, buf: Buf) -> Any:
        index, valid = acc.positions(fr, buf)
        active = valid if fr.mask is None else fr.mask if valid is None else valid & fr.mask
        me: Value = np.zeros((1,) * acc.rank, np.int64)
        axes = range(self.plan.axes_from, acc.rank) if not buf.is_global else [*range(len(acc.ctx.grid.blocks)), *range(self.plan.axes_from, acc.rank)]
        for a in axes:
            shape = [1] * acc.rank
            shape[a] = fr.size[a]
            me = me * fr.size[a] + np.arange(fr.size[a]).reshape(shape)
        # lanes of the buffer that are shared by all blocks so far: number them by block too
        lead = []
        for a in range(acc.lanes):
            if fr.size[a] > 1:
                shape = [1] * acc.rank
                shape[a] = fr.size[a]
                lead.append(np.arange(fr.size[a]).reshape(shape))
            else:
                lead.append(np.zeros((1,) * acc.rank, np.int64))
        parts = [*lead, *(np.asarray(i) for i in index[acc.lanes :]), me]
        if active is not None:
            parts.append(np.asarray(active))
        flat = np.broadcast_arrays(*(p.reshape((1,) * acc.rank) if p.ndim == 0 else p for p in parts))
        n = len(lead) + len(buf.shape)
        return tuple(flat[:n]), flat[n], (flat[n + 1] if active is not None else None)

    def _table(self, acc: Any, fr: Frame, buf: Buf) -> tuple[Value, Value]:
        if acc.slot not in self.tables:
            shape = (*(fr.size[a] for a in range(acc.lanes)), *buf.shape)
            self.tables[acc.slot] = (np.full(shape, -1, np.int64), np.full(shape, -1, np.int64))
        return self.tables[acc.slot]

    def read(self, acc: Any, fr: Frame, buf: Buf) -> None:
        """Note a read."""
        where, me, on = self._lanes(acc, fr, buf)
        writer, reader = self._table(acc, fr, buf)
        w = writer[where]
        bad = (w != -1) & (w != me)
        if on is not None:
            bad &= on
        if bad.any():
            self._report(acc, fr, buf, bad, "write-read")
        sel, who = (tuple(x[on] for x in where), me[on]) if on is not None else (tuple(x.reshape(-1) for x in where), me.reshape(-1))
        old = reader[sel]
        reader[sel] = who
        reader[sel] = np.where(((old != -1) & (old != who)) | (reader[sel] != who), -2, who)

    def write(self, acc: Any, fr: Frame, buf: Buf, value: Value) -> None:
        """Note a write."""
        where, me, on = self._lanes(acc, fr, buf)
        writer, reader = self._table(acc, fr, buf)
        w, r = writer[where], reader[where]
        bad = (w != -1) & (w != me)
        kind = "write-write"
        by_read = (r != -1) & (r != me)
        sel, who = (tuple(x[on] for x in where), me[on]) if on is not None else (tuple(x.reshape(-1) for x in where), me.reshape(-1))
        writer[sel] = who
        clash = bad | (writer[where] != me)
        if on is not None:
            clash &= on
            by_read &= on
        if clash.any() and not by_read.any():
            if self._same(acc, fr, where, value, clash, on):
                return
        elif by_read.any():
            kind, clash = "read-write", by_read
        if clash.any():
            self._report(acc, fr, buf, clash, kind)

    def _same(self, acc: Any, fr: Frame, where: Any, value: Value, clash: Value, on: Value) -> bool:
        """Whether lanes that meet at one element all write the same value there."""
        vals = np.broadcast_to(np.asarray(value).reshape(np.shape(value) or (1,) * acc.rank), clash.shape)
        flat = np.ravel_multi_index(where, tuple(int(w.max()) + 1 for w in where)) if where else np.zeros(clash.shape, np.int64)
        flat, v = (flat[on], vals[on]) if on is not None else (flat.reshape(-1), vals.reshape(-1))
        order = np.argsort(flat, kind="stable")
        f, v = flat[order], v[order]
        meet = f[1:] == f[:-1]
        return bool(np.all((v[1:] == v[:-1])[meet]))

    def _report(self, acc: Any, fr: Frame, buf: Buf, bad: Value, kind: str) -> None:
        lane = checks.first_lane(bad)
        where = self._lanes(acc, fr, buf)[0]
        at = tuple(int(w[lane]) for w in where)
        writer, reader = self.tables[acc.slot]
        checks.race(
            acc, fr, buf, lane, kind, self.plan.who,
            {"writer": int(writer[at]), "reader": int(reader[at])},
            "read what you need into another buffer first, split the loop in two so that a barrier comes between, or use an atomic or T.reduce_*",
        )  # fmt: skip

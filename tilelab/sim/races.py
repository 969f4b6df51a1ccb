"""Races: how blocks divide a global buffer, who touched what, and what lanes of one parallel space do to each other.

Uniform statements of a block are ordered by the compiler (it inserts the barriers), so only three kinds of race are
looked for here: inside one parallel space (a T.Parallel nest, or code that depends on the thread, between barriers),
and between blocks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

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


class Order:
    """Which blocks are known to come before which: an atomic that reads what another block's atomic left comes after it."""

    def __init__(self, grid: tuple[int, ...]) -> None:
        self.grid = grid
        self.blocks = int(np.prod(grid, dtype=np.int64))
        self.known: defaultdict[int, int] = defaultdict(int)  # bit sets of blocks
        self._left: dict[tuple[int, int], int] = {}

    def meet(self, blocks: Value, slot: int, at: Value, *, acquire: bool, release: bool) -> None:
        """Blocks touch elements ``at`` of the buffer in ``slot`` by atomics, in this order."""
        last = None
        for b, i in zip(blocks.tolist(), at.tolist(), strict=True):
            if (b, i) == last:
                continue
            last = (b, i)
            if acquire:
                self.known[b] |= self._left.get((slot, i), 0)
            if release:
                self._left[slot, i] = self._left.get((slot, i), 0) | self.known[b] | 1 << b

    def so_far(self, fr: Frame) -> int:
        """The block of a frame and those known to come before it, for whoever waits for it (as a bit set)."""
        b = self._block(fr)
        return self.known[b] | 1 << b if b is not None else 0

    def join(self, fr: Frame, blocks: int) -> None:
        """The block of a frame has waited for ``blocks``."""
        b = self._block(fr)
        if b is not None:
            self.known[b] |= blocks & ~(1 << b)

    def _block(self, fr: Frame) -> int | None:
        out = 0
        for a, n in enumerate(self.grid):
            if fr.size[a] != 1:
                return None
            out = out * n + fr.start[a]
        return out

    def before(self, earlier: int, later: int) -> bool:
        """Whether block ``earlier`` is known to come before block ``later`` (−2: several blocks)."""
        known = self.known[later]
        return bool(known >> earlier & 1) if earlier >= 0 else known | 1 << later == (1 << self.blocks) - 1


class Shadow:
    """Which block last wrote, read or atomically changed each element of a global buffer."""

    #: kind of access → (tables whose entries of other blocks conflict with it, the table that remembers it)
    _RULES: ClassVar = {
        "read": (("writer", "atomic"), "reader"),
        "write": (("writer", "atomic", "reader", "polled"), "writer"),
        "atomic": (("writer", "reader"), "atomic"),
        "atomic_load": (("writer",), "polled"),
    }

    def __init__(self, shape: tuple[int, ...], grid: tuple[int, ...], order: Order) -> None:
        self.grid, self.shape, self.order = grid, shape, order
        self.reset()

    def reset(self) -> None:
        """Everything before is ordered before everything after."""
        self.tables = {t: np.full(self.shape, -1, np.int32) for t in ("writer", "reader", "atomic", "polled")}

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
        where, mine, on = spread(acc, fr, buf, self.block_ids(fr, acc.rank))
        against, own = self._RULES[kind]
        bad = np.zeros(mine.shape, np.bool_)
        hit = "write-read" if kind in ("read", "atomic_load") else "write-write"
        for name in against:
            found = self._other(self.tables[name][where], mine, on)
            if found.any():
                if name in ("reader", "polled") and not bad.any():
                    hit = "read-write"
                bad |= found
        if on is not None:
            bad &= on
        sel = tuple(w[on] for w in where) if on is not None else tuple(w.reshape(-1) for w in where)
        who = mine[on] if on is not None else mine.reshape(-1)
        table = self.tables[own]
        earlier = table[sel]
        table[sel] = who
        if kind == "write" and not bad.any():
            bad = table[where] != mine
            if on is not None:
                bad &= on
        if kind != "write":
            apart = (earlier != -1) & (earlier != who)
            apart[apart] = self._unordered(earlier[apart], who[apart])  # whoever comes after `who` comes after those before it, too
            table[sel] = np.where(apart | (table[sel] != who), -2, who)
        if kind in ("atomic", "atomic_load"):
            flat = np.ravel_multi_index(sel, self.shape) if sel else np.zeros(who.shape, np.int64)
            self.order.meet(who, acc.slot, flat, acquire=True, release=kind == "atomic")
        if bad.any():
            self._report(acc, fr, buf, bad, hit, value)

    def _other(self, table: Value, mine: Value, on: Value) -> Value:
        """Active lanes whose element another block has touched that is not known to come before."""
        bad = (table != -1) & (table != mine)
        if on is not None:
            bad &= on
        if bad.any():
            bad[bad] = self._unordered(table[bad], mine[bad])
        return bad

    def _unordered(self, earlier: Value, later: Value) -> Value:
        """Of pairs of blocks, those whose first is not known to come before the second."""
        if not earlier.size or not any(self.order.known.values()):
            return np.ones(earlier.shape, np.bool_)
        n = self.order.blocks
        pairs, back = np.unique(earlier.astype(np.int64) * n + later, return_inverse=True)
        return np.array([not self.order.before(int(p // n), int(p % n)) for p in pairs])[back]

    def _report(self, acc: Any, fr: Frame, buf: Buf, bad: Value, kind: str, value: Value) -> None:
        lane = checks.first_lane(bad)
        severity = "error"
        if kind == "write-write" and value is not None:
            index, _ = acc.positions(fr, buf)
            now = np.broadcast_to(buf.full()[index], bad.shape)[bad]
            new = np.broadcast_to(np.asarray(value).reshape(np.shape(value) or (1,) * acc.rank), bad.shape)[bad]
            same = (now == new) | (now != now) & (new != new)
            if (bool(np.all(same)) and self._init(buf, index, bad)) or not self._differ(where_flat(acc, fr, buf, bad), new):
                severity = "warning"
        index0 = acc.at(fr, lane)
        inside = all(0 <= i < n for i, n in zip(index0, self.shape, strict=True))
        seen = {t: int(v[tuple(index0)]) for t, v in self.tables.items()} if inside else {}
        checks.race(
            acc, fr, buf, lane, kind, "blocks", {"blocks": seen},
            "give each block its own part, T.atomic_add for a sum, or a second T.Kernel after the first has ended", severity,
        )  # fmt: skip

    def _differ(self, at: Value, new: Value) -> bool:
        """Whether two of the values written to one element differ."""
        order = np.argsort(at, kind="stable")
        a, v = at[order], new[order]
        meet = a[1:] == a[:-1]
        return not meet.any() or bool(np.any((v[1:] != v[:-1])[meet]))

    def _init(self, buf: Buf, index: Any, bad: Value) -> bool:
        return buf.init is True or (buf.init is not None and bool(np.broadcast_to(buf.init[index], bad.shape)[bad].all()))


def where_flat(acc: Any, fr: Frame, buf: Buf, bad: Value) -> Value:
    """Linear positions of the elements that the lanes of ``bad`` touch."""
    index, _ = acc.positions(fr, buf)
    parts = [np.broadcast_to(np.asarray(i).reshape((1,) * acc.rank) if np.ndim(i) == 0 else i, bad.shape)[bad] for i in index]
    return np.ravel_multi_index(tuple(parts), buf.shape) if parts else np.zeros(int(bad.sum()), np.int64)


def spread(acc: Any, fr: Frame, buf: Buf, me: Value, lead: tuple[Value, ...] | None = None) -> tuple[tuple[Value, ...], Value, Value]:
    """Index arrays, the number of each lane, and the active lanes (None: all), brought to one shape."""
    index, valid = acc.positions(fr, buf)
    if lead is not None:
        index = (*lead, *index[acc.lanes :])
    active = valid if fr.mask is None else fr.mask if valid is None else valid & fr.mask
    parts = [np.asarray(i) for i in index] + [me] + ([np.asarray(active)] if active is not None else [])
    flat = np.broadcast_arrays(*(p.reshape((1,) * acc.rank) if p.ndim == 0 else p for p in parts))
    n = len(index)
    return tuple(flat[:n]), flat[n], (flat[n + 1] if active is not None else None)


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
        axes = set(range(self.axes_from, first.rank))
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
        me: Value = np.zeros((1,) * acc.rank, np.int64)
        axes = (
            range(self.plan.axes_from, acc.rank)
            if not buf.is_global
            else [*range(len(acc.ctx.grid.blocks)), *range(self.plan.axes_from, acc.rank)]
        )
        for a in axes:
            me = me * fr.size[a] + _along(a, acc.rank, fr.size[a])
        return spread(acc, fr, buf, me, tuple(_along(a, acc.rank, fr.size[a]) for a in range(acc.lanes)))

    def _table(self, acc: Any, fr: Frame, buf: Buf) -> tuple[Value, Value]:
        if acc.slot not in self.tables:
            shape = (*(fr.size[a] for a in range(acc.lanes)), *buf.shape)
            self.tables[acc.slot] = (np.full(shape, -1, np.int64), np.full(shape, -1, np.int64))
        return self.tables[acc.slot]

    def read(self, acc: Any, fr: Frame, buf: Buf) -> None:
        """Note a read."""
        where, me, on = self._lanes(acc, fr, buf)
        writer, reader = self._table(acc, fr, buf)
        bad = self._other(writer[where], me, acc, fr, buf)
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
        bad = self._other(writer[where], me, acc, fr, buf)
        kind = "write-write"
        by_read = self._other(reader[where], me, acc, fr, buf)
        sel, who = (tuple(x[on] for x in where), me[on]) if on is not None else (tuple(x.reshape(-1) for x in where), me.reshape(-1))
        writer[sel] = who
        clash = bad | self._other(writer[where], me, acc, fr, buf)
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

    def _other(self, table: Value, me: Value, acc: Any, fr: Frame, buf: Buf) -> Value:
        """Lanes whose element another lane (of the same block) has touched."""
        bad = (table != -1) & (table != me)
        if buf.is_global and any(fr.size[a] > 1 for a in range(len(acc.ctx.grid.blocks))):
            per = int(np.prod([fr.size[a] for a in range(self.plan.axes_from, acc.rank)], dtype=np.int64))
            bad &= (table >= 0) & (table // per == me // per)
        return bad

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
            _APART.get(self.plan.who, _SPLIT),
        )  # fmt: skip


_SPLIT = "T.atomic_add or T.reduce_sum for a sum; else read into another buffer first, or split the loop (a barrier comes between)"
_APART = {
    "threads": "move the step, or the loop around it, out of the condition on the thread: where all threads of the block come, TileLang "
    "puts a barrier between steps; or T.atomic_add or T.reduce_sum for a sum"
}


def _along(axis: int, rank: int, n: int) -> Value:
    shape = [1] * rank
    shape[axis] = n
    return np.arange(n).reshape(shape)

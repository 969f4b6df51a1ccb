"""Tensors made from addresses (``T.make_tensor``, ``T.make_tensor_from_addr``): tables of pointers, and views from a pointer on.

Memory that addresses reach is one flat buffer for each dtype in which it is looked at: the arrays of the tables, one
after the other. An address of a table is a number of our own; where it leads is looked up when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks, dtypes
from tilelab.sim.access import Access, pick
from tilelab.sim.context import Context
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value, aff_values, both
from tilelab.sim.memory import Buf
from tilelab.sim.tileops.space import pointee

#: Addresses of two arrays are at least so far apart.
_APART = 1 << 36


@dataclass(slots=True)
class Memory:
    """What addresses reach: arrays by base address, and the flat buffers that show them."""

    arrays: dict[int, tuple[Any, str]] = field(default_factory=dict)  # base address → array, dtype
    labels: dict[str, int] = field(default_factory=dict)  # "NAME[i]" → base address
    pools: dict[int, Pool] = field(default_factory=dict)  # slot of the flat buffer → what it holds

    def add(self, label: str, arrays: Sequence[Any], dtype_of: Any) -> Any:
        """Take the arrays of a pointer table and return their addresses as int64; one array has one address, wherever it stands."""
        known = {_place(a): base for base, (a, _) in self.arrays.items()}
        for i, a in enumerate(arrays):
            base = known.setdefault(_place(a), (len(self.arrays) + 1) * _APART)
            self.arrays.setdefault(base, (a, dtype_of(a)))
            self.labels[f"{label}[{i}]"] = base
        return np.array([self.labels[f"{label}[{i}]"] for i in range(len(arrays))], np.int64)

    def pool(self, slot: int, buffer: ir.Buffer) -> Buf:
        """Make the flat buffer of one dtype."""
        parts, pool = [], Pool()
        width = dtypes.info(buffer.dtype).bits
        at = 0
        for base, (array, dtype) in self.arrays.items():
            values = dtypes.load(np.ascontiguousarray(array).reshape(-1), dtype)
            same = dtypes.parse(dtype)[0] == dtypes.parse(buffer.dtype)[0]
            if not same:
                values = dtypes.reinterpret(values, dtype, buffer.dtype).reshape(-1)
            pool.bases.append(base)
            pool.firsts.append(at)
            pool.sizes.append(values.size)
            pool.shapes.append(np.shape(array) if same else None)
            parts.append(values)
            at += values.size
        pool.width = width
        self.pools[slot] = pool
        buf = Buf(buffer.name, buffer.dtype, "global", (at,), 0, buffer.loc)
        buf.root = np.concatenate(parts).astype(buf.np) if parts else np.zeros(0, buf.np)
        buf.strides, buf.init, buf.own = buf.root.strides, True, True
        return buf

    def outputs(self, slot: int, buf: Buf) -> dict[str, Any]:
        """The arrays of a flat buffer that was written, by label."""
        pool, flat = self.pools[slot], dtypes.store(np.ascontiguousarray(buf.full()), buf.dtype)
        out = {}
        for label, base in self.labels.items():
            at = pool.bases.index(base)
            shape, first = pool.shapes[at], pool.firsts[at]
            if shape is not None:
                out[label] = flat[first : first + pool.sizes[at]].reshape(shape).copy()
        return out


def _place(array: Any) -> tuple[Any, ...]:
    return (array.__array_interface__["data"][0], array.shape, array.strides, array.dtype.str) if array.size else (id(array),)


@dataclass(slots=True)
class Pool:
    """Where the arrays begin in a flat buffer."""

    bases: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    shapes: list[tuple[int, ...] | None] = field(default_factory=list)  # None: shown in another dtype, not to be written
    width: int = 8  # bits of an element

    def find(self, address: Value) -> tuple[Value, Value, Value]:
        """For each address: the element of the flat buffer, the elements from there to the end of its array, and whether it is one."""
        address = np.asarray(address).astype(np.int64)
        if not self.bases:
            return np.zeros_like(address), np.zeros_like(address), np.zeros(address.shape, np.bool_)
        at = np.searchsorted(np.array(self.bases), address, side="right") - 1
        known, at = at >= 0, np.maximum(at, 0)
        into = (address - np.array(self.bases)[at]) * 8 // self.width
        left = np.array(self.sizes)[at] - into
        return np.array(self.firsts)[at] + into, left, known & (left >= 0) & (into >= 0)


class Pointed(Access):
    """An access of a tensor made from an address: bounds are those it was declared with, and those of the array behind it."""

    __slots__ = ("address", "base", "sizes", "steps")

    def __init__(
        self, comp: Any, buffer: ir.Buffer, slot: int, lanes: int, indices: tuple[Ex, ...], ctx: Context, what: str, stored: bool
    ) -> None:
        super().__init__(buffer, slot, lanes, indices, ctx, what, stored)
        self.sizes = comp.exprs(buffer.shape, ctx)
        self.steps = comp.exprs(buffer.strides, ctx)
        self.base: Any = None  # the indices of the element that a view begins with
        if buffer.data in comp.pointers:
            self.base = comp.exprs(pointee(comp, buffer.data, ctx).indices, ctx)
            more = frozenset().union(*(e.axes for e in self.base))
            self.address: Any = None
        else:
            self.address = comp.expr(buffer.data, ctx)
            more = self.address.axes
        self.axes = self.axes | more
        self.free = tuple(a for a in self.free if a not in more)
        self.identity = False

    def box(self, fr: Frame, shape: tuple[int, ...]) -> None:
        """No view: elements are found one by one."""
        return

    def positions(self, fr: Frame, buf: Buf) -> tuple[tuple[Value, ...], Value]:
        """Index arrays into the storage behind the address, and which lanes are inside."""
        valid: Any = True
        where: Any = 0
        sizes = [e.fn(fr) for e in self.sizes]
        steps = [e.fn(fr) for e in self.steps] or _contiguous(sizes)
        for (aff, ex), n, step in zip(self.dims, sizes, steps, strict=True):
            x = aff_values(aff, fr, self.rank) if aff is not None else ex.fn(fr)
            valid = valid & ((np.asarray(x) >= 0) & (np.asarray(x) < n))
            where = where + np.asarray(x, np.int64) * step
        if self.address is not None:
            first, left, known = fr.run.memory.pools[self.slot].find(self.address.fn(fr))
            wild = ~np.asarray(known & (where < left) & (where >= 0))
            self._wild(fr, both(np.asarray(valid & wild), fr.mask))
            valid, flat = valid & ~wild, where + first
        else:
            start: Any = 0
            for e, n in zip(self.base, buf.shape, strict=True):
                start = start * n + np.asarray(e.fn(fr), np.int64)
            flat = where + start
            valid = valid & (flat < int(np.prod(buf.shape))) & (flat >= 0)
        total = int(np.prod(buf.shape, dtype=np.int64))
        flat = np.clip(flat, 0, max(total - 1, 0))
        if np.ndim(flat) == 0:
            flat = np.asarray(flat).reshape((1,) * self.rank)
        lead = []
        for a in range(self.lanes):
            shape = [1] * self.rank
            shape[a] = buf.lsize[a]
            lead.append(np.arange(buf.lsize[a]).reshape(shape) if buf.lsize[a] > 1 else 0)
        inside = np.asarray(valid)
        if inside.ndim == 0:
            inside = inside.reshape((1,) * self.rank)
        return (*lead, *np.unravel_index(flat, buf.shape)), None if inside.all() else inside

    def _wild(self, fr: Frame, bad: Value) -> None:
        """Report an address that leads nowhere, or past the end of its array (TL101)."""
        bad = np.asarray(bad)
        if not fr.run.checks or not bad.any():
            return
        loc, name = self.loc, self.buffer.name
        lane = checks.first_lane(bad)
        address = int(pick(self.address.fn(fr), lane))
        fr.run.findings.report(
            ("wild", name, loc and (loc.file, loc.line)), "TL101",
            f"{checks.element(name, self.at(fr, lane))} lies outside the memory that the address behind {name} points to: "
            "nothing stops the device here.",
            loc, fix=f"declare {name} no larger than the tensor whose address is in the table, and keep addresses as they were given",
            evidence={"buffer": name, "address": address, "index": self.at(fr, lane)}, **checks.where(self, fr, lane),
        )  # fmt: skip

    def outside(self, fr: Frame, buf: Buf, valid: Value, *, write: bool) -> None:
        """Report lanes outside the shape that the tensor was declared with."""
        if not fr.run.checks:
            return
        shape = tuple(int(np.max(e.fn(fr))) for e in self.sizes)
        declared = Buf(self.buffer.name, self.buffer.dtype, buf.scope, shape, 0, self.buffer.loc)
        bad: Any = False
        for (aff, ex), n in zip(self.dims, (e.fn(fr) for e in self.sizes), strict=True):
            x = np.asarray(aff_values(aff, fr, self.rank) if aff is not None else ex.fn(fr))
            bad = bad | ((x < 0) | (x >= n))
        bad = both(np.asarray(bad), fr.mask)
        if bad.any():
            checks.out_of_bounds(self, fr, declared, bad, write=write)


def _contiguous(sizes: list[Any]) -> list[Any]:
    steps: list[Any] = [1] * len(sizes)
    for d in reversed(range(len(sizes) - 1)):
        steps[d] = steps[d + 1] * np.asarray(sizes[d + 1], np.int64)
    return steps


def pointed(comp: Any, buffer: ir.Buffer, indices: tuple[Ex, ...], ctx: Context, what: str) -> Pointed:
    """The access of a buffer whose data is an address.

    Raises:
        Unsupported: It shows memory of a kernel in another dtype than it was made with.
    """
    stored = buffer.data in comp.stored
    if buffer.data in comp.pointers:
        base = pointee(comp, buffer.data, ctx).buffer
        if dtypes.parse(base.dtype)[0] != dtypes.parse(buffer.dtype)[0]:
            raise Unsupported(
                f"{buffer.name}, which shows {base.name} ({base.dtype}) as {buffer.dtype} from an address on", ctx.loc, "use T.view"
            )
        if stored:
            comp.stored.add(base.data)
        return Pointed(comp, buffer, comp.slot_of(base, ctx), comp.lanes_of(base, ctx), indices, ctx, what, stored)
    return Pointed(comp, buffer, comp.pool_of(buffer, written=stored), 0, indices, ctx, what, stored)


__all__ = ["Memory", "Pointed", "pointed"]

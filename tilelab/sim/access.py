"""Accesses: one static place where a buffer is read or written, as a strided view where the indices are affine.

Reading and writing first try a *box*: bounds by interval, then one strided view of the storage, no copy and no index
array. Only where an index depends on data, or lanes fall outside, are elements gathered or scattered one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks, numbers
from tilelab.sim.context import Context
from tilelab.sim.lanes import Ex, Frame, Value, aff_range, aff_values, both, expand, scalar_of, value_of
from tilelab.sim.memory import Buf
from tilelab.sim.numbers import INT32
from tilelab.sim.taint import is_local

Box = tuple[list[int], list[tuple[int, int, int]]]


class Access:
    """A read or write of ``buffer`` at ``indices`` in one place of the program."""

    __slots__ = (
        "agrees",
        "atomic",
        "axes",
        "buffer",
        "ctx",
        "dims",
        "free",
        "identity",
        "indices",
        "lanes",
        "loc",
        "rank",
        "safe",
        "slot",
        "stored",
        "watched",
        "what",
    )

    def __init__(self, buffer: ir.Buffer, slot: int, lanes: int, indices: tuple[Ex, ...], ctx: Context, what: str, stored: bool) -> None:
        self.buffer, self.slot, self.lanes, self.indices, self.ctx, self.what = buffer, slot, lanes, indices, ctx, what
        self.loc, self.rank = ctx.loc, ctx.rank
        self.stored = stored  # whether the program may write the buffer at all
        self.dims = tuple((i.aff, i) for i in indices)
        used = {a for i in indices for a in i.axes}
        threads = ctx.grid.thread_axes
        # per-thread storage in code that the threads run together: they must agree
        self.agrees = bool(threads) and not ctx.each and lanes >= ctx.grid.rank and is_local(buffer)
        self.axes = frozenset(used | set(range(lanes))) - (set(threads) if self.agrees else set())
        self.free = tuple(a for a in range(lanes, ctx.rank) if a not in used)
        self.atomic = False  # done by one indivisible operation
        self.safe: Any = 0  # what masked reads give
        self.watched = False  # a parallel space must see it to find races
        self.identity = self._is_identity()

    def _is_identity(self) -> bool:
        """Whether the box, where it is whole, lies in storage as in the lanes: dimension d is axis rank − ndim + d."""
        first = self.rank - len(self.dims)
        return first >= self.lanes and all(
            a is not None and a.base == 0 and a.terms == ((first + d, 1),) for d, (a, _) in enumerate(self.dims)
        )

    # ----------------------------------------------------------------------------------------------------- boxes
    def box(self, fr: Frame, shape: tuple[int, ...]) -> Box | None:
        """Base index of each dimension and ``(axis, dimension, step)`` triples; None where that cannot be, or is outside."""
        bases: list[int] = []
        terms: list[tuple[int, int, int]] = []
        size, start = fr.size, fr.start
        for d, (aff, ex) in enumerate(self.dims):
            if aff is None:
                one = scalar_of(ex.fn(fr))
                if one is None or not 0 <= one < shape[d]:
                    return None
                bases.append(one)
                continue
            base = aff.base if type(aff.base) is int else aff.base(fr)  # type: ignore[operator]
            lo = hi = base
            for axis, c in aff.terms:
                step = c if type(c) is int else c(fr)  # type: ignore[operator]
                first = step * start[axis]
                span = step * (size[axis] - 1)
                base += first
                lo, hi = lo + first, hi + first
                if span >= 0:
                    hi += span
                else:
                    lo += span
                terms.append((axis, d, step))
            if lo < 0 or hi >= shape[d]:
                return None
            bases.append(base)
        return bases, terms

    def view(self, fr: Frame, box: Box, root: Value, offset: int, strides: tuple[int, ...], lsize: tuple[int, ...], dtype: Any) -> Value:
        """A strided view over the lanes (axes that matter have their size, others 1)."""
        lanes = self.lanes
        sizes = [1] * self.rank
        steps = [0] * self.rank
        for a in range(lanes):
            if lsize[a] > 1:
                sizes[a], steps[a] = lsize[a], strides[a]
        bases, terms = box
        for d, b in enumerate(bases):
            offset += b * strides[lanes + d]
        for axis, d, step in terms:
            sizes[axis] = fr.size[axis]
            steps[axis] += step * strides[lanes + d]
        return np.ndarray(sizes, dtype, root, offset, steps)

    def of(self, fr: Frame, box: Box, buf: Buf) -> Value:
        """The view of the buffer's storage."""
        return self.view(fr, box, buf.root, buf.offset, buf.strides, buf.lsize, buf.np)

    def init_of(self, fr: Frame, box: Box, buf: Buf) -> Value:
        """The view of the buffer's initialised bits, which must be an array."""
        init = buf.init
        if not init.flags.c_contiguous:  # a view of other bits: look from its own memory
            return np.lib.stride_tricks.as_strided(*_strided(self, fr, box, buf))
        return self.view(fr, box, init, 0, init.strides, buf.lsize, np.bool_)

    # --------------------------------------------------------------------------------------------------- reading
    def read(self, fr: Frame) -> Value:
        """The value over the lanes: a view of the storage where possible."""
        buf: Buf = fr.mem[self.slot]
        if buf.root is None:
            buf.full()
        if buf.base is not None:
            buf.pull()
        if buf.raw:
            buf.poison_rest()
        box = self.box(fr, buf.shape)
        if fr.run.checks:
            if self.watched and fr.nest is not None:
                fr.nest.read(self, fr, buf)
            if buf.partition is not None:
                buf.partition.note(self, fr, box, buf, "atomic_load" if self.atomic else "read")
            if buf.init is not True and buf.track:
                self.check_init(fr, buf, box)
        if buf.is_global:
            fr.run.bytes_read += self.traffic(fr, buf)
        if box is None:
            return self.ctx.agreed(fr, self.gather(fr, buf), self.buffer.name) if self.agrees else self.gather(fr, buf)
        out = self.of(fr, box, buf)
        if self.agrees:
            return self.ctx.agreed(fr, out, self.buffer.name)
        return out if self.rank else out[()]

    def traffic(self, fr: Frame, buf: Buf) -> int:
        """Bytes that the blocks of the frame move here (masked lanes are counted too)."""
        n = 1
        for a, size in enumerate(fr.size[: self.rank]):
            if a < fr.run.block_axes or a in self.axes:
                n *= size
        return n * buf.bits // 8

    def check_init(self, fr: Frame, buf: Buf, box: Box | None) -> None:
        """Report lanes that read what nobody wrote."""
        if buf.init is None:
            bad: Value = np.ones((1,) * self.rank, np.bool_)
        elif box is not None:
            bad = ~self.init_of(fr, box, buf)
        else:
            index, valid = self.positions(fr, buf)
            bad = ~buf.init[index]
            if valid is not None:
                bad = bad & valid
        bad = both(bad, fr.mask)
        if self.agrees and fr.outer is not None:
            bad = bad & fr.outer.reshape(fr.outer.shape + (1,) * (self.rank - fr.outer.ndim))
        if bad.any():
            checks.uninitialised(self, fr, buf, bad)

    def positions(self, fr: Frame, buf: Buf) -> tuple[tuple[Value, ...], Value]:
        """Index arrays into storage (lane axes, then dimensions; clipped), and which lanes are inside (None: all)."""
        valid: Value = None
        rank = self.rank
        index: list[Value] = []
        for a in range(self.lanes):
            if buf.lsize[a] > 1:
                shape = [1] * rank
                shape[a] = buf.lsize[a]
                index.append(np.arange(buf.lsize[a]).reshape(shape))
            else:
                index.append(0)
        for d, (aff, ex) in enumerate(self.dims):
            n = buf.shape[d]
            if aff is not None:
                lo, hi = aff_range(aff, fr)
                x = aff_values(aff, fr, rank)
                inside = lo >= 0 and hi < n
                if (hi > INT32 or lo < -INT32 - 1) and ex.dtype == "int32":
                    x = self.wrapped(fr, x, lo, hi)
            else:
                x = ex.fn(fr)
                inside = False
            if not inside:
                ok = (x >= 0) & (x < n)
                if not (ok.all() if isinstance(ok, np.ndarray) else ok):
                    valid = ok if valid is None else valid & ok
                    x = np.clip(x, 0, max(n - 1, 0))
            index.append(x.astype(np.intp, copy=False) if isinstance(x, np.ndarray) else int(x))
        if valid is not None and not isinstance(valid, np.ndarray):
            valid = np.full((1,) * rank, bool(valid))
        return tuple(index), valid

    def wrapped(self, fr: Frame, x: Value, lo: int, hi: int) -> Value:
        """An int32 index that leaves int32, as the device has it (TL106)."""
        wide = hi if hi > INT32 else lo
        numbers.wraps(fr, self.ctx, wide, (wide + INT32 + 1) % (1 << 32) - INT32 - 1)
        return (x + (INT32 + 1)) % (1 << 32) - (INT32 + 1)

    def gather(self, fr: Frame, buf: Buf) -> Value:
        """Read element by element; lanes outside read the safe value (0)."""
        index, valid = self.positions(fr, buf)
        if 0 in buf.shape:
            out: Value = np.zeros((1,) * self.rank, buf.np)
        else:
            out = buf.full()[index]
        if valid is not None:
            self.outside(fr, buf, valid, write=False)
            out = np.where(valid, out, buf.np.type(self.safe))
            if out.dtype != buf.np:
                out = out.astype(buf.np)
        if np.ndim(out) == 0 and self.rank:
            out = np.asarray(out, buf.np).reshape((1,) * self.rank)
        return out if self.rank else np.asarray(out)[()]

    def outside(self, fr: Frame, buf: Buf, valid: Value, *, write: bool) -> None:
        """Report lanes outside the buffer: masked on global memory, an error elsewhere."""
        if not fr.run.checks:
            return
        bad = both(~valid, fr.mask)
        if bad.any():
            checks.out_of_bounds(self, fr, buf, bad, write=write)

    # --------------------------------------------------------------------------------------------------- writing
    def write(self, fr: Frame, value: Value, source: Access | None = None) -> None:
        """Store ``value`` (over the lanes) where the mask holds. ``source``: the access that ``value`` is a view of."""
        buf: Buf = fr.mem[self.slot]
        mask = fr.mask
        buf.written = True
        fr.run.version += 1
        if buf.is_global:
            fr.run.bytes_written += self.traffic(fr, buf)
        if buf.base is not None:
            buf.pull()
            self._write(fr, buf, value, mask, None)
            buf.push()
            return
        self._write(fr, buf, value, mask, source)

    def _write(self, fr: Frame, buf: Buf, value: Value, mask: Value, source: Access | None) -> None:
        run = fr.run
        box = self.box(fr, buf.shape)
        if run.checks:
            if buf.reach is not None:
                buf.reach.note(self, fr, buf)
            if self.watched and fr.nest is not None:
                fr.nest.write(self, fr, buf, value)
            if buf.partition is not None:
                buf.partition.note(self, fr, box, buf, "atomic" if self.atomic else "write", value)
        if (
            mask is None
            and self.identity
            and box is not None
            and not buf.is_global
            and not buf.pinned
            and self._replace(fr, buf, value, source)
        ):
            return
        free = self.free
        if box is not None and len(self.axes) > len(box[1]):  # an index that comes from memory may be the same in all lanes
            named = {axis for axis, _, _ in box[1]}
            free = tuple(a for a in range(self.lanes, self.rank) if a not in named)
        value, mask = self.settle(fr, buf, value, mask, free)
        if box is None or not self._apart(fr, box):
            self.scatter(fr, buf, value, mask)
            return
        self._ready(fr, buf, value, mask, box)
        out = self.of(fr, box, buf)
        if mask is None:
            out[...] = value
        else:
            np.copyto(out, value, where=mask)
        if buf.init is not True and buf.track:
            buf.init_array()
            done = self.init_of(fr, box, buf)
            if mask is None:
                done[...] = True
            else:
                np.copyto(done, True, where=mask)
            if not buf.is_global and not buf.pinned and buf.init.all():
                buf.init = True

    def _replace(self, fr: Frame, buf: Buf, value: Value, source: Access | None) -> bool:
        """A full, unmasked write makes the value the storage."""
        first = self.rank - len(self.dims)
        if not isinstance(value, np.ndarray):
            if any(fr.size[first + d] != n for d, n in enumerate(buf.shape)):
                return False
            buf.fill_with(value)
            return True
        shape = value.shape
        if shape[first:] != buf.shape or value.dtype != buf.np or any(n != 1 for n in shape[self.lanes : first]):
            return False
        own = False
        if source is not None:
            other: Buf = fr.mem[source.slot]
            if other is buf or (other.is_global and source.stored):
                value = value.copy()
                own = True
            else:
                other.own = other.own and other.is_global
        elif value.base is None:
            own = False  # a variable may hold it too: copy when written in place
        if first != self.lanes:
            value = value.reshape(shape[: self.lanes] + shape[first:])
        if own or value.base is None or value.flags.c_contiguous:
            buf.adopt(value, own=own)
        else:
            root, offset = _root_of(value)
            if root is None:
                buf.adopt(value, own=False)
            else:
                buf.share(root, offset, value.strides, value.shape[: self.lanes])
        buf.init = True
        return True

    def settle(self, fr: Frame, buf: Buf, value: Value, mask: Value, free: tuple[int, ...]) -> tuple[Value, Value]:
        """Bring value and mask to one lane for each element along the ``free`` axes, which the index does not name."""
        if not isinstance(value, np.ndarray) or value.ndim == 0:
            vshape: tuple[int, ...] = (1,) * self.rank
        else:
            vshape = value.shape
        for a in free:
            many_m = mask is not None and mask.shape[a] > 1
            if vshape[a] > 1:
                if fr.run.checks and not self.watched:
                    checks.conflict(self, fr, buf, value, mask, a)
                if many_m:
                    last = mask.shape[a] - 1 - np.argmax(np.flip(mask, a), axis=a, keepdims=True)
                    shape = list(np.broadcast_shapes(value.shape, last.shape))
                    shape[a] = value.shape[a]
                    ishape = list(shape)
                    ishape[a] = 1
                    value = np.take_along_axis(np.broadcast_to(value, shape), np.broadcast_to(last, ishape), a)
                else:
                    value = value.take([-1], axis=a)
                vshape = value.shape
            if many_m:
                mask = mask.any(axis=a, keepdims=True)
        return value, mask

    def _apart(self, fr: Frame, box: Box) -> bool:
        """Whether different lanes of the box are different elements."""
        per: dict[int, list[tuple[int, int]]] = {}
        for axis, d, step in box[1]:
            if fr.size[axis] > 1:
                per.setdefault(d, []).append((abs(step), fr.size[axis]))
        for entries in per.values():
            if len(entries) == 1 and entries[0][0]:
                continue
            reach = 1
            for step, n in sorted(entries):
                if step < reach:
                    return False
                reach = step * (n - 1) + reach
        return True

    def _ready(self, fr: Frame, buf: Buf, value: Value, mask: Value, box: Box | None) -> None:
        """Make the storage writable, with the lanes that this write distinguishes."""
        if self.lanes == 0:
            buf.writable(None)
            return
        need = [1] * self.lanes
        indexed = {a for i in self.indices for a in i.axes}
        for a in range(self.lanes):
            if fr.size[a] > 1 and (
                a in indexed
                or (isinstance(value, np.ndarray) and value.ndim and value.shape[a] > 1)
                or (mask is not None and mask.shape[a] > 1)
            ):
                need[a] = fr.size[a]
        buf.writable(tuple(need))

    def inside(self, fr: Frame) -> Value:
        """The lanes inside the buffer; None where all are."""
        buf: Buf = fr.mem[self.slot]
        return None if self.box(fr, buf.shape) is not None else self.positions(fr, buf)[1]

    def initialised(self, fr: Frame) -> Value:
        """The lanes whose element is initialised; None where all are, or where that is to be checked one by one."""
        buf: Buf = fr.mem[self.slot]
        if buf.init is True or not fr.run.checks or buf.flying:
            return None
        box = self.box(fr, buf.shape)
        if box is None:
            return None
        if buf.init is None:
            return np.zeros((1,) * self.rank, np.bool_)
        have = self.init_of(fr, box, buf)
        return None if have.all() else have.copy()

    def unwrite(self, fr: Frame, have: Value) -> None:
        """Take the initialised bit back where ``have`` is false."""
        buf: Buf = fr.mem[self.slot]
        box = self.box(fr, buf.shape)
        if box is None:
            return
        lost = both(~have, fr.mask)
        self._ready(fr, buf, lost, None, box)
        buf.init_array()
        view = self.init_of(fr, box, buf)
        view[...] = view & ~lost

    def forget(self, fr: Frame) -> None:
        """Mark what this writes as uninitialised: something asynchronous will write it later."""
        buf: Buf = fr.mem[self.slot]
        box = self.box(fr, buf.shape)
        if box is not None and fr.run.checks and buf.init is not None:
            self._ready(fr, buf, 0, None, box)
            buf.init_array()
            self.init_of(fr, box, buf)[...] = False

    def scatter(self, fr: Frame, buf: Buf, value: Value, mask: Value) -> None:
        """Write element by element, skipping lanes outside."""
        index, valid = self.positions(fr, buf)
        if valid is not None:
            self.outside(fr, buf, valid, write=True)
            mask = both(mask, valid)
        self._ready(fr, buf, value, mask, None)
        if 0 in buf.shape:
            return
        index = self.positions(fr, buf)[0] if self.lanes else index  # the lanes may have grown
        parts = [*index, np.asarray(value)]
        if mask is not None:
            parts.append(mask)
        flat = np.broadcast_arrays(*(np.asarray(p).reshape((1,) * self.rank) if np.ndim(p) == 0 else p for p in parts))
        n = len(index)
        keep = flat[n + 1] if mask is not None else None
        where = tuple(f[keep] if keep is not None else f.reshape(-1) for f in flat[:n])
        values = flat[n][keep] if keep is not None else flat[n].reshape(-1)
        buf.full()[where] = values
        if buf.init is not True and buf.track:
            buf.init_array()[where] = True

    # ------------------------------------------------------------------------------------------------- reporting
    def at(self, fr: Frame, lane: tuple[int, ...]) -> list[int]:
        """The index of the element that ``lane`` touches."""
        out = []
        for aff, ex in self.dims:
            x = aff_values(aff, fr, self.rank) if aff is not None else ex.fn(fr)
            out.append(pick(x, lane))
        return out


def pick(x: Value, lane: tuple[int, ...]) -> Any:
    """The value of ``x`` at ``lane``."""
    if not isinstance(x, np.ndarray) or x.ndim == 0:
        return x.item() if isinstance(x, np.generic | np.ndarray) else x
    return x[tuple(min(i, n - 1) for i, n in zip(lane, x.shape, strict=False))].item()


def _strided(acc: Access, fr: Frame, box: Box, buf: Buf) -> tuple[Value, Any, Any]:
    """Arguments of ``as_strided`` for the lanes of ``box`` in initialised bits that are a view themselves."""
    init = buf.init
    sizes, steps = [1] * acc.rank, [0] * acc.rank
    for a in range(acc.lanes):
        if buf.lsize[a] > 1:
            sizes[a], steps[a] = buf.lsize[a], init.strides[a]
    bases, terms = box
    for axis, d, step in terms:
        sizes[axis] = fr.size[axis]
        steps[axis] += step * init.strides[acc.lanes + d]
    start = init[(slice(0, 1),) * acc.lanes + tuple(slice(b, b + 1) for b in bases)]
    return start, sizes, steps


def _root_of(view: Value) -> tuple[Any, int]:
    """The contiguous array that ``view`` is made of, and the offset in bytes."""
    base = view.base
    while isinstance(base, np.ndarray) and base.base is not None and isinstance(base.base, np.ndarray):
        if base.flags.c_contiguous or base.flags.f_contiguous:
            break
        base = base.base
    if not isinstance(base, np.ndarray) or not (base.flags.c_contiguous or base.flags.f_contiguous) or base.dtype != view.dtype:
        return None, 0
    return base, view.__array_interface__["data"][0] - base.__array_interface__["data"][0]


__all__ = ["Access", "Box", "expand", "pick", "value_of"]

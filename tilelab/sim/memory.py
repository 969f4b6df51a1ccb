"""Buffers while a program runs: storage in carrier dtype, what of it is initialised, and who touched it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ir import SourceLoc
from tilelab.sim import dtypes
from tilelab.sim.lanes import Value


def poison(dtype: str) -> Any:
    """The value that uninitialised memory reads as: NaN, or a large and odd integer."""
    d = dtypes.info(dtype)
    if d.kind == "f":
        return d.carrier.type(np.nan)
    if d.kind == "b":
        return np.bool_(True)
    return d.carrier.type((0x5A5A5A5B5A5A5A5B >> (64 - min(d.carrier.itemsize * 8, 64))) & ((1 << (d.bits - 1)) - 1))


class Buf:
    """One buffer: ``lanes`` leading lane axes (size 1 while the contents do not depend on them), then its shape.

    ``root`` is what numpy views are made of, with ``offset`` and ``strides`` in bytes. While ``own`` is false the
    storage is shared with something else and is copied before it is written in place.
    ``init`` is True (all), None (nothing) or a bool array shaped like the whole.
    """

    __slots__ = (
        "atomics", "base", "bits", "dtype", "fill", "flying", "init", "is_global", "lanes", "loc", "lsize", "name",
        "np", "offset", "own", "partition", "pinned", "raw", "reach", "root",
        "scope", "shadow", "shape", "strides", "track", "written",
    )  # fmt: skip

    def __init__(self, name: str, dtype: str, scope: str, shape: tuple[int, ...], lanes: int, loc: SourceLoc | None) -> None:
        self.name, self.dtype, self.scope, self.shape, self.lanes, self.loc = name, dtype, scope, shape, lanes, loc
        self.np = dtypes.carrier(dtype)
        self.bits = dtypes.info(dtype).bits
        self.is_global = scope == "global"
        self.partition: Any = None  # how the blocks divide a global buffer among them
        self.shadow: Any = None  # who touched each element, where the partition does not tell
        self.reach: Any = None  # how far writes went, where that is asked
        self.written = False
        self.atomics = False
        self.track = True
        self.flying = 0  # asynchronous copies into it that have not landed
        self.pinned = False  # other buffers look at the storage: it stays where it is, with all its lanes
        self.base: Any = None  # the buffer of another dtype whose bits this one shows
        self.clear()

    def clear(self) -> None:
        """Make everything uninitialised."""
        self.root: Any = None
        self.offset = 0
        self.strides: tuple[int, ...] = ()
        self.lsize = (1,) * self.lanes
        self.own = False
        self.fill: Any = None
        self.init: Any = None
        self.raw = False  # elements that are not initialised hold anything, not poison yet

    # ------------------------------------------------------------------------------------------------ storage
    def full(self) -> Value:
        """The whole as one array: lane axes, then shape."""
        if self.root is None:
            self.fill_with(poison(self.dtype), initialised=False)
        return np.ndarray((*self.lsize, *self.shape), self.np, self.root, self.offset, self.strides)

    def adopt(self, array: Value, *, own: bool) -> None:
        """Make ``array`` (lane axes, then shape; any strides) the storage."""
        root = array if array.flags.forc else array.transpose(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
        if not root.flags.forc:  # not a permutation of contiguous storage
            root = array = array.copy()
            own = True
        self.root, self.offset, self.strides = root, 0, array.strides
        self.lsize = array.shape[: self.lanes]
        self.own = own and array.flags.writeable
        self.fill = None

    def share(self, root: Value, offset: int, strides: tuple[int, ...], lsize: tuple[int, ...]) -> None:
        """Take over a view of other storage; it is copied before it is written."""
        self.root, self.offset, self.strides, self.lsize, self.own, self.fill = root, offset, strides, lsize, False, None

    def reserve(self) -> None:
        """Storage of our own that nobody has written. Poison is put there only when somebody reads it."""
        self.root = np.empty((*self.lsize, *self.shape), self.np)
        self.offset, self.strides, self.own, self.fill, self.init = 0, self.root.strides, True, None, None
        self.raw = True

    def poison_rest(self) -> None:
        """Poison what nobody has written yet."""
        if not self.raw:
            return
        self.raw = False
        if self.init is True or (self.init is not None and self.init.all()):
            return
        full = self.full()
        if self.init is None:
            full[...] = poison(self.dtype)
        else:
            np.copyto(full, poison(self.dtype), where=~self.init)

    def fill_with(self, value: Any, *, initialised: bool = True) -> None:
        """Fill with one value, at no cost until something else is written."""
        root = np.empty(1, self.np)
        root[0] = value
        self.share(root, 0, (0,) * (self.lanes + len(self.shape)), (1,) * self.lanes)
        if initialised:
            self.fill, self.init = root[0], True

    def writable(self, need: tuple[int, ...] | None) -> None:
        """Make the storage ours, with at least the lane sizes ``need``."""
        self.fill = None
        grow = need is not None and need != self.lsize and any(n > s for n, s in zip(need, self.lsize, strict=True))
        if self.own and not grow:
            return
        old = self.full()
        lsize = tuple(max(n, s) for n, s in zip(need, self.lsize, strict=True)) if need is not None else self.lsize
        new = np.empty((*lsize, *self.shape), self.np)
        new[...] = old
        self.root, self.offset, self.strides, self.lsize, self.own = new, 0, new.strides, lsize, True
        self._grow_init()

    def _grow_init(self) -> None:
        if self.init is not None and self.init is not True and self.init.shape[: self.lanes] != self.lsize:
            init = np.empty((*self.lsize, *self.shape), np.bool_)
            init[...] = self.init
            self.init = init

    def init_array(self) -> Value:
        """The initialised bits as an array that may be written (lane sizes as the storage)."""
        if self.init is None:
            self.init = np.zeros((*self.lsize, *self.shape), np.bool_)  # costs nothing where nobody writes
        elif self.init is True:
            self.init = np.ones((*self.lsize, *self.shape), np.bool_)
        self._grow_init()
        return self.init

    def pin(self, lsize: tuple[int, ...]) -> None:
        """Fix the storage in place, so that views of it stay true."""
        self.full()
        self.poison_rest()
        init = self.init
        self.writable(lsize)
        if self.init is not True:
            self.init = np.zeros((*self.lsize, *self.shape), np.bool_) if init is None else self.init
        self.pinned = True

    # ---------------------------------------------------------------------------------------- views of other bits
    def pull(self) -> None:
        """Bring in what the base holds now, as our dtype."""
        base = self.base
        flat = np.ascontiguousarray(base.full()).reshape(*self.lsize, -1)
        self.root[...] = dtypes.reinterpret(flat, base.dtype, self.dtype).reshape(self.root.shape)
        if base.init is True:
            self.init = True
            return
        bits = np.repeat(base.init.reshape(*self.lsize, -1), dtypes.bits(base.dtype), axis=-1)
        self.init = bits.reshape(*self.lsize, -1, dtypes.bits(self.dtype)).all(axis=-1).reshape(self.root.shape)

    def push(self) -> None:
        """Give the base what we hold now."""
        base = self.base
        flat = self.root.reshape(*self.lsize, -1)
        base.full()[...] = dtypes.reinterpret(flat, self.dtype, base.dtype).reshape(*base.lsize, *base.shape)
        base.written = True
        if self.init is True:
            if base.init is not True:
                base.init[...] = True
            return
        bits = np.repeat(self.init.reshape(*self.lsize, -1), dtypes.bits(self.dtype), axis=-1)
        if base.init is not True:
            base.init[...] = bits.reshape(*self.lsize, -1, dtypes.bits(base.dtype)).all(axis=-1).reshape(base.init.shape)

    def nbytes(self) -> int:
        """Bytes of one block's copy, in the carrier."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.np.itemsize


def view_of(base: Buf, buffer: ir.Buffer, shape: tuple[int, ...], strides: tuple[int, ...] | None, offset: int) -> Buf:
    """Another shape (and dtype) of the pinned storage of ``base``; ``strides`` and ``offset`` in elements."""
    out = Buf(buffer.name, buffer.dtype, base.scope, shape, base.lanes, buffer.loc)
    out.lsize, out.pinned, out.own = base.lsize, True, True
    if dtypes.parse(base.dtype)[0] != dtypes.parse(buffer.dtype)[0]:
        out.root = np.empty((*base.lsize, *shape), out.np)
        out.strides = out.root.strides
        out.base = base
        out.pull()
        return out
    step = base.np.itemsize
    out.root, out.offset = base.root, base.offset + offset * step
    if strides is None:
        strides = tuple(int(np.prod(shape[d + 1 :], dtype=np.int64)) for d in range(len(shape)))
    out.strides = (*base.strides[: base.lanes], *(s * step for s in strides))
    out.init = True if base.init is True else _bits_of(base, out, step)
    out.partition = base.partition
    return out


def _bits_of(base: Buf, out: Buf, step: int) -> Any:
    """The initialised bits of a view, sharing memory with those of its base."""
    init = base.init
    return np.ndarray((*out.lsize, *out.shape), np.bool_, init, out.offset // step, tuple(s // step for s in out.strides))

"""Values kept compactly while a block is recorded: constants, whole arrays once each, and what changed since an earlier one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from tilelab.sim import dtypes

#: Changes built on changes, at most: beyond this an array is kept whole again.
DEPTH = 24
_NATIVE = frozenset(
    {"bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"}
)  # shown as numpy has them; narrower floats are shown in float32, in which they are exact


class Snapshot:
    """The value of one array at one time. :meth:`get` gives it: a numpy array, masked where nobody has written."""

    __slots__ = ("_bad", "_empty", "_kind", "_parts", "depth", "dtype", "shape")

    def __init__(self, kind: str, dtype: str, shape: tuple[int, ...], parts: tuple[Any, ...], empty: Any, depth: int = 0) -> None:
        self._kind, self.dtype, self.shape, self._parts, self._empty, self.depth = kind, dtype, shape, parts, empty, depth
        self._bad: frozenset[str] | None = None

    def raw(self) -> Any:
        """The stored elements; not to be changed."""
        if self._kind == "whole":
            return self._parts[0]
        if self._kind == "shared":
            return dtypes.store(np.ascontiguousarray(self._parts[0]), self.dtype).reshape(self.shape)
        if self._kind == "constant":
            return np.broadcast_to(self._parts[0], self.shape)
        base, where, values = self._parts
        out = np.array(base.raw())
        if self._kind == "box":
            out[where] = values
        else:
            out.reshape(-1)[where] = values
        return out

    def empty(self) -> Any:
        """Which elements are not written yet (bool array), or None."""
        if self._kind == "box":
            base, where, _ = self._parts
            old = base.empty()
            if old is None and self._empty is None:
                return None
            out = np.zeros(self.shape, np.bool_) if old is None else np.array(old)
            out[where] = False if self._empty is None else self._empty
            return out if out.any() else None
        if self._empty is True:
            return np.ones(self.shape, np.bool_)
        if self._empty is None:
            return None
        size = int(np.prod(self.shape, dtype=np.int64))
        return np.unpackbits(self._empty, count=size).reshape(self.shape).astype(np.bool_)

    def get(self) -> Any:
        """The value as numpy has it."""
        raw, empty = self.raw(), self.empty()
        base = dtypes.parse(self.dtype)[0]
        value = raw if base in _NATIVE else dtypes.load(np.ascontiguousarray(raw), base).reshape(raw.shape)
        return value if empty is None else np.ma.MaskedArray(value, mask=empty)

    def box(self) -> tuple[slice, ...] | None:
        """The box that the write replaced, where only that is known."""
        return self._parts[1] if self._kind == "box" else None

    def bad(self) -> frozenset[str]:
        """Which of ``"NaN"`` and ``"Inf"`` there are among the elements that are written."""
        if self._bad is None:
            value = self._parts[0] if self._kind in ("constant", "shared") and self._empty is None else self.get()
            self._bad = frozenset(name for name, test in (("NaN", np.isnan), ("Inf", np.isinf)) if _any(test, value))
        return self._bad


def _any(test: Any, value: Any) -> bool:
    if np.asarray(value).dtype.kind != "f":
        return False
    return bool(np.any(test(np.ma.getdata(value)) & ~np.ma.getmaskarray(value)))


class Keeper:
    """Makes snapshots, each different content once; ``nbytes`` is what they hold."""

    def __init__(self) -> None:
        self.nbytes = 0
        self._known: dict[bytes, Snapshot] = {}

    def constant(self, shape: tuple[int, ...], dtype: str, value: Any = None) -> Snapshot:
        """All elements are ``value``, or nothing was written yet."""
        one = dtypes.store(np.zeros(1, dtypes.carrier(dtype)) if value is None else np.asarray([value], dtypes.carrier(dtype)), dtype)
        key = b"constant" + one.tobytes() + repr((shape, dtype, value is None)).encode()
        return self._once(key, lambda: Snapshot("constant", dtype, tuple(shape), (one[0],), True if value is None else None), 64)

    def shared(self, array: Any, dtype: str) -> Snapshot:
        """An array (in its carrier) that nobody will write: it is looked at when asked for."""
        self.nbytes += 64
        return Snapshot("shared", dtype, array.shape, (array,), None)

    def new(self, array: Any, dtype: str, empty: Any, old: Snapshot | None) -> Snapshot:
        """All of ``array`` (in its carrier): what it shares with ``old``, or with anything kept before, is not kept again."""
        base = dtypes.parse(dtype)[0]
        raw = np.ascontiguousarray(dtypes.store(np.ascontiguousarray(array), base)).reshape(array.shape)
        bits: Any = None if empty is None else True if empty.all() else np.packbits(empty)
        key = blake2b(raw.tobytes(), digest_size=16).digest() + repr((raw.shape, dtype)).encode() + (
            b"" if bits is None else b"all" if bits is True else blake2b(bits.tobytes(), digest_size=16).digest()
        )  # fmt: skip
        if key in self._known:
            return self._known[key]
        extra = 0 if bits is None or bits is True else bits.nbytes
        if old is not None and old.shape == raw.shape and old.dtype == dtype and old.depth < DEPTH and raw.size > 16:
            unsigned = f"u{raw.itemsize}"
            before = np.ascontiguousarray(old.raw())
            where = np.flatnonzero(before.view(unsigned) != raw.view(unsigned)).astype(np.uint32)
            if where.size * (4 + raw.itemsize) * 2 < raw.nbytes:
                some = Snapshot("some", dtype, raw.shape, (old, where, raw.reshape(-1)[where]), bits, old.depth + 1)
                return self._once(key, lambda: some, where.size * (4 + raw.itemsize) + extra)
        kept = raw if not np.shares_memory(raw, array) else raw.copy()
        return self._once(key, lambda: Snapshot("whole", dtype, raw.shape, (kept,), bits), kept.nbytes + extra)

    def patch(self, old: Snapshot, box: tuple[slice, ...], part: Any, dtype: str, empty: Any) -> Snapshot:
        """``old`` with the box replaced by ``part`` (in its carrier)."""
        base = dtypes.parse(dtype)[0]
        values = np.array(dtypes.store(np.ascontiguousarray(part), base)).reshape(part.shape)
        self.nbytes += values.nbytes + (0 if empty is None else empty.nbytes) + 64
        if old.depth >= DEPTH:  # a chain of boxes is folded into one array, which costs its bytes once
            raw, none = old.raw(), old.empty()
            self.nbytes += raw.nbytes
            old = Snapshot("whole", dtype, old.shape, (np.array(raw),), None if none is None else np.packbits(none))
        return Snapshot("box", dtype, old.shape, (old, box, values), empty, old.depth + 1)

    def _once(self, key: bytes, make: Any, nbytes: int) -> Snapshot:
        found = self._known.get(key)
        if found is None:
            self.nbytes += nbytes
            found = self._known[key] = make()
        return found


class After(Mapping[str, Any]):
    """What a step wrote: name → array, made when asked for. :meth:`ref` is the same object for the same content."""

    __slots__ = ("_refs",)

    def __init__(self, refs: Mapping[str, Snapshot]) -> None:
        self._refs = dict(refs)

    def __getitem__(self, name: str) -> Any:
        """The value of ``name`` after the step."""
        return self._refs[name].get()

    def __iter__(self) -> Iterator[str]:
        """The names that were written."""
        return iter(self._refs)

    def __len__(self) -> int:
        """How many names were written."""
        return len(self._refs)

    def ref(self, name: str) -> Snapshot:
        """The snapshot itself."""
        return self._refs[name]

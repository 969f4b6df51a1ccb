"""The values of a trace in few bytes: each content once, what changed since the value before, and no more than a bound.

Where not all fits, values are left out evenly: half of them, then half of those, so that every stretch of time keeps some; the steps
that matter (the first and last writes, findings, a first NaN) keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from tilelab.views.schema_trace import TraceBuffer, TraceValue

#: Larger tensors in global memory are shown as the part that the block writes, or else reads.
WINDOWED = 1 << 14
#: No value is shown larger than this many elements: the rest is cut off.
MOST = 1 << 16
#: Elements of a page of a large tensor.
PAGE = 1 << 14
_LOOKS = 200  # tiles looked for in a tensor that is only read
_TRIES = 64  # places tried for each
_DEPTH = 16  # changes built on changes
_CHEAP = 512  # bytes of a value that is kept before larger ones


@dataclass(slots=True, kw_only=True)
class _Frame:
    """One write of one name."""

    name: str
    step: int
    first: bool = False
    key: bytes = b""
    cost: int = 0
    kept: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The buffers and values of a trace view; ``left_out`` is how many values did not fit."""

    buffers: list[TraceBuffer]
    values: list[TraceValue]
    left_out: int
    bytes: int


def pack(
    events: Sequence[Any],
    about: Mapping[str, Any],
    *,
    limit: int,
    keep: Iterable[int] = (),
    origins: Mapping[str, Sequence[int]] | None = None,
) -> Packed:
    """Pack what ``events`` wrote.

    Args:
        events: The steps of one block.
        about: Name → :class:`tilelab.trace.BufferInfo`.
        limit: Bound on the encoded values, in bytes.
        keep: Steps whose values are to be kept before others.
        origins: Name → first element of the part of a large tensor that is shown, where another is wanted.
    """
    writes: dict[str, list[int]] = {}
    for step, event in enumerate(events):
        for name in event.after:
            writes.setdefault(name, []).append(step)
    windows = {name: _window(events, steps, name, about.get(name), (origins or {}).get(name)) for name, steps in writes.items()}
    shown = list(windows)
    frames = _frames(events, writes, windows)
    _choose(frames, limit, set(keep))
    pool = _Pool(events, windows)
    buffers = [_buffer(name, [f for f in frames if f.name == name], about.get(name), windows[name], pool) for name in shown]
    return Packed(buffers=buffers, values=pool.values, left_out=sum(not f.kept for f in frames), bytes=pool.bytes)


# -------------------------------------------------------------------------------------------------- windows
def _window(events: Sequence[Any], steps: list[int], name: str, info: Any, origin: Sequence[int] | None) -> tuple[slice, ...]:
    """The part of a name's arrays that is shown; an empty tuple for all of it."""
    shape = tuple(info.shape) if info is not None else np.shape(events[steps[0]].after[name])
    size = int(np.prod(shape, dtype=np.int64))
    if size <= WINDOWED or (info is not None and info.scope != "global" and size <= MOST):
        return ()
    if info is None or info.scope != "global":
        return _cut([(0, n) for n in shape])
    if origin is not None:
        return moved(shape, origin)
    boxes = [b for s in steps if (b := _box(events[s].after, name)) is not None]
    if not boxes:
        boxes = [b for b in (_changed(events, steps, name), _read(events, steps, name)) if b is not None][:1]
    if not boxes:
        return moved(shape, [0] * len(shape))
    return _cut([(min(b[d][0] for b in boxes), max(b[d][1] for b in boxes)) for d in range(len(shape))])


def _box(after: Any, name: str) -> list[tuple[int, int]] | None:
    """The box that a recorded write replaced, where the recording knows it."""
    box = after.ref(name).box() if hasattr(after, "ref") else None
    return None if box is None else [(s.start, s.stop) for s in box]


def _changed(events: Sequence[Any], steps: list[int], name: str) -> list[tuple[int, int]] | None:
    old, low, high = None, None, None
    for step in steps:
        new = events[step].after[name]
        if old is not None and np.shape(old) == np.shape(new):
            where = np.argwhere(differs(old, new))
            if len(where):
                low = where.min(0) if low is None else np.minimum(low, where.min(0))
                high = where.max(0) + 1 if high is None else np.maximum(high, where.max(0) + 1)
        elif old is None and np.ma.getmaskarray(new).any():
            where = np.argwhere(~np.ma.getmaskarray(new))
            if len(where):
                low, high = where.min(0), where.max(0) + 1
        old = new
    return None if low is None or high is None else [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def moved(shape: Sequence[int], origin: Sequence[int]) -> tuple[slice, ...]:
    """Return the part of a tensor of ``shape`` that begins at ``origin``, or as near to it as leaves a part of the usual size."""
    sizes = [s.stop - s.start for s in _cut([(0, int(n)) for n in shape], PAGE)]
    starts = [max(0, min(int(o), int(n) - size)) for o, n, size in zip(origin, shape, sizes, strict=False)]
    return tuple(slice(o, o + n) for o, n in zip(starts, sizes, strict=True))


def _read(events: Sequence[Any], steps: list[int], name: str) -> list[tuple[int, int]] | None:
    """The box of a tensor that the block reads: where the tiles that were made from it are found in it again."""
    whole = np.ma.getdata(events[steps[0]].after[name])
    low: Any = None
    high: Any = None
    looked = 0
    for event in events:
        if name not in event.reads or looked >= _LOOKS:
            continue
        for other in event.after:
            box = _box(event.after, other)
            tile = np.squeeze(
                np.ma.getdata(event.after[other])[tuple(slice(a, b) for a, b in box)] if box else np.ma.getdata(event.after[other])
            )
            if tile.size < 2 or tile.ndim > whole.ndim or tile.dtype != whole.dtype:
                continue
            looked += 1
            at = _found(whole, tile.reshape((1,) * (whole.ndim - tile.ndim) + tile.shape))
            if at is not None:
                end = at + np.array((1,) * (whole.ndim - tile.ndim) + tile.shape)
                low, high = (at, end) if low is None else (np.minimum(low, at), np.maximum(high, end))
    return None if low is None else [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def _found(whole: Any, tile: Any) -> Any:
    """Where ``tile`` lies in ``whole``, at a multiple of its own shape; None where it does not."""
    if any(t > n for t, n in zip(tile.shape, whole.shape, strict=True)):
        return None
    corners = whole[tuple(slice(None, n - t + 1, t) for t, n in zip(tile.shape, whole.shape, strict=True))]
    for place in np.argwhere(corners == tile.flat[0])[:_TRIES]:
        at = place * tile.shape
        if np.array_equal(whole[tuple(slice(a, a + t) for a, t in zip(at, tile.shape, strict=True))], tile):
            return at
    return None


def _cut(spans: list[tuple[int, int]], most: int = 0) -> tuple[slice, ...]:
    """Shorten the longest axes until no more than ``most`` elements (default: ``MOST``) are left."""
    sizes = [b - a for a, b in spans]
    while np.prod(sizes, dtype=np.int64) > (most or MOST):
        longest = int(np.argmax(sizes))
        sizes[longest] = max(1, sizes[longest] // 2)
    return tuple(slice(a, a + n) for (a, _), n in zip(spans, sizes, strict=True))


def _value(events: Sequence[Any], windows: Mapping[str, Any], name: str, step: int) -> Any:
    return part(events[step].after[name], windows[name])


def part(value: Any, window: tuple[slice, ...]) -> Any:
    """Return the part of ``value`` that is shown; its leading axes (threads) are not cut."""
    value = np.asanyarray(value)
    return value[(..., *window)] if window and value.ndim >= len(window) else value


def differs(old: Any, new: Any) -> Any:
    """Which elements differ: in value, or in whether they are written; NaN is equal to NaN."""
    a, b = np.ma.getdata(old), np.ma.getdata(new)
    with np.errstate(invalid="ignore"):
        unequal = a != b
        if a.dtype.kind in "fc":
            unequal &= ~(np.isnan(a) & np.isnan(b))
    empty = np.ma.getmaskarray(old), np.ma.getmaskarray(new)
    return (unequal & ~(empty[0] & empty[1])) | (empty[0] != empty[1])


# ----------------------------------------------------------------------------------------------- what fits
def _frames(events: Sequence[Any], writes: Mapping[str, list[int]], windows: Mapping[str, Any]) -> list[_Frame]:
    """All writes, each with the bytes that its value costs if the one before it is there."""
    out, seen = [], set()
    for name, steps in writes.items():
        old: Any = None
        for k, step in enumerate(steps):
            value = _value(events, windows, name, step)
            key = _key(value)
            frame = _Frame(name=name, step=step, first=k == 0 or k == len(steps) - 1, key=key)
            if key not in seen:
                seen.add(key)
                frame.cost = min(_whole_cost(value), _some_cost(old, value))
            out.append(frame)
            old = value
    return out


def _key(value: Any) -> bytes:
    data, empty = np.ascontiguousarray(np.ma.getdata(value)), np.ma.getmask(value)
    digest = blake2b(data.tobytes(), digest_size=16)
    digest.update(repr((data.shape, data.dtype.name)).encode() + (b"" if empty is np.ma.nomask else np.packbits(empty).tobytes()))
    return digest.digest()


def _whole_cost(value: Any) -> int:
    data = np.ma.getdata(value)
    same = data.size < 2 or bool((data == data.flat[0]).all())
    return 120 + (0 if same else int(data.nbytes) * 4 // 3)


def _some_cost(old: Any, value: Any) -> int:
    if old is None or np.shape(old) != np.shape(value) or old.dtype != value.dtype:
        return 1 << 62
    each: int = 4 + np.asanyarray(value).itemsize
    return 160 + int(np.count_nonzero(differs(old, value))) * each * 4 // 3


def _choose(frames: list[_Frame], limit: int, keep: set[int]) -> None:
    """Mark the frames that fit: those that matter, cheap ones in half of the room, the rest; each at ever finer halvings of time."""
    by_name: dict[str, list[_Frame]] = {}
    for frame in frames:
        by_name.setdefault(frame.name, []).append(frame)
    ordered = []
    for line in by_name.values():
        for k, frame in enumerate(line):
            rank = 0 if frame.first else 1 if frame.step in keep else 2 if frame.cost <= _CHEAP else 3
            ordered.append((rank, 40 - (k & -k).bit_length(), frame.step, frame))
    paid: set[bytes] = set()
    reserve = limit // 2
    for rank, _, _, frame in sorted(ordered, key=lambda item: item[:3]):
        cost = 24 + (0 if frame.key in paid else frame.cost)
        if rank and limit - (reserve if rank == 2 else 0) < cost:
            continue
        limit -= cost
        frame.kept = True
        paid.add(frame.key)


# ---------------------------------------------------------------------------------------------------- pool
class _Pool:
    """The values, each content once."""

    def __init__(self, events: Sequence[Any], windows: Mapping[str, Any]) -> None:
        self.values: list[TraceValue] = []
        self.bytes = 0
        self._events, self._windows = events, windows
        self._place: dict[bytes, tuple[int, int]] = {}  # content → place and depth

    def add(self, frame: _Frame, value: Any, before: tuple[bytes, Any] | None) -> int:
        """Return the place of ``value``; ``before`` is the value of the same name that was kept before it."""
        if frame.key in self._place:
            return self._place[frame.key][0]
        base, depth = self._place[before[0]] if before is not None else (-1, 0)
        deep = 0
        if before is not None and depth < _DEPTH and _some_cost(before[1], value) < _whole_cost(value):
            where = np.flatnonzero(differs(before[1], value))
            some = np.ma.getdata(value).reshape(-1)[where]
            record: TraceValue = {"base": base, "where": where, "array": some, "empty": _bits(value)}
            deep = depth + 1
        else:
            record = value_record(value)
        self._place[frame.key] = len(self.values), deep
        self.values.append(record)
        self.bytes += frame.cost
        return len(self.values) - 1


def _bits(value: Any) -> Any:
    """Which elements nobody has written; None where all are written."""
    empty = np.ma.getmask(value)
    return None if empty is np.ma.nomask or not empty.any() else empty.astype(np.uint8)


def value_record(value: Any) -> TraceValue:
    """Return one value by itself."""
    value = np.asanyarray(value)
    bits, data = _bits(value), np.ma.getdata(value)
    if bits is not None:
        data = np.where(np.ma.getmaskarray(value), np.zeros((), data.dtype), data)
    return {"base": -1, "where": None, "array": np.ascontiguousarray(data).reshape(data.shape), "empty": bits}


def _buffer(name: str, frames: list[_Frame], info: Any, window: Any, pool: _Pool) -> TraceBuffer:
    places, low, high = [], np.inf, -np.inf
    before: tuple[bytes, Any] | None = None
    for frame in frames:
        if not frame.kept:
            places.append(-1)
            continue
        value = _value(pool._events, pool._windows, name, frame.step)
        places.append(pool.add(frame, value, before))
        before = frame.key, value
        finite = np.ma.compressed(value) if np.ma.isMaskedArray(value) else value
        if finite.dtype.kind in "fiub" and finite.size:
            finite = finite.astype(np.float64)
            finite = finite[np.isfinite(finite)]
            if finite.size:
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    shape = list(info.shape) if info is not None else list(np.shape(before[1])) if before is not None else []
    dtype = info.dtype if info is not None else before[1].dtype.name if before is not None else ""
    low, high = (low, high) if low <= high else (0.0, 0.0)
    return {
        "name": name, "dtype": dtype, "scope": info.scope if info is not None else "", "shape": [int(n) for n in shape],
        "origin": [s.start for s in window] if window else [0] * len(shape), "extent": [s.stop - s.start for s in window],
        "low": low, "high": high,
        "steps": np.array([f.step for f in frames]), "values": np.array(places),
    }  # fmt: skip

"""Arrays in a view's JSON, made small: most layouts are a sum or an XOR of one short table for each axis.

``{"shape": [r, c], "form": "sum", "base": b, "parts": [[…r], […c]]}`` means ``a[i, j] = b + parts[0][i] + parts[1][j]``;
``"xor"`` likewise with ``^``; ``"dense"`` holds ``"type"`` (:data:`TYPES`; little-endian) and ``"base64"``; ``"fill"`` likewise, of one
element that all are equal to. The form is chosen by trying: what is written decodes to exactly what was given (64-bit integers beyond
2⁵³ apart, which become the nearest float64).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: type → how numpy stores it. ``bf16`` is the upper half of a float32 whose lower half is zero.
TYPES: Mapping[str, str] = {
    "u8": "<u1", "u16": "<u2", "i8": "<i1", "i16": "<i2", "i32": "<i4", "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8",
}  # fmt: skip
_SMALL = {"int8": "i8", "int16": "i16"}
_DECODED = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16}
_FORMS: Mapping[str, Callable[[Any, Any], Any]] = {"sum": np.add, "xor": np.bitwise_xor}
_LONGEST = 4096  # numbers in the tables of a sum or XOR; beyond this base64 is smaller


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """Return ``array`` as JSON values, exactly, in few bytes."""
    a = np.asarray(array)
    if a.dtype.name in _SMALL:
        return _dense(a, _SMALL[a.dtype.name])
    if a.dtype.kind in "iub" and not _fits(a):
        return _dense(a.astype(np.float64), "f64")
    if a.dtype.kind in "iub":
        whole = a.astype(np.int64)
        if a.size > 1 and sum(a.shape) <= min(_LONGEST, max(64, a.size)):
            for form, op in _FORMS.items():
                parts = _parts(whole, form, op)
                if parts is not None:
                    return {"shape": list(a.shape), "form": form, "base": int(whole.flat[0]), "parts": parts}
        return _dense(whole, _narrowest(whole))
    return _dense(*_narrow_float(a))


def _fits(a: NDArray[Any]) -> bool:
    return not a.size or (int(a.min()) >= -(1 << 31) and int(a.max()) < 1 << 31)


def _narrow_float(a: NDArray[Any]) -> tuple[NDArray[Any], str]:
    """The shortest type that holds the numbers exactly."""
    if a.dtype == np.float16:
        return a, "f16"
    narrow = a.astype(np.float32)
    if a.dtype == np.float64 and not np.array_equal(narrow.astype(np.float64), a, equal_nan=True):
        return a, "f64"
    bits = np.ascontiguousarray(narrow).reshape(-1).view(np.uint32)
    if a.size and not (bits & 0xFFFF).any():
        return (bits >> 16).astype(np.uint16).reshape(a.shape), "bf16"
    return narrow, "f32"


def decode(record: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array that :func:`encode` was given (integers as int64, or as they are where of 8 or 16 bits; floats as they are)."""
    shape = tuple(record["shape"])
    if record["form"] in ("dense", "fill"):
        kind = record["type"]
        raw = np.frombuffer(base64.b64decode(record["base64"]), dtype=TYPES[kind])
        raw = np.broadcast_to(raw, shape) if record["form"] == "fill" else raw.reshape(shape)
        if kind == "bf16":
            return (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.astype(_DECODED.get(kind, np.int64))
    out = np.full(shape, record["base"], dtype=np.int64)
    for axis, part in enumerate(record["parts"]):
        out = _FORMS[record["form"]](out, _along(np.asarray(part, dtype=np.int64), axis, len(shape)))
    return out


def _parts(a: NDArray[np.int64], form: str, op: Callable[[Any, Any], Any]) -> list[list[int]] | None:
    base = int(a.flat[0])
    if form == "xor" and a.min() < 0:
        return None
    total: Any = np.full((1,) * a.ndim, base, dtype=np.int64)
    parts = []
    for axis in range(a.ndim):
        line = a[tuple(slice(None) if k == axis else 0 for k in range(a.ndim))]
        part = line - base if form == "sum" else line ^ base
        parts.append([int(v) for v in part])
        total = op(total, _along(part, axis, a.ndim))
    return parts if np.array_equal(total, a) else None


def _along(line: NDArray[np.int64], axis: int, rank: int) -> NDArray[np.int64]:
    return line.reshape([-1 if k == axis else 1 for k in range(rank)])


def _narrowest(a: NDArray[np.int64]) -> str:
    low, high = (int(a.min()), int(a.max())) if a.size else (0, 0)
    return "i32" if low < 0 or high > 0xFFFF else "u16" if high > 0xFF else "u8"


def _dense(a: NDArray[Any], kind: str) -> dict[str, Any]:
    raw, form = np.ascontiguousarray(a, dtype=TYPES[kind]), "dense"
    if a.size > 1 and kind not in ("u8", "u16", "i32") and raw.tobytes() == raw.reshape(-1)[:1].tobytes() * a.size:
        raw, form = raw.reshape(-1)[:1], "fill"
    return {"shape": list(a.shape), "form": form, "type": kind, "base64": base64.b64encode(raw.tobytes()).decode("ascii")}

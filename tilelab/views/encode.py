"""Arrays in a view's JSON, made small: most layouts are a sum or an XOR of one short table for each axis.

``{"shape": [r, c], "form": "sum", "base": b, "parts": [[…r], […c]]}`` means ``a[i, j] = b + parts[0][i] + parts[1][j]``;
``"xor"`` likewise with ``^``; ``"dense"`` holds ``"type"`` (u8, u16, i32, f32; little-endian) and ``"base64"``. The form is chosen by
trying: what is written decodes to exactly what was given.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES: Mapping[str, str] = {"u8": "<u1", "u16": "<u2", "i32": "<i4", "f32": "<f4"}
_FORMS: Mapping[str, Callable[[Any, Any], Any]] = {"sum": np.add, "xor": np.bitwise_xor}
_LONGEST = 4096  # numbers in the tables of a sum or XOR; beyond this base64 is smaller


def encode(array: NDArray[Any]) -> dict[str, Any]:
    """Return ``array`` as JSON values: integers exactly, other numbers as float32."""
    a = np.asarray(array)
    if a.dtype.kind in "iub":
        whole = a.astype(np.int64)
        if a.size > 1 and sum(a.shape) <= min(_LONGEST, max(64, a.size)):
            for form, op in _FORMS.items():
                parts = _parts(whole, form, op)
                if parts is not None:
                    return {"shape": list(a.shape), "form": form, "base": int(whole.flat[0]), "parts": parts}
        return _dense(whole, _narrowest(whole))
    return _dense(a.astype(np.float32), "f32")


def decode(record: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array that :func:`encode` was given (int64 or float32)."""
    shape = tuple(record["shape"])
    if record["form"] == "dense":
        raw = np.frombuffer(base64.b64decode(record["base64"]), dtype=_TYPES[record["type"]])
        return raw.reshape(shape).astype(np.float32 if record["type"] == "f32" else np.int64)
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
    raw = np.ascontiguousarray(a, dtype=_TYPES[kind]).tobytes()
    return {"shape": list(a.shape), "form": "dense", "type": kind, "base64": base64.b64encode(raw).decode("ascii")}

"""Steps, values and prints as text: what the terminal and a plain notebook show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tilelab.errors import InputError
from tilelab.ir import SourceLoc
from tilelab.trace import PrintRecord


def listing(sources: Mapping[str, str], loc: SourceLoc | None, *, around: int = 4, stops: Sequence[int] = ()) -> str:
    """Return the source around ``loc``: ``→`` marks the line, ``●`` a breakpoint."""
    if loc is None or loc.file not in sources:
        return "  (this statement has no source line)"
    lines = sources[loc.file].splitlines()
    first, last = max(loc.line - around, 1), min(loc.line + around, len(lines))
    width = len(str(last))
    return "\n".join(
        f"{'→' if n == loc.line else ' '}{'●' if n in stops else ' '}{n:>{width}}  {lines[n - 1]}".rstrip() for n in range(first, last + 1)
    )


def array_text(name: str, value: Any, *, dtype: str = "", scope: str = "", rows: int = 8, columns: int = 8) -> str:
    """Return a heading (name, dtype, shape, scope, range, count of NaN and Inf) and the corner of the array."""
    array = np.asanyarray(value)
    head = f"{name}: {dtype or array.dtype.name}{list(array.shape)}{f' {scope}' if scope else ''}"
    if array.ndim == 0:
        return f"{name} = {_cell(array[()])} ({dtype or array.dtype.name})"
    head += "".join(f"  {key} {text}" for key, text in summary(array))
    table = array.reshape(-1, array.shape[-1])
    body = [" ".join(f"{_cell(v):>10}" for v in row[:columns]) + (" …" if row.size > columns else "") for row in table[:rows]]
    if rows and len(table) > rows:
        body.append(f"… {len(table) - rows} more rows")
    return "\n".join([head, *("  " + line for line in body)])


def summary(value: Any) -> list[tuple[str, str]]:
    """Return what can be said of an array in a line: its range and mean, and how many NaN, Inf and unwritten elements it has."""
    array = np.asanyarray(value)
    if not array.size or array.dtype.kind not in "fiub":
        return []
    empty = np.ma.getmaskarray(array)
    wide = np.ma.getdata(array).astype(np.float64)[~empty]
    finite = wide[np.isfinite(wide)]
    out = [("min", f"{finite.min():.6g}"), ("max", f"{finite.max():.6g}"), ("mean", f"{finite.mean():.6g}")] if finite.size else []
    counts = (("NaN", int(np.isnan(wide).sum())), ("Inf", int(np.isinf(wide).sum())), ("unwritten", int(empty.sum())))
    return out + [(key, str(n)) for key, n in counts if n]


def filter_prints(
    records: Iterable[PrintRecord],
    *,
    line: int | None = None,
    block: tuple[int, int, int] | None = None,
    thread: tuple[int, int, int] | None = None,
    name: str | None = None,
    loops: Mapping[str, int] | None = None,
) -> list[PrintRecord]:
    """Return the records of that line, block, thread, name (of the buffer, or the message) and iteration; None means any."""
    return [
        r
        for r in records
        if (line is None or (r.loc is not None and r.loc.line == line))
        and (block is None or r.block == block)
        and (thread is None or r.thread == thread)
        and (name is None or name in (r.name, r.message.strip()))
        and all(r.loops.get(k) == v for k, v in (loops or {}).items())
    ]


def read_filter(text: str) -> dict[str, Any]:
    """Read ``"16 name=acc thread=3,0,0 k=2"`` as arguments of :func:`filter_prints`; ``block=all`` stays as it is.

    Raises:
        InputError: A part is not such a filter.
    """
    asked: dict[str, Any] = {}
    for part in text.split():
        key, eq, value = part.partition("=")
        numbers = value.split(",")
        if not eq and part.isdigit():
            asked["line"] = int(part)
        elif key == "line" and value.isdigit():
            asked["line"] = int(value)
        elif key == "block" and value == "all":
            asked["block"] = value
        elif key in ("block", "thread") and len(numbers) <= 3 and all(n.isdigit() for n in numbers):
            asked[key] = (*map(int, numbers), 0, 0)[:3]
        elif key == "name" and value:
            asked["name"] = value
        elif key not in ("line", "block", "thread", "name") and key.isidentifier() and value.lstrip("-").isdigit():
            asked.setdefault("loops", {})[key] = int(value)
        else:
            raise InputError(
                f"{part!r} filters nothing", fix="give line=16, block=1,0,0, block=all, thread=3, name=acc, or a loop such as k=2"
            )
    return asked


def heat_text(name: str, value: Any, *, rows: int = 16, columns: int = 64) -> str:
    """Return a heat map in characters, from low (``·``) to high (``█``), ``!`` for NaN or Inf and a blank for what nobody wrote.

    Of an array larger than ``rows`` × ``columns`` a character is the mean of a box of elements (``!`` if any of them is bad).
    """
    array = np.ma.asanyarray(value)
    grid = np.ma.atleast_2d(array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array)
    data, empty = np.asarray(np.ma.getdata(grid), np.float64), np.ma.getmaskarray(grid)
    finite = data[np.isfinite(data) & ~empty]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    tall, wide = -(-data.shape[0] // rows), -(-data.shape[1] // columns)
    lines = []
    for y in range(0, data.shape[0], tall):
        cells = []
        for x in range(0, data.shape[1], wide):
            box, gone = data[y : y + tall, x : x + wide], empty[y : y + tall, x : x + wide]
            part = box[~gone]
            good = part[np.isfinite(part)]
            cells.append(" " if not part.size else "!" if good.size < part.size else _HEAT[_shade(float(good.mean()), low, high)])
        lines.append("  " + "".join(cells))
    each = f", a character is {tall}×{wide} elements" if tall * wide > 1 else ""
    return "\n".join([f"{name}: {list(np.shape(value))} from {low:.5g} ({_HEAT[0]}) to {high:.5g} ({_HEAT[-1]}){each}", *lines])


_HEAT = "·░▒▓█"


def _shade(value: float, low: float, high: float) -> int:
    return min(len(_HEAT) - 1, int((value - low) / (high - low) * len(_HEAT))) if high > low else 0


def prints_text(records: Sequence[PrintRecord], *, limit: int = 20) -> str:
    """Return the records as a table, at most ``limit`` rows, with what is left out said."""
    rows = [("line", "block", "thread", "loops", "what", "dtype", "value")]
    for r in records[:limit]:
        shown = short_value(r.values)
        rows.append(
            (
                str(r.loc.line) if r.loc else "?",
                ",".join(map(str, r.block)),
                ",".join(map(str, r.thread)) if r.thread else "tile",
                " ".join(f"{k}={v}" for k, v in r.loops.items()),
                r.message or r.name,
                r.dtype,
                shown,
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(7)]
    text = "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
    return text + (f"\n… {len(records) - limit} more" if len(records) > limit else "")


def short_value(value: Any) -> str:
    """Return a number, or the shape and the first elements of an array."""
    array = np.asanyarray(value)
    if array.size == 1:
        return _cell(array.reshape(-1)[0])
    return f"{list(array.shape)} {' '.join(_cell(v) for v in array.reshape(-1)[:4])}" + (" …" if array.size > 4 else "")


def _cell(value: Any) -> str:
    if value is np.ma.masked or (np.ma.isMaskedArray(value) and value.mask):
        return "·"
    value = value[()] if isinstance(value, np.ndarray) else value
    return f"{float(value):.5g}" if isinstance(value, float | np.floating) else str(value)

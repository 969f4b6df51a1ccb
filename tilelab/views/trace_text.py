"""Steps, values and prints as text: what the terminal and a plain notebook show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

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
) -> list[PrintRecord]:
    """Return the records of that line, block, thread and buffer; None means any."""
    return [
        r
        for r in records
        if (line is None or (r.loc is not None and r.loc.line == line))
        and (block is None or r.block == block)
        and (thread is None or r.thread == thread)
        and (name is None or r.name == name)
    ]


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

"""The still picture of a step: where it stands in the source and in time, and the values that it leaves."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.views import palette
from tilelab.views.palette import BAD, EMPTY
from tilelab.views.svg import Svg
from tilelab.views.trace_model import Model, Shown, element_text, loops_text, threads_text, value_text
from tilelab.views.trace_text import short_value, summary
from tilelab.views.words import word

_LEFT, _TOP, _WIDE = 24.0, 34.0, 980.0
_BOXES = 512  # more cells than this are drawn as an image
_CODE = 92  # characters of a source line
_SHOWN = 6  # rows of a list in the picture


def draw(m: Model, title: str, lang: str) -> str:
    """Return the SVG of the step shown, or of what was printed where no step is recorded."""
    out = Svg(title, _description(m, lang))
    out.heading(_LEFT, _TOP, title, word("steps", lang, count=m.count) if m.count else "", "head", "soft")
    y = _TOP + 20
    for note in m.data["notes"]:
        out.text(_LEFT, y, _short(note, 150), "soft tiny")
        y += 15
    if not m.count:
        _prints(out, m, y + 14, lang)
        return out.finish()
    out.text(_LEFT, y + 4, _short(_place(m, lang), 130), "mono")
    y = _timeline(out, m, y + 26, lang)
    low = _source(out, m, _LEFT, y + 24, lang)
    low = max(low, _values(out, m, _LEFT + 540, y + 24, lang))
    low = _lists(out, m, low + 30, lang)
    if m.data["prints"]:
        low = _prints(out, m, low + 6, lang)
    out.reach(_LEFT + _WIDE, low)
    return out.finish()


def breakpoint_text(b: Mapping[str, Any]) -> str:
    """``#1 line 12 if acc[0, 0] > 1e4``."""
    parts = [f"{PurePath(b['file']).name or 'line'}:{b['line']}"] if b["line"] else []
    parts += [f"if {b['condition']}"] if b["condition"] else []
    return f"#{b['number']} " + " ".join([*parts, *([b["event"]] if b["event"] else [])])


def ramp() -> tuple[str, ...]:
    """Return the colours of values, low to high."""
    return palette.ramp(64)


def grid(array: Any) -> Any:
    """Return an array of any rank as rows and columns: leading axes are cut at 0, a long vector is wrapped."""
    if array.ndim == 0:
        return array.reshape(1, 1)
    if array.ndim == 1:
        n = array.shape[0]
        return array.reshape(1, -1) if n <= 64 or n % 32 else array.reshape(-1, 32)
    return array[(0,) * (array.ndim - 2)]


def _description(m: Model, lang: str) -> str:
    return _place(m, lang) if m.count else word("prints_count", lang, count=len(m.data["prints"]))


def _place(m: Model, lang: str) -> str:
    parts = [word("step_of", lang, at=m.at, last=m.count - 1), m.place(m.at), loops_text(m.loops(m.at)), m.who(m.at, lang), m.text(m.at)]
    return " · ".join(p for p in parts if p)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ------------------------------------------------------------------------------------------------- timeline
def _timeline(out: Svg, m: Model, y: float, lang: str) -> float:
    """Draw the steps along one axis: a row for the writes of the name shown, marks for findings, prints and the first NaN."""
    steps = m.data["steps"]
    roles = list(dict.fromkeys(int(r) for r in steps["role"]))[:4]
    left, wide = _LEFT + 110, _WIDE - 130
    unit = wide / max(1, m.count)
    out.heading(_LEFT, y, word("timeline", lang), word("timeline_hint", lang))
    y += 22
    for role in roles:
        out.text(left - 10, y + 9, _short(threads_text(m.data["roles"][role], lang) or word("whole_block", lang), 18), "soft tiny end")
        out.rect(left, y, wide, 12, cls="track", radius=3)
        here = np.asarray(steps["role"]) == role
        for a, b in [(int(k), int(k) + 1) for k in np.flatnonzero(here)] if unit > 4 else _runs(here):
            colour = m.colour(a) if unit > 4 else ""
            width = max(1.0, (b - a) * unit - (1 if unit > 4 else 0))
            out.rect(left + a * unit, y + 1, width, 10, cls="" if colour else "ran", fill=colour, radius=1.5)
        y += 16
    name = m.data["selected"]
    if name:
        out.text(left - 10, y + 9, _short(word("writes_of", lang, name=name), 18), "soft tiny end")
        size = max(1.2, min(unit - 0.6, 8))
        for s in np.asarray(m.buffer(name)["steps"])[:2000]:
            out.rect(left + (int(s) + 0.5) * unit - size / 2, y + 2, size, 8, cls="wrote", radius=1.5)
        y += 16
    marks = [(int(f["step"]), "mark-bad") for f in m.data["findings"] if f["step"] >= 0 and f["severity"] != "info"]
    marks += [(int(m.data["nan"]["step"]), "mark-bad")] if m.data["nan"] else []
    for s, cls in dict.fromkeys(marks):
        x = left + (s + 0.5) * unit
        out.path(f"M{x - 5:.1f} {y + 10:.1f}L{x + 5:.1f} {y + 10:.1f}L{x:.1f} {y + 1:.1f}Z", cls)
    for s in dict.fromkeys(int(p["step"]) for p in m.data["prints"] if p["step"] >= 0):
        x = left + (s + 0.5) * unit
        out.path(f"M{x - 4:.1f} {y + 3:.1f}h8v6h-8z", "mark-print")
    x = left + (m.at + 0.5) * unit
    out.path(f"M{x:.1f} {y - 16 * (len(roles) + bool(name)) - 4:.1f}V{y + 14:.1f}", "head-line")
    return y + 18


def _runs(mask: NDArray[Any]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


# --------------------------------------------------------------------------------------------------- source
def _source(out: Svg, m: Model, x: float, y: float, lang: str) -> float:
    file = m.file(m.at)
    out.heading(x, y, word("source", lang), PurePath(file["name"]).name if file is not None else "")
    y += 24
    lines = m.around(m.at, 6)
    if not lines:
        out.text(x, y, word("no_source", lang), "soft")
        return y
    first, last = m.lines(m.at)
    stops = {b["line"] for b in m.data["breakpoints"]}
    indent = min((len(t) - len(t.lstrip()) for _, t in lines if t.strip()), default=0)
    for n, text in lines:
        if first <= n <= last:
            out.rect(x, y - 12, 505, 17, cls="here")
        if n in stops:
            out.path(f"M{x + 8:.1f} {y - 4:.1f}m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0", "mark-bad")
        out.text(x + 36, y, str(n), "soft tiny mono end")
        if colour := m.line_colour(m.data["steps"]["file"][m.at], n):
            out.rect(x + 41, y - 12, 3.5, 17, fill=colour)
        code = text[indent:].rstrip()
        spaces = len(code) - len(code.lstrip())
        out.text(x + 50 + spaces * 6.3, y, _short(code.strip(), 70 - spaces), "mono tiny")
        y += 17
    return y


# --------------------------------------------------------------------------------------------------- values
def _values(out: Svg, m: Model, x: float, y: float, lang: str) -> float:
    name = m.data["selected"]
    shown = m.value(name, m.at) if name else None
    if shown is None:
        return y
    b = m.buffer(name)
    kind = " · ".join(t for t in (b["dtype"], "×".join(map(str, b["shape"])) or word("scalar", lang), b["scope"]) if t)
    out.heading(x, y, name, kind, "sub mono")
    out.text(x, y + 17, value_text(m, shown, lang), "soft tiny")
    said = "  ".join(f"{k} {v}" for k, v in summary(shown.array))
    out.text(x, y + 33, said, "mono tiny")
    return heat(out, shown, x, y + 44, 400, b)


def heat(out: Svg, shown: Shown, x: float, y: float, most: float, buffer: Mapping[str, Any]) -> float:
    """Draw values as a heat map; what changed is outlined."""
    cells = grid(np.asanyarray(shown.array))
    rows, columns = cells.shape
    low, high = buffer["low"], buffer["high"]
    index, colours = _coloured(cells, low, high)
    if cells.size <= _BOXES and columns <= 16:
        w, h = min(46.0, most / columns), 20.0
        digits = max(1, int((w - 3) / 6.4))
        for i in range(rows):
            for j in range(columns):
                colour = colours[index[i, j]]
                out.rect(x + j * w, y + i * h, w - 1.5, h - 1.5, fill=colour, radius=3)
                out.text(x + j * w + (w - 1.5) / 2, y + i * h + 13, _fit(cells[i, j], digits), "mono tiny mid", palette.ink_on(colour))
    else:
        w = h = min(most / columns, 300 / rows, 18.0)
        h = max(h, 4.0) if rows * 4 < 300 else h
        out.image(x, y, columns * w, rows * h, index, list(colours))
    changed = grid(np.asarray(shown.changed)) if shown.changed is not None and shown.array.ndim else None
    if changed is not None and changed.shape == cells.shape and 0 < np.count_nonzero(changed) < changed.size:
        _outline(out, changed, x, y, w, h)
    return float(y + rows * h + 10)


def _coloured(cells: Any, low: float, high: float) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Indices into colours: the ramp, then the colour of NaN and Inf, then that of what nobody wrote."""
    colours = ramp()
    data = np.ma.getdata(cells).astype(np.float64)
    with np.errstate(all="ignore"):
        t = (data - low) / (high - low) if high > low else np.full(data.shape, 0.5)
        index = np.clip(np.nan_to_num(t) * len(colours), 0, len(colours) - 1).astype(np.int64)
    index[~np.isfinite(data)] = len(colours)
    index[np.ma.getmaskarray(cells)] = len(colours) + 1
    return index, (*colours, BAD, EMPTY)


def _cell(value: Any) -> str:
    if np.ma.is_masked(value):
        return "·"
    x = float(value)
    if not np.isfinite(x):
        return "NaN" if np.isnan(x) else "∞" if x > 0 else "−∞"
    return f"{x:.3g}"


def _fit(value: Any, most: int) -> str:
    """A number in at most ``most`` characters, with fewer digits where it must be; nothing where even that is too long."""
    text = _cell(value)
    if len(text) > most and not np.ma.is_masked(value) and np.isfinite(float(value)):
        tries = (f"{float(value):.{n}g}" for n in (2, 1))
        text = next((t for full in tries for t in (full, full.replace("0.", ".", 1)) if len(t) <= most), "")
    return text if len(text) <= most else ""


def _outline(out: Svg, mark: NDArray[Any], x: float, y: float, w: float, h: float) -> None:
    """Draw a border around the marked cells."""
    padded = np.pad(mark, 1)
    d = []
    for (di, dj), edge in (((-1, 0), (0, 0, 1, 0)), ((1, 0), (0, 1, 1, 1)), ((0, -1), (0, 0, 0, 1)), ((0, 1), (1, 0, 1, 1))):
        beside = padded[1 + di : 1 + di + mark.shape[0], 1 + dj : 1 + dj + mark.shape[1]]
        for i, j in np.argwhere(mark & ~beside)[:4000]:
            x1, y1, x2, y2 = x + (j + edge[0]) * w, y + (i + edge[1]) * h, x + (j + edge[2]) * w, y + (i + edge[3]) * h
            d.append(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")
    out.path("".join(d), "halo")
    out.path("".join(d), "mark")


# ---------------------------------------------------------------------------------------------------- lists
def _lists(out: Svg, m: Model, y: float, lang: str) -> float:
    """Draw the first NaN, findings and watches, one below the other."""
    d = m.data
    if d["nan"] is not None:
        nan = d["nan"]
        where = word("first_nan_where", lang, element=element_text(nan["buffer"], nan["index"]), value=nan["value"], step=nan["step"])
        out.heading(_LEFT, y, word("first_nan", lang, value=nan["value"]), where, "sub bad")
        parts = [f"{element_text(o['buffer'], o['index'])} = {o['value']}" for o in nan["operands"]]
        if parts:
            out.text(_LEFT, y + 18, f"{word('operands', lang)} {', '.join(parts)}", "mono tiny")
        y += 44
    for title, lines in (
        ("findings", [(f"{f['code']}  {f['message']}", "bad" if f["severity"] == "error" else "") for f in d["findings"]]),
        ("watches", [(f"{w['text']} = {w['value'] or word('no_value', lang)}", "mono") for w in d["watches"]]),
    ):
        if not lines:
            continue
        out.heading(_LEFT, y, word(title, lang), "")
        for text, cls in lines[:_SHOWN]:
            y += 18
            out.text(_LEFT, y, _short(text, 150), cls)
        if len(lines) > _SHOWN:
            y += 18
            out.text(_LEFT, y, word("more", lang, count=len(lines) - _SHOWN), "soft tiny")
        y += 28
    return y


def _prints(out: Svg, m: Model, y: float, lang: str) -> float:
    """Draw the records of T.print as a table, and the first array among them as a heat map."""
    d = m.data
    total = len(d["prints"]) + d["prints_lost"]
    out.heading(_LEFT, y, word("prints", lang), word("prints_count", lang, count=total))
    keys = ("filter_line", "filter_block", "filter_thread", "filter_loop", "filter_name", "printed_value")
    columns = tuple(zip((0, 50, 120, 190, 290, 450), keys, strict=True))
    out.reach(_LEFT + _WIDE, y)
    y += 20
    for dx, key in columns:
        out.text(_LEFT + dx, y, word(key, lang), "soft tiny")
    for p in d["prints"][: 2 * _SHOWN]:
        y += 17
        out.line(_LEFT, y - 12, _LEFT + _WIDE, y - 12)
        thread = ",".join(map(str, p["thread"])) if p["thread"] is not None else word("whole_tile", lang)
        cells = (str(p["line"] or "?"), ",".join(map(str, p["block"])), thread, loops_text(p["loops"]), p["what"])
        for (dx, _), text in zip(columns, (*cells, f"{p['dtype']} {short_value(p['value'])}"), strict=True):
            out.text(_LEFT + dx, y, _short(text, 70 if dx == 450 else 20), "mono tiny")
    rest = total - min(len(d["prints"]), 2 * _SHOWN)
    if rest > 0:
        y += 17
        out.text(_LEFT, y, word("more", lang, count=rest), "soft tiny")
    y += 26
    first = next((p for p in d["prints"] if np.ndim(p["value"])), None)
    if first is not None and not m.count:
        array = np.asanyarray(first["value"])
        finite = array[np.isfinite(array.astype(np.float64))].astype(np.float64) if array.dtype.kind in "fiub" else np.zeros(0)
        span = {"low": float(finite.min()), "high": float(finite.max())} if finite.size else {"low": 0.0, "high": 0.0}
        out.heading(_LEFT, y, first["what"], f"{first['dtype']} {'×'.join(map(str, array.shape))}", "sub mono")
        y = heat(out, Shown(name=first["what"], array=array, step=0, late=False, changed=None), _LEFT, y + 14, 480, span)
    return y


__all__ = ["BAD", "EMPTY", "breakpoint_text", "draw", "grid", "heat", "ramp"]

"""Lowerings of the trace view to text, tables, SVG and matplotlib; the live one is ``visualizers/trace``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import PurePath
from typing import Any

import numpy as np

from tilelab.views import trace_svg
from tilelab.views.trace_model import Model, Shown, element_text, loops_text, value_text
from tilelab.views.trace_text import array_text
from tilelab.views.view import View
from tilelab.views.words import word

_PRINTS = 20  # records written as text


def svg(view: View) -> str:
    """Return the picture of the present step."""
    return trace_svg.draw(Model(view.data), view.title, view.lang)


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the present step: its source, the values shown, watches, findings, prints."""
    m, lang = Model(view.data), view.lang
    d = view.data
    out = [f"{view.title}" + (f" · {word('steps', lang, count=m.count)}" if m.count else "")]
    out += [f"  {note}" for note in d["notes"]]
    if m.count:
        out += ["", _place(m, lang), *_listing(m, lang)]
        if d["hit"]:
            out.append(f"  {word('stopped_at', lang)} {d['hit']}")
        shown = m.value(d["selected"], m.at)
        if shown is not None:
            out += ["", _values(m, shown), f"  {value_text(m, shown, lang)}"]
        if d["watches"]:
            out += ["", word("watches", lang), *(f"  {w['text']} = {w['value'] or word('no_value', lang)}" for w in d["watches"])]
        if d["breakpoints"]:
            out += ["", word("breakpoints", lang), *(f"  {trace_svg.breakpoint_text(b)}" for b in d["breakpoints"])]
        out += _nan(m, lang)
        if d["findings"]:
            out += ["", word("findings", lang), *(f"  {finding_text(f, lang)}" for f in d["findings"])]
    if d["prints"] or not m.count:
        out += ["", *_prints(d, lang)]
    return "\n".join(out) + "\n"


def _values(m: Model, shown: Shown) -> str:
    """The values, or of many only the box that changed."""
    b = m.buffer(shown.name)
    name, array, changed = shown.name, shown.array, shown.changed
    if changed is not None and array.size > 64 and array.ndim == len(b["origin"]) and 0 < np.count_nonzero(changed) < changed.size:
        where = np.argwhere(changed)
        low, high = where.min(0), where.max(0) + 1
        array = array[tuple(slice(a, z) for a, z in zip(low, high, strict=True))]
        if array.shape != shown.array.shape:
            name += f"[{', '.join(f'{o + a}:{o + z}' for o, a, z in zip(b['origin'], low, high, strict=True))}]"
    return array_text(name, array, dtype=b["dtype"])


def _place(m: Model, lang: str) -> str:
    parts = [word("step_of", lang, at=m.at, last=m.count - 1), loops_text(m.loops(m.at)), m.who(m.at, lang)]
    return " · ".join(p for p in parts if p) + f"\n  {m.text(m.at)}"


def _listing(m: Model, lang: str) -> list[str]:
    lines = m.around(m.at, 4)
    if not lines:
        return [f"  {word('no_source', lang)}"]
    stops = {b["line"] for b in m.data["breakpoints"]}
    width = len(str(lines[-1][0]))
    first, last = m.lines(m.at)
    return [f"{'→' if first <= n <= last else ' '}{'●' if n in stops else ' '}{n:>{width}}  {line}".rstrip() for n, line in lines]


def _nan(m: Model, lang: str) -> list[str]:
    nan = m.data["nan"]
    if nan is None:
        return []
    where = element_text(nan["buffer"], nan["index"])
    out = ["", word("first_nan_where", lang, element=where, value=nan["value"], step=nan["step"])]
    operands = [f"{element_text(o['buffer'], o['index'])} = {o['value']}" for o in nan["operands"]]
    return [*out, f"  {word('operands', lang)} {', '.join(operands)}"] if operands else out


def finding_text(f: Mapping[str, Any], lang: str) -> str:
    """Return a finding in one line, with its step."""
    where = f"{PurePath(f['file']).name}:{f['line']} " if f["line"] else ""
    at = f" ({word('step', lang)} {f['step']})" if f["step"] >= 0 else ""
    return f"{f['code']} {where}{f['message']}{at}"


def _prints(d: Mapping[str, Any], lang: str) -> list[str]:
    if not d["prints"]:
        return [word("no_prints", lang)]
    header, rows = print_rows(d, lang, _PRINTS)
    table_ = [header, *rows]
    widths = [max(len(row[k]) for row in table_) for k in range(len(header))]
    out = [f"{word('prints', lang)}: {word('prints_count', lang, count=len(d['prints']) + d['prints_lost'])}"]
    out += ["  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table_]
    rest = len(d["prints"]) + d["prints_lost"] - len(rows)
    return [*out, f"  … {word('more', lang, count=rest)}"] if rest else out


def print_rows(d: Mapping[str, Any], lang: str, most: int) -> tuple[list[str], list[list[str]]]:
    """Return the records of T.print as a table."""
    short = import_module("tilelab.views.trace_text").short_value
    keys = ("filter_line", "filter_block", "filter_thread", "filter_loop", "filter_name", "dtype", "printed_value")
    rows = [
        [
            str(p["line"] or "?"), ",".join(map(str, p["block"])),
            ",".join(map(str, p["thread"])) if p["thread"] is not None else word("whole_tile", lang),
            loops_text(p["loops"]), p["what"], p["dtype"], short(p["value"]),
        ]
        for p in d["prints"][:most]
    ]  # fmt: skip
    return [word(k, lang) for k in keys], rows


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return the steps, or, where none are recorded, what was printed."""
    m, lang = Model(view.data), view.lang
    if not m.count:
        return print_rows(view.data, lang, rows)
    header = [word(k, lang) for k in ("step", "line", "loops", "role", "statement", "wrote")]
    first = max(0, min(m.at - rows // 2, m.count - rows))
    body = []
    for k in range(first, min(m.count, first + rows)):
        line = m.lines(k)[0]
        body.append([str(k), str(line or ""), loops_text(m.loops(k)), m.who(k, lang), m.text(k), ", ".join(m.wrote(k))])
    return header, body


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure with the values shown at the present step, and the steps that wrote them."""
    figure_module, colours = import_module("matplotlib.figure"), import_module("matplotlib.colors")
    m, d = Model(view.data), view.data
    figure = figure_module.Figure(figsize=(6.4, 5.2), layout="constrained")
    figure.suptitle(view.title, fontsize=10)
    axes = figure.add_subplot()
    shown = m.value(d["selected"], m.at) if m.count else None
    picture = shown.array if shown is not None else d["prints"][0]["value"] if d["prints"] else np.zeros((1, 1))
    grid = trace_svg.grid(np.asanyarray(picture))
    ramp = colours.ListedColormap(trace_svg.ramp())
    ramp.set_bad(trace_svg.BAD)
    drawn = axes.imshow(np.ma.masked_invalid(np.ma.getdata(grid).astype(np.float64)), cmap=ramp, interpolation="nearest")
    axes.set_title(d["selected"] or (d["prints"][0]["what"] if d["prints"] else ""), fontsize=10)
    figure.colorbar(drawn)
    return figure

"""The what-if table as a view: variants of a kernel, what each takes and what stands against it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from tilelab.errors import InputError
from tilelab.views.svg import Svg
from tilelab.views.view import View
from tilelab.views.words import word

Row = Mapping[str, Any]
_BAR, _CHAR, _STEP = 150, 7.3, 22  # pixels: a full bar, a letter, a row


def whatif_view(record: Mapping[str, Any], lang: str = "en") -> View:
    """Return the view of what ``WhatIf.to_json()`` returned.

    Raises:
        InputError: It is something else, or of another version.
    """
    if record.get("schema") != "tilelab.whatif" or record.get("version") != 1:
        raise InputError(f"{record.get('schema')!r} version {record.get('version')!r} is no what-if table of version 1")
    data = {name: record[name] for name in ("kernel", "axes", "variants")}
    return View(kind="whatif", title=word("whatif_of", lang, kernel=record["kernel"]), data=data, lang=lang)


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return one row a variant: the edits, what it takes, what changed, the verdict."""
    lang, data = view.lang, view.data
    axes = [a for a in data["axes"] if a != "target"]
    assembled = any(v["registers"] is not None for v in data["variants"])
    keys = [*axes, *(["target"] if "target" in data["axes"] else []), "smem", *([] if "threads" in axes else ["threads"]),
            *(["registers", "spills"] if assembled else []), "code_lines", "layouts_changed", "verdict"]  # fmt: skip
    return [word(k, lang) for k in keys], [[_cell(v, k, lang) for k in keys] for v in islice(data["variants"], rows)]


def _cell(v: Row, key: str, lang: str) -> str:
    if key in _CELLS:
        return str(_CELLS[key](v, lang))
    return str(v["edits"][key]) if key in v["edits"] else "—"


def _number(value: Any) -> str:
    return "—" if value is None else f"{value:,}"


def _smem(v: Row, lang: str) -> str:
    if v["smem_limit_bytes"] is None or v["smem_bytes"] is None:
        return _number(v["smem_bytes"])
    return word("smem_of", lang, used=_number(v["smem_bytes"]), limit=_number(v["smem_limit_bytes"]))


def verdict(v: Row, lang: str) -> str:
    """Return whether a variant runs, and why it does not."""
    if v["refusal"]:
        return f"{word('refused', lang)}: {v['refusal']['code']} {v['refusal']['message']}"
    told = [f"{f['code']} {f['message']}" for f in v["findings"]]
    return "; ".join(told) if told else word("fits", lang)


_CELLS: Mapping[str, Any] = {
    "target": lambda v, _l: v["target"],
    "smem": _smem,
    "threads": lambda v, _l: _number(v["threads"]) if "threads" not in v["edits"] else str(v["edits"]["threads"]),
    "registers": lambda v, _l: _number(v["registers"]),
    "spills": lambda v, _l: _number(v["spill_bytes"]),
    "code_lines": lambda v, _l: _number(v["source_lines"]),
    "layouts_changed": lambda v, _l: ", ".join(v["layouts"]) or "—",
    "verdict": verdict,
}


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the table for a terminal; the first row is the kernel as it is written."""
    header, rows = table(view, len(view.data["variants"]))
    width = [max(_wide(line[k]) for line in (header, *rows)) for k in range(len(header) - 1)]
    lines = [
        "  ".join([*(c + " " * (w - _wide(c)) for c, w in zip(row, width, strict=False)), row[-1]]).rstrip() for row in (header, *rows)
    ]
    return "\n".join([view.title, *lines]) + "\n"


def _wide(words: str) -> int:
    """Columns of a terminal that ``words`` take: Chinese letters take two."""
    return sum(2 if ord(c) > 0x2E7F else 1 for c in words)


# ------------------------------------------------------------------------------------------------------ svg
def svg(view: View) -> str:
    """Return the table as a picture, shared memory as bars against what the target has."""
    header, rows = table(view, len(view.data["variants"]))
    variants = view.data["variants"]
    most = max([v["smem_bytes"] or 0 for v in variants] + [v["smem_limit_bytes"] or 0 for v in variants] + [1])
    picture = Svg(view.title, f"{len(rows)} variants; " + "; ".join(f"{h}" for h in header))
    picture.text(20, 32, view.title, "head")
    at = header.index(word("smem", view.lang))
    shown = [[_short(c) for c in row] for row in rows]
    left, x = [], 20.0
    for k, name in enumerate(header):
        left.append(x)
        x += max(_wide(c) for c in (name, *(row[k] for row in shown))) * _CHAR + 22 + (_BAR + 10 if k == at else 0)
    for where, name in zip(left, header, strict=True):
        picture.text(where, 62, name, "soft")
    picture.line(20, 70, x, 70)
    for n, (v, row) in enumerate(zip(variants, shown, strict=True)):
        y = 90 + n * _STEP
        good = bool(v["runs"])
        for k, cell in enumerate(row):
            grade = ("good" if good else "bad") if k == len(row) - 1 else "mono"
            picture.text(left[k] + (_BAR + 10 if k == at else 0), y, cell, grade)
        if v["smem_bytes"] is not None:
            picture.rect(left[at], y - 10, _BAR * v["smem_bytes"] / most, 12, cls="good" if good else "bad", radius=2)
        if v["smem_limit_bytes"] is not None:
            end = left[at] + _BAR * v["smem_limit_bytes"] / most
            picture.line(end, y - 13, end, y + 5, "mark")
    picture.reach(x, 90 + len(rows) * _STEP)
    return picture.finish()


def _short(words: str, most: int = 72) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure: the shared memory of each variant and its limit."""
    figure = import_module("matplotlib.figure").Figure(figsize=(7.5, 1.4 + 0.32 * len(view.data["variants"])), layout="constrained")
    axes = figure.add_subplot()
    variants = view.data["variants"]
    names = [", ".join(f"{k}={x}" for k, x in v["edits"].items()) or word("as_written", view.lang) for v in variants]
    places = range(len(variants))
    axes.barh(places, [(v["smem_bytes"] or 0) / 1024 for v in variants], color=["#0a7a4b" if v["runs"] else "#b3261e" for v in variants])
    limits = [v["smem_limit_bytes"] for v in variants]
    axes.plot([(n or 0) / 1024 for n in limits], places, "|", color="black", markersize=14)
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel(f"{word('smem', view.lang)} (KiB)")
    axes.set_title(view.title)
    return figure

"""The what-if table as a view: variants of a kernel, what each takes and what stands against it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import islice
from typing import Any

from tilelab.errors import InputError
from tilelab.views.resources_svg import duration
from tilelab.views.schema_whatif import WhatIfColumn
from tilelab.views.svg import Svg, text_width
from tilelab.views.view import View
from tilelab.views.words import word

Row = Mapping[str, Any]
_BAR, _STEP = 120, 22  # pixels: a full bar, a row


def whatif(kernel: Any, *tensors: Any, lang: str = "en", **changes: Any) -> View:
    """Lower edited copies of a kernel and show what changes.

    Args:
        kernel: What :func:`tilelab.whatif` takes, or what it returned.
        tensors: Tensors that settle the sizes of an eager kernel.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.
        changes: ``num_stages``, ``threads``, ``pad``, ``target``, ``consts``, ``assemble``, as for :func:`tilelab.whatif`.
    """
    made = kernel if hasattr(kernel, "variants") else import_module("tilelab.compiler.whatif").whatif(kernel, *tensors, **changes)
    return whatif_view(made.to_json(), lang)


def whatif_view(record: Mapping[str, Any], lang: str = "en") -> View:
    """Return the view of what ``WhatIf.to_json()`` returned.

    Raises:
        InputError: It is something else, or of another version.
    """
    if record.get("schema") != "tilelab.whatif" or record.get("version") != 1:
        raise InputError(f"{record.get('schema')!r} version {record.get('version')!r} is no what-if table of version 1")
    data = {name: record[name] for name in ("kernel", "axes", "variants")}
    columns = _columns(data, lang)
    return View(kind="whatif", title=word("whatif_of", lang, kernel=record["kernel"]), data={**data, "columns": columns}, lang=lang)


# -------------------------------------------------------------------------------------------------- columns
def _columns(data: Mapping[str, Any], lang: str) -> list[WhatIfColumn]:
    """The columns that have something to say: the axes, what every variant takes, and what only some runs know."""
    variants = data["variants"]
    axes = [a for a in data["axes"] if a != "target"]
    keys = [*axes, *(k for k in _CELLS if k not in axes and (k in _ALWAYS or any(_CELLS[k](v)[0] for v in variants)))]
    if "target" not in data["axes"]:
        keys = [k for k in keys if k not in ("target", "least_time")]  # the same in every row
    return [_column(k, variants, lang) for k in keys]


def _column(key: str, variants: Sequence[Row], lang: str) -> WhatIfColumn:
    texts, order = [], []
    for v in variants:
        if key in _CELLS and key not in v["edits"]:
            text, rank = _CELLS[key](v)
        else:
            value = v["edits"].get(key)
            text, rank = ("" if value is None else str(value)), (float(value) if isinstance(value, int) else None)
        texts.append(verdict(v, lang) if key == "verdict" else text or "—")
        order.append(rank)
    return {"key": key, "texts": texts, "order": order}


def verdict(v: Row, lang: str) -> str:
    """Return whether a variant runs, and why it does not."""
    if v["refusal"]:
        return f"{word('refused', lang)}: {v['refusal']['code']} {v['refusal']['message']}"
    told = [f"{f['code']} {f['message']}" for f in v["findings"]]
    return "; ".join(told) if told else word("fits", lang)


Cell = tuple[str, float | None]


def _number(value: int | None) -> Cell:
    return ("", None) if value is None else (f"{value:,}", float(value))


def _smem(v: Row) -> Cell:
    if v["smem_limit_bytes"] is None or v["smem_bytes"] is None:
        return _number(v["smem_bytes"])
    return f"{v['smem_bytes']:,} / {v['smem_limit_bytes']:,}", float(v["smem_bytes"])


def _blocks(v: Row) -> Cell:
    if v["blocks_per_sm"] is None:
        return "", None
    return f"{v['blocks_per_sm']} · {100 * v['occupancy']:.3g}%", v["occupancy"] + v["blocks_per_sm"] * 1e-6


def _few(names: Sequence[str], most: int = 2) -> str:
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} + {len(names) - most}"


def _banks(v: Row) -> Cell:
    passes = v["banks"]
    return " · ".join(f"{key} {n}" for key, n in passes.items()), float(sum(passes.values())) if passes else None


#: key → text and rank of a variant; in the order of the table. A column is shown where one of its texts is not empty.
_CELLS: Mapping[str, Callable[[Row], Cell]] = {
    "target": lambda v: (v["target"], None),
    "smem": _smem,
    "threads": lambda v: _number(v["threads"]),
    "registers": lambda v: _number(v["registers"]),
    "spills": lambda v: _number(v["spill_bytes"]),
    "blocks_per_sm": _blocks,
    "bank_passes": _banks,
    "least_time": lambda v: (duration(v["least_s"]), v["least_s"]) if v["least_s"] else ("", None),
    "code_lines": lambda v: _number(v["source_lines"]),
    "layouts_changed": lambda v: (_few(v["layouts"]), float(len(v["layouts"]))),
    "verdict": lambda v: ("", float(v["runs"])),
}
_ALWAYS = ("target", "smem", "threads", "code_lines", "verdict")


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return one row a variant: the edits, what it takes, what changed, the verdict."""
    columns = view.data["columns"]
    return [word(c["key"], view.lang) for c in columns], [
        list(row) for row in islice(zip(*(c["texts"] for c in columns), strict=True), rows)
    ]


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
    picture = Svg(view.title, f"{len(rows)} variants; " + "; ".join(header))
    picture.text(20, 32, view.title, "head")
    at = header.index(word("smem", view.lang))
    shown = [[_short(c) for c in row] for row in rows]
    left, x = [], 20.0
    for k, name in enumerate(header):
        left.append(x)
        x += max(text_width(name, 12), *(text_width(row[k], 12) for row in shown)) + 22 + (_BAR + 10 if k == at else 0)
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
def name_of(v: Row, lang: str) -> str:
    """Return what a variant is called: its edits."""
    return ", ".join(f"{k}={x}" for k, x in v["edits"].items()) or word("as_written", lang)


def matplotlib(view: View) -> Any:
    """Return a figure: the shared memory of each variant and its limit."""
    figure = import_module("matplotlib.figure").Figure(figsize=(7.5, 1.4 + 0.32 * len(view.data["variants"])), layout="constrained")
    axes = figure.add_subplot()
    variants = view.data["variants"]
    places = range(len(variants))
    axes.barh(places, [(v["smem_bytes"] or 0) / 1024 for v in variants], color=["#0a7a4b" if v["runs"] else "#b3261e" for v in variants])
    limits = [(k, v["smem_limit_bytes"] / 1024) for k, v in enumerate(variants) if v["smem_limit_bytes"] is not None]
    axes.plot([n for _, n in limits], [k for k, _ in limits], "|", color="black", markersize=14)
    axes.set_yticks(places, [name_of(v, view.lang) for v in variants])
    axes.invert_yaxis()
    axes.set_xlabel(f"{word('block_smem', view.lang)} (KiB)")
    axes.set_title(view.title)
    return figure

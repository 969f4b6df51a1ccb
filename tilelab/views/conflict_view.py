"""A conflict of layouts (TL402): the two maps side by side, where they part, the lines that want them, and what was tried and works."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tilelab.errors import InputError
from tilelab.finding import Finding
from tilelab.views import palette
from tilelab.views.layout_svg import Panel, _grid
from tilelab.views.svg import Svg
from tilelab.views.view import View
from tilelab.views.words import word

Record = Mapping[str, Any]


def conflict(finding: Finding, *, lang: str = "en") -> View:
    """Show the two layouts that a TL402 finding is about.

    Args:
        finding: What ``KernelRefused.finding`` or ``tilelab.check`` gave.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Raises:
        InputError: It is no conflict of layouts, or TileLang did not say what the maps are.
    """
    maps = [m for m in finding.evidence.get("maps", ()) if m.get("owners")]
    if finding.code != "TL402" or len(maps) != 2 or maps[0]["shape"] != maps[1]["shape"]:
        raise InputError(f"{finding.code} has no two layouts to set side by side", fix="give a TL402 finding of two fragments of one shape")
    owners = [np.asarray(m["owners"], dtype=np.int64).reshape(m["shape"]) for m in maps]
    lines, texts = finding.evidence.get("lines", {}), finding.evidence.get("texts", {})
    data = {
        "message": finding.message,
        "fix": finding.fix,
        "file": finding.file or "",
        "line": finding.line or 0,
        "text": finding.evidence.get("text", ""),
        "maps": [{"buffer": m["buffer"], "threads": m["threads"], "line": lines.get(m["buffer"], 0), "text": texts.get(m["buffer"], ""),
                  "owners": o}
                 for m, o in zip(maps, owners, strict=True)],
        "apart": (owners[0] != owners[1]).astype(np.uint8),
        "parts_at": finding.evidence.get("parts_at"),
        "remedies": list(finding.evidence.get("remedies", ())),
    }  # fmt: skip
    return View(kind="conflict", title=" / ".join(m["buffer"] for m in maps), data=data, lang=lang)


def _lines(data: Record, lang: str) -> list[str]:
    apart = np.asarray(data["apart"])
    out = [data["message"], word("parts_count", lang, count=int(apart.sum()), total=apart.size)]
    out += [f"{m['buffer']}: {word('wanted_by', lang, line=m['line'])}  {m['text']}".rstrip() for m in data["maps"] if m["line"]]
    if data["text"]:
        out.append(f"{word('used_together', lang, line=data['line'])}  {data['text']}")
    if data["parts_at"]:
        index, threads = tuple(data["parts_at"]["index"]), data["parts_at"]["threads"]
        one, two = (", ".join(map(str, t[:4])) + ("…" if len(t) > 4 else "") for t in threads)
        out.append(word("parts_at", lang, index=index, one=one, two=two))
    out += [f"{word('works', lang)}: {r}" for r in data["remedies"]]
    return [*out, f"→ {data['fix']}"]


# ------------------------------------------------------------------------------------------------- lowerings
def text(view: View) -> str:
    """Return the owners of the first rows in both maps, where they part marked ``*``, and what to do."""
    data = view.data
    apart = _flat(data["apart"])
    lines = _lines(data, view.lang)
    for m in data["maps"]:
        owners = _flat(m["owners"])
        lines += ["", f"{m['buffer']} (T = {word('thread', view.lang)})"]
        for row, marks in zip(owners[:8, :12], apart[:8, :12], strict=True):
            lines.append("  " + " ".join(f"T{o}{'*' if a else ''}".ljust(6) for o, a in zip(row, marks, strict=True)).rstrip())
    return "\n".join(lines) + "\n"


def svg(view: View) -> str:
    """Return both tiles side by side in the colours of their owners; what is outlined has another owner in the other."""
    data, lang = view.data, view.lang
    out = Svg(view.title, " ".join(_lines(data, lang)))
    out.heading(24, 34, view.title, word("conflict_hint", lang), "head mono", "soft")
    y = 54.0
    for line in _lines(data, lang):
        for start in range(0, len(line), 130):
            out.text(24, y, line[start : start + 130], "tiny")
            y += 15
    x = 24.0
    colours = tuple(c for ramp in palette.warp_ramps() for c in ramp)
    for m in data["maps"]:
        owners = _flat(m["owners"])
        small = owners.size <= 512 and owners.shape[1] <= 32
        ink = [[palette.ink_on(colours[c % 256]) for c in row] for row in owners] if small else []
        labels = np.char.add("T", owners.astype(str)) if small else None
        hint = word("wanted_by", lang, line=m["line"]) if m["line"] else ""
        panel = Panel(title=m["buffer"], hint=hint, down="", across="", cells=owners % 256, colours=colours, labels=labels, ink=ink,
                      mark=_flat(data["apart"]) > 0)  # fmt: skip
        w, _h = _grid(out, panel, x, y + 16, 400)
        x += 22 + owners.shape[1] * w + 40
    return out.finish()


def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return the elements whose owner differs."""
    one, two = view.data["maps"]
    first, second = np.asarray(one["owners"]), np.asarray(two["owners"])
    where = np.argwhere(np.asarray(view.data["apart"]))[:rows]
    header = [word("element", view.lang), *(f"{m['buffer']}: {word('thread', view.lang)}" for m in (one, two))]
    return header, [[str(tuple(int(i) for i in at)), str(first[tuple(at)]), str(second[tuple(at)])] for at in where]


def matplotlib(view: View) -> Any:
    """Return a figure with both maps and, third, where they part."""
    figure = import_module("matplotlib.figure").Figure(figsize=(12, 4), layout="constrained")
    pictures = [*((m["buffer"], _flat(m["owners"])) for m in view.data["maps"]), (word("apart", view.lang), _flat(view.data["apart"]))]
    for axes, (title, cells) in zip(figure.subplots(1, 3), pictures, strict=True):
        axes.imshow(cells, aspect="auto", interpolation="nearest", cmap="viridis")
        axes.set_title(title, fontsize=10)
    return figure


def _flat(a: Any) -> Any:
    a = np.asarray(a)
    return a.reshape(1, -1) if a.ndim < 2 else a.reshape(-1, a.shape[-1])

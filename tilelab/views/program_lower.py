"""Lowerings of the program view to text, tables, SVG and matplotlib; the live one is ``visualizers/program``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from tilelab.views.svg import Svg
from tilelab.views.view import View
from tilelab.views.words import word

Record = Mapping[str, Any]
_LONG, _ROW, _BAR = 96, 20, 90  # letters of a line, pixels of a row and of a full bar


def pane_name(pane: Record, lang: str) -> str:
    """Return what a pane is called."""
    return word(f"pane_{pane['key']}", lang, language=pane["language"])


def becomes(view: View) -> list[tuple[int, int, str, list[list[int]]]]:
    """Return, for each user line that became something: file, line, its text, and its lines (from 1) in each further pane."""
    data = view.data
    variant = data["variants"][data["selected"]]
    python, *panes = variant["panes"]
    texts: dict[tuple[int, int], str] = {}
    for line, at in zip(python["lines"], python["place"], strict=True):
        if at >= 0:
            texts[data["places"][at]["file"], data["places"][at]["line"]] = line
    found: dict[tuple[int, int], list[list[int]]] = {key: [[] for _ in panes] for key in texts}
    for k, pane in enumerate(panes):
        for number, at in enumerate(pane["place"], 1):
            for key in chain(data["places"], int(at)):
                if key in found:
                    found[key][k].append(number)
    return [(f, n, texts[f, n], lines) for (f, n), lines in sorted(found.items()) if any(lines)]


def chain(places: list[Record], at: int) -> list[tuple[int, int]]:
    """Return the (file, line) of a place and of the lines that called the macros around it, innermost first."""
    out = []
    while at >= 0:
        out.append((places[at]["file"], places[at]["line"]))
        at = places[at]["caller"]
    return list(dict.fromkeys(out))


def _facts(variant: Record, lang: str) -> list[str]:
    passes = variant["passes"]
    changed, ms = sum(p["changed"] for p in passes), sum(p["ms"] for p in passes)
    return [
        word("located", lang, percent=f"{100 * variant['located']:.0f}"),
        *([variant["note"]] if variant["note"] else []),
        word("passes_hint", lang, changed=changed, count=sum(p["name"] != "start" for p in passes), ms=f"{ms:.0f}"),
    ]


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the panes shown but Python, each line after the number of the user's line; then the passes, and what differs."""
    data, lang = view.data, view.lang
    variant = data["variants"][data["selected"]]
    lines = [f"{variant['kernel']} · {variant['target']} · {' · '.join(_facts(variant, lang))}"]
    for pane in variant["panes"]:
        if pane["key"] in data["shown"] and pane["key"] != "python":
            lines += ["", f"── {pane_name(pane, lang)}"]
            lines += [f"{_number(data, at):>6} │ {line}".rstrip() for line, at in zip(pane["lines"], pane["place"], strict=True)]
    if variant["passes"]:
        lines += ["", f"── {word('passes', lang)}"]
        lines += [f"{p['ms']:>9.2f} {word('milliseconds', lang)}  {p['name']}  {_change(p)}" for p in variant["passes"] if p["changed"]]
    for diff in data["diffs"]:
        if diff["hunks"] and (diff["a"], diff["key"]) in {(data["selected"], key) for key in data["shown"]}:
            lines += ["", *_compared(data, diff, lang)]
    return "\n".join(lines) + "\n"


def _number(data: Record, at: int) -> str:
    return str(data["places"][at]["line"]) if at >= 0 else ""


def _change(p: Record) -> str:
    return f"+{sum(len(h['added']) for h in p['hunks'])} −{sum(h['removed'] for h in p['hunks'])}"


def _compared(data: Record, diff: Record, lang: str, most: int = 40) -> list[str]:
    """One diff as ``−`` and ``+`` lines."""
    one, other = (next(p for p in data["variants"][v]["panes"] if p["key"] == diff["key"]) for v in (diff["a"], diff["b"]))
    names = [_title(data["variants"][v], lang) for v in (diff["a"], diff["b"])]
    out = []
    for a0, a1, b0, b1 in diff["hunks"]:
        out += [f"− {x}" for x in one["lines"][a0:a1]] + [f"+ {x}" for x in other["lines"][b0:b1]]
    more = [f"… {word('more', lang, count=len(out) - most)}"] if len(out) > most else []
    return [f"── {pane_name(one, lang)}: {names[0]} → {names[1]}, {word('differ', lang, count=len(out))}", *out[:most], *more]


def _title(variant: Record, lang: str) -> str:
    return f"{variant['target']} {variant['name'] or word('as_written', lang)}"


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return each user line and the lines that it became in each pane."""
    lang, data = view.lang, view.data
    panes = data["variants"][data["selected"]]["panes"][1:]
    header = [
        word("user_line", lang),
        pane_name(data["variants"][data["selected"]]["panes"][0], lang),
        *(pane_name(p, lang) for p in panes),
    ]
    names = data["files"] if len(data["files"]) > 1 else None
    body = [
        [f"{names[f]}:{n}" if names else str(n), words.strip(), *(runs(lines) for lines in found)] for f, n, words, found in becomes(view)
    ]
    return header, list(islice(body, rows))


def runs(numbers: list[int], most: int = 6) -> str:
    """Return rising numbers with neighbours joined: ``3–5, 9``."""
    out: list[list[int]] = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    shown = ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in out[:most])
    return shown + (" …" if len(out) > most else "")


# ------------------------------------------------------------------------------------------------------ svg
def svg(view: View) -> str:
    """Return a picture: each user line with bars for what it became."""
    data, lang = view.data, view.lang
    variant = data["variants"][data["selected"]]
    panes, rows = variant["panes"][1:], becomes(view)
    picture = Svg(view.title, f"{word('becomes', lang)}: {len(rows)}")
    picture.text(20, 32, view.title, "head")
    picture.text(20, 54, " · ".join(_facts(variant, lang)), "soft")
    shown = [_cut(words) for _, _, words, _ in rows]
    left = 64 + 7.3 * max([len(w) for w in shown] + [20])
    picture.heading(20, 84, word("becomes", lang), word("becomes_hint", lang))
    for k, pane in enumerate(panes):
        picture.text(left + k * (_BAR + 46), 84, pane_name(pane, lang), "soft tiny")
    most = [max([len(found[k]) for _, _, _, found in rows] + [1]) for k in range(len(panes))]
    for n, (_, number, _, found) in enumerate(rows):
        y = 106 + n * _ROW
        picture.text(50, y, str(number), "soft mono end")
        picture.text(62, y, shown[n], "mono")
        for k, lines in enumerate(found):
            x = left + k * (_BAR + 46)
            picture.rect(x, y - 10, max(1.0, _BAR * len(lines) / most[k]) if lines else 0, 11, cls="wrote", radius=2)
            picture.text(x + _BAR + 6, y, str(len(lines)), "soft tiny")
    picture.reach(left + len(panes) * (_BAR + 46), 106 + len(rows) * _ROW)
    return picture.finish()


def _cut(words: str) -> str:
    words = words.replace("\t", "    ")
    spare = len(words) - len(words.lstrip())
    words = " " * min(spare, 16) + words.lstrip()
    return (words if len(words) <= _LONG else words[: _LONG - 1] + "…").replace(" ", "\u00a0")


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure with what each user line became."""
    rows = becomes(view)
    data = view.data
    panes = data["variants"][data["selected"]]["panes"][1:]
    figure = import_module("matplotlib.figure").Figure(figsize=(4 + 1.7 * len(panes), 1.6 + 0.24 * len(rows)), layout="constrained")
    grid = figure.subplots(1, len(panes), sharey=True, squeeze=False)[0]
    places = np.arange(len(rows))
    for k, (axes, pane) in enumerate(zip(grid, panes, strict=True)):
        axes.barh(places, [len(found[k]) for *_, found in rows], color="#0a58ca")
        axes.set_title(pane_name(pane, "en"), fontsize=9)
    grid[0].set_yticks(places, [f"{words.strip()[:48]}  {n}" for _, n, words, _ in rows], fontsize=7, family="monospace", parse_math=False)
    grid[0].invert_yaxis()
    figure.suptitle(view.title, fontsize=10)
    return figure

"""Lowerings of the layout view to text, tables, SVG and matplotlib; the live one is ``visualizers/layout``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.views import layout_svg
from tilelab.views.view import View
from tilelab.views.words import word

Record = Mapping[str, Any]
_WIDE, _TALL = 16, 16  # cells of a text grid


def svg(view: View) -> str:
    """Return the picture of the selected layout."""
    return layout_svg.draw(selected(view), view.lang)


def selected(view: View) -> Record:
    """Return the record shown first."""
    record: Record = view.data["layouts"][view.data["selected"]]
    return record


def headline(r: Record, lang: str) -> str:
    """Return what this layout is, in one line."""
    return layout_svg.headline(r, lang)


def grid(r: Record, name: str) -> NDArray[Any]:
    """Return one array as the rows and columns to show, cut at ``r["at"]``; replicas stay as the last axis."""
    return layout_svg.grid(r, name)


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the layout as a table of cells with its formulas and facts; other buffers get one line each."""
    r = selected(view)
    lines = [f"{r['name']}: {headline(r, view.lang)}"]
    lines += [f"  {word(name, view.lang)} = {formula}" for name, formula in r["formula"]]
    lines += [f"  {layout_svg.fact_text(f, view.lang)}" for f in r["facts"]]
    lines += [f"  {f['code']}: {f['message']}. {f['fix']}" for f in r["findings"]]
    lines += ["", *_cells(r, view.lang)]
    if r["conflicts"]:
        lines += ["", word("conflicts", view.lang)]
        for c in r["conflicts"]:
            names = ", ".join(f"{word(key, view.lang)} {c[key]}" for key in ("before", "after", "ideal"))
            lines.append(f"  {word(c['pattern'], view.lang)}: {names} {word('wavefronts', view.lang)}")
    lines += [f"  {line}" for line in through_lines(view)]
    if "value" in r["arrays"]:
        lines += ["", *_values(r, view.lang)]
    others = [o for o in view.data["layouts"] if o is not r]
    if others:
        lines += ["", *(f"{o['name']}: {headline(o, view.lang)}" for o in others)]
    return "\n".join(lines) + "\n"


def through_lines(view: View) -> list[str]:
    """Return what the threads find where in the other layout of each pair with the selected one."""
    layouts, at, out = view.data["layouts"], view.data["selected"], []
    for p in view.data["through"]:
        if at in (p["fragment"], p["shared"]):
            passes = p["passes"]
            names = {"fragment": layouts[p["fragment"]]["name"], "shared": layouts[p["shared"]]["name"]}
            out.append(word("through_line", view.lang, **names, worst=max(passes, default=0), mean=f"{np.mean(passes):.3g}"))
    return out


def _values(r: Record, lang: str) -> list[str]:
    """The values on the first elements, and the step that they are of."""
    cells, frame = grid(r, "value")[:_TALL, :_WIDE], r["frames"][-1] if r["frames"] else None
    missing = grid({**r, "arrays": {"value": frame["unwritten"]}}, "value")[:_TALL, :_WIDE] if frame else np.zeros(cells.shape)
    texts = [["·" if m else _short_value(v) for v, m in zip(*rows, strict=True)] for rows in zip(cells, missing, strict=True)]
    wide = max(len(t) for row in texts for t in row)
    title = word("value", lang) + (f" · {word('step', lang)} {frame['step']}: {frame['text']}" if frame else "")
    return [title, *("     " + " ".join(f"{t:>{wide}}" for t in row) for row in texts)]


def _short_value(v: Any) -> str:
    return f"{v:.4g}" if isinstance(v, np.floating) else str(v)


def _cells(r: Record, lang: str) -> list[str]:
    if r["layout"] == "shared":
        address, bank = grid(r, "address"), grid(r, "bank")
        cell = np.char.add(np.char.add(address.astype(str), ":b"), bank.astype(str))
        key = f"{word('address', lang)} : b = {word('bank', lang)}"
    else:
        thread, register = grid(r, "thread")[..., 0], grid(r, "register")[..., 0]
        cell = np.char.add(np.char.add(np.char.add("T", thread.astype(str)), "r"), register.astype(str))
        key = f"T = {word('thread', lang)}, r = {word('register', lang)}"
    rows, columns = cell.shape
    cell = cell[:_TALL, :_WIDE]
    width = max(len(c) for c in cell.flat)
    more = f" [{_TALL}×{_WIDE} / {rows}×{columns}]" if (rows > _TALL or columns > _WIDE) else ""
    head = "     " + " ".join(f"{j:<{width}}" for j in range(cell.shape[1]))
    return [key + more, head.rstrip(), *(f"{i:>4} {' '.join(f'{c:<{width}}' for c in line)}".rstrip() for i, line in enumerate(cell))]


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return thread → what it holds, or row of the tile → the addresses and banks of its 16-byte pieces."""
    r = selected(view)
    lang = view.lang
    if r["layout"] != "shared":
        return [word("thread", lang), word("warp", lang), word("lane", lang), word("elements", lang)], list(
            islice(_by_thread(r, lang), rows)
        )
    return [_down(r), word("address", lang), word("bank", lang)], list(islice(_by_row(r), rows))


def _down(r: Record) -> str:
    return r["params"][r["axes"][0]] if len(r["shape"]) > 1 else ""


def _by_thread(r: Record, lang: str) -> Any:
    thread, register = r["arrays"]["thread"], r["arrays"]["register"]
    copies = thread.shape[-1]
    flat, order = thread.reshape(-1), np.lexsort((register.reshape(-1), thread.reshape(-1)))
    starts = np.searchsorted(flat[order], np.arange(r["threads"] + 1))
    for t in range(r["threads"]):
        held = order[starts[t] : starts[t + 1]] // copies
        yield [str(t), str(t // 32), str(t % 32), _runs(held, r["shape"], lang)]


def _runs(numbers: NDArray[Any], shape: list[int], lang: str, most: int = 6) -> str:
    """Elements in order, neighbours along the last axis joined: ``(0, 0–1) (8, 0–1)``."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-9) - 1 | (numbers % shape[-1] == 0)) if len(numbers) else numbers
    ends = [*starts[1:], len(numbers)]
    out: list[str] = []
    for start, end in islice(zip(starts, ends, strict=False), most):
        first = [str(int(c)) for c in np.unravel_index(int(numbers[start]), shape)]
        if end - start > 1:
            first[-1] += f"–{int(numbers[end - 1]) % shape[-1]}"
        out.append(f"({', '.join(first)})")
    rest = len(numbers) - int(ends[min(most, len(starts)) - 1]) if len(numbers) else 0
    return " ".join(out) + (f" … {word('more', lang, count=rest)}" if rest else "")


def _by_row(r: Record) -> Any:
    address, bank = grid(r, "address"), grid(r, "bank")
    step = max(1, 128 // max(1, r["bits"]))
    for i in range(address.shape[0]):
        yield [str(i), " ".join(map(str, address[i, ::step][:16])), " ".join(map(str, bank[i, ::step][:16]))]


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure with the tile: owners of a fragment, or banks before and after."""
    figure_module, colours = import_module("matplotlib.figure"), import_module("matplotlib.colors")
    r = selected(view)
    panels = layout_svg.panels(r, view.lang)
    figure = figure_module.Figure(figsize=(5.2 * len(panels), 5.4), layout="constrained")
    figure.suptitle(f"{r['name']}: {headline(r, view.lang)}", fontsize=10)
    for k, panel in enumerate(panels):
        axes = figure.add_subplot(1, len(panels), k + 1)
        palette = colours.ListedColormap(panel.colours)
        axes.imshow(panel.cells, cmap=palette, vmin=-0.5, vmax=len(panel.colours) - 0.5, interpolation="nearest")
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlabel(panel.across)
        axes.set_ylabel(panel.down)
        if panel.labels is not None:
            for (i, j), label in np.ndenumerate(panel.labels):
                axes.text(j, i, label, ha="center", va="center", fontsize=6, color=panel.ink[i][j])
    return figure

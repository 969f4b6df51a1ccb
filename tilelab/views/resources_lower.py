"""Lowerings of the resources view to text, tables, SVG and matplotlib; the live one is ``visualizers/resources``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from tilelab.views import palette, resources_svg
from tilelab.views.resources_svg import amount, change, headline, held_text, notes, point_text
from tilelab.views.view import View
from tilelab.views.words import word

Record = Mapping[str, Any]


def svg(view: View) -> str:
    """Return the picture for the selected GPU."""
    return resources_svg.draw(view.data, view.lang)


def selected(view: View) -> Record:
    """Return the GPU shown first."""
    g: Record = view.data["gpus"][view.data["selected"]]
    return g


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the budget with bars of characters, the occupancy, the roofline's points, and where the kernel runs."""
    g, lang = selected(view), view.lang
    lines = [f"{view.data['kernel']}: {headline(view.data, lang)}", f"  {word('source_of', lang, source=g['source'])}"]
    lines += [f"  {f['code']}: {f['message']} {f['fix']}" for f in g["findings"]]
    for k in g["kernels"]:
        lines += ["", f"{k['name']}: {word('budget_title', lang)}"]
        lines += [_use(u, lang) for u in k["uses"]]
        lines.append(f"{word('occupancy', lang)}: {held_text(k, lang)}")
        lines += [f"  {word('allows', lang, name=word(x['key'], lang), count=x['blocks'])}" for x in k["limits"]]
        lines += [f"  {note}" for note in notes(k, lang)]
    lines += ["", f"{word('roofline', lang)}: {_roofs(view.data, g, lang)}"]
    lines += [f"  {point_text(p, g['roofline'], lang)}" for p in (g["roofline"] or {"points": ()})["points"]]
    if view.data["matrix_share"] is not None:
        lines.append(_share(view.data, lang))
    lines += ["", word("runs_title", lang)]
    for o in view.data["gpus"]:
        verdict = word("runs", lang) if o["runs"] else f"{word('runs_not', lang)}: {change(o, lang)}"
        lines.append(f"  {o['name']:<10} {o['target']:<8} {verdict}")
    return "\n".join(lines) + "\n"


def _share(data: Record, lang: str) -> str:
    percent = f"{100 * data['matrix_share']:.3g}"
    return f"  {word('tensor_cores', lang, percent=percent)}"


def _use(u: Record, lang: str) -> str:
    limit = amount(u["limit"], u["unit"], lang) if u["limit"] else word("no_limit", lang)
    filled = min(20, round(20 * u["used"] / u["limit"])) if u["used"] and u["limit"] else 0
    return f"  {'█' * filled}{'░' * (20 - filled)} {word(u['key'], lang)}: {amount(u['used'], u['unit'], lang)} / {limit}"


def _roofs(data: Record, g: Record, lang: str) -> str:
    r = g["roofline"]
    if r is None:
        return word("no_dtype", lang, gpu=g["name"], dtype=data["dtype"]) if data["flops"] else word("no_roofline", lang)
    return f"{resources_svg.short(r['peak'], 'FLOP/s')} {r['dtype']}, {resources_svg.short(r['bandwidth'], 'B/s')}"


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return one row for each GPU and kernel."""
    lang = view.lang
    keys = [u["key"] for u in selected(view)["kernels"][0]["uses"]] if selected(view)["kernels"] else []
    header = [word("gpu", lang), word("kernel", lang), word("runs_title", lang), word("change", lang), *(word(k, lang) for k in keys)]
    return [*header, word("occupancy", lang)], list(islice(_rows(view.data, keys, lang), rows))


def _rows(data: Record, keys: list[str], lang: str) -> Any:
    for g in data["gpus"]:
        for k in g["kernels"]:
            uses = {u["key"]: u for u in k["uses"]}
            cells = [f"{amount(u['used'], u['unit'], lang)} / {amount(u['limit'], u['unit'], lang) if u['limit'] else '–'}" if u else "–"
                     for u in (uses.get(key) for key in keys)]  # fmt: skip
            verdict = word("runs" if g["runs"] else "runs_not", lang)
            yield [g["name"], k["name"], verdict, change(g, lang), *cells, f"{100 * k['occupancy']:.3g}%"]


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure with the budget as bars and the roofline."""
    figure_module = import_module("matplotlib.figure")
    g, lang = selected(view), view.lang
    figure = figure_module.Figure(figsize=(11, 4.4), layout="constrained")
    figure.suptitle(f"{view.data['kernel']}: {headline(view.data, lang)}", fontsize=10)
    bars, roofs = figure.subplots(1, 2)
    uses = [u for k in g["kernels"] for u in k["uses"] if u["used"] and u["limit"]]
    bars.barh([word(u["key"], lang) for u in uses], [100 * u["used"] / u["limit"] for u in uses], color=palette.ramp()[12])
    bars.axvline(100, color="#b3261e")
    bars.set_xlabel(f"% {word('limit', lang)}")
    bars.invert_yaxis()
    r = g["roofline"]
    if r is not None:
        roofs.loglog([0.1, r["ridge"], 1e4], [0.1 * r["bandwidth"], r["peak"], r["peak"]], color="#566270")
        for k, p in enumerate(r["points"]):
            roofs.loglog([p["intensity"]], [p["rate"]], "o", color=palette.warp_ramps()[(0, 2, 5)[k % 3]][24], label=word(p["key"], lang))
        roofs.legend(fontsize=8)
    roofs.set_xlabel(word("intensity", lang))
    roofs.set_ylabel(word("rate", lang))
    return figure

"""Lowerings of the pipeline view to text, tables, SVG and matplotlib; the live one is ``visualizers/pipeline``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from tilelab.views import palette, pipeline_svg
from tilelab.views.pipeline_svg import headline, lane_text, loop_text, memory_line, rows, size, version_rows
from tilelab.views.view import View
from tilelab.views.words import word

Record = Mapping[str, Any]


def svg(view: View) -> str:
    """Return the picture of the selected loop."""
    return pipeline_svg.draw(view.data, view.lang)


def selected(view: View) -> Record:
    """Return the loop shown first."""
    loop: Record = view.data["loops"][view.data["selected"]]
    return loop


# ----------------------------------------------------------------------------------------------------- text
def text(view: View) -> str:
    """Return the schedule as a grid of iterations, the versions below it, and a line for each other depth."""
    loop, lang = selected(view), view.lang
    plan = loop["plans"][0]
    lines = [f"{view.data['kernel']}: {loop_text(loop, plan)}  {headline(loop, plan, lang)}", memory_line(view.data, plan, lang)]
    lines += [f"{f['code']}: {f['message']} {f['fix']}" for f in plan["findings"]]
    lines += ["", *_grid(plan, lang)]
    if plan["buffers"]:
        lines += ["", f"{word('versions_title', lang)} (~ {word('filling', lang)})", *_held(plan)]
    if len(loop["plans"]) > 1:
        lines += ["", f"{word('compare_title', lang)}: {word('compare_hint', lang)}"]
        for p in loop["plans"][1:]:
            fits = word("it_fits" if p["fits"] else "too_big", lang)
            depth = word("stages_of", lang, count=p["num_stages"])
            lines.append(f"  {depth}: {word('overlap', lang)} {p['overlap']}, {size(p['kernel_bytes'])}, {fits}")
    others = [o for o in view.data["loops"] if o is not loop]
    lines += [f"{o['name']}: {headline(o, o['plans'][0], lang)}" for o in others]
    return "\n".join(line for k, line in enumerate(lines) if line or k != 1) + "\n"


def _grid(plan: Record, lang: str) -> list[str]:
    order = rows(plan)
    names = [f"{lane_text(plan['lanes'][plan['statements'][k]['lane']], lang)}  {plan['statements'][k]['text']}" for k in order]
    wide = max([len(n) for n in names], default=0)
    cell = max(2, len(str(plan["steps"])))
    at = {(c["statement"], c["step"]): str(c["iteration"]) for c in plan["cells"]}
    phase = {p["first"]: p["key"] for p in plan["phases"] if p["end"] > p["first"]}
    band = ", ".join(f"{word(key, lang)} {first}…" for first, key in phase.items())
    head = f"{word('step', lang):<{wide}}  " + " ".join(f"{k:>{cell}}" for k in range(plan["steps"]))
    body = [
        f"{name:<{wide}}  " + " ".join(f"{at.get((k, s), '·'):>{cell}}" for s in range(plan["steps"]))
        for k, name in zip(order, names, strict=True)
    ]
    return [band, head, *body]


def _held(plan: Record) -> list[str]:
    pairs = version_rows(plan)
    names = [f"{plan['buffers'][b]['name']}[{v}] {size(plan['buffers'][b]['bytes'])}" for b, v in pairs]
    wide, cell = max(len(n) for n in names), max(3, len(str(plan["steps"])) + 1)
    at: dict[tuple[int, int, int], str] = {}
    for h in plan["held"]:
        for step in range(h["written"], h["last"] + 1):
            at[h["buffer"], h["version"], step] = f"{'~' if step < h['read'] else ''}{h['iteration']}"
    return [
        f"{n:<{wide}}  " + " ".join(f"{at.get((b, v, s), '·'):>{cell}}" for s in range(plan["steps"]))
        for n, (b, v) in zip(names, pairs, strict=True)
    ]


# ---------------------------------------------------------------------------------------------------- table
def table(view: View, rows: int) -> tuple[list[str], list[list[str]]]:
    """Return one row for each statement of each step."""
    plan, lang = selected(view)["plans"][0], view.lang
    header = [word(k, lang) for k in ("step", "phase", "lane", "statement", "iteration", "line")]
    return header, list(islice(_rows(plan, lang), rows))


def _rows(plan: Record, lang: str) -> Any:
    for c in plan["cells"]:
        s = plan["statements"][c["statement"]]
        phase = next((word(p["key"], lang) for p in plan["phases"] if p["first"] <= c["step"] < p["end"]), "")
        yield [str(c["step"]), phase, lane_text(plan["lanes"][s["lane"]], lang), s["text"], str(c["iteration"]), str(s["line"] or "")]


# ----------------------------------------------------------------------------------------------- matplotlib
def matplotlib(view: View) -> Any:
    """Return a figure with the grid of steps and the versions below it."""
    figure_module = import_module("matplotlib.figure")
    loop, lang = selected(view), view.lang
    plan = loop["plans"][0]
    order, pairs = rows(plan), version_rows(plan)
    wide, tall = max(6.0, 0.42 * plan["steps"] + 3), 1.6 + 0.32 * (len(order) + len(pairs))
    figure = figure_module.Figure(figsize=(wide, tall), layout="constrained")
    figure.suptitle(f"{loop['name']}: {headline(loop, plan, lang)}", fontsize=10)
    heights = [len(order), len(pairs)] if pairs else [1]
    axes = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    cells = [(order.index(c["statement"]), c["step"], c["iteration"], True) for c in plan["cells"]]
    _bars(axes[0], cells, [plan["statements"][k]["text"] for k in order], word("steps_title", lang))
    if pairs:
        held = [(pairs.index((h["buffer"], h["version"])), step, h["iteration"], step >= h["read"])
                for h in plan["held"] for step in range(h["written"], h["last"] + 1)]  # fmt: skip
        _bars(axes[1], held, [f"{plan['buffers'][b]['name']}[{v}]" for b, v in pairs], word("versions_title", lang))
    axes[-1].set_xlabel(word("step", lang))
    return figure


def _bars(axes: Any, cells: list[tuple[int, int, int, bool]], names: list[str], title: str) -> None:
    for row, step, iteration, deep in cells:
        fill = pipeline_svg.colour(iteration, deep)
        axes.barh(row, 0.94, left=step - 0.47, height=0.86, color=fill)
        axes.text(step, row, str(iteration), ha="center", va="center", fontsize=8, color=palette.ink_on(fill))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=10)

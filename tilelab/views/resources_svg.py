"""The still picture of a kernel's resources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tilelab.views import palette
from tilelab.views.svg import Svg
from tilelab.views.words import word

Record = Mapping[str, Any]
_LEFT, _TOP = 24.0, 34.0
_BAR = 190.0
_PLOT = (360.0, 230.0)
_HIGHEST, _LOWEST = 1e4, 0.1  # FLOP per byte, the ends of the axis


def amount(n: float | None, unit: str, lang: str = "en") -> str:
    """Return a quantity as people write it."""
    if n is None:
        return word("unknown", lang)
    if unit == "bytes":
        return f"{n:,.0f} B" if n < 1024 else f"{n / 1024:,.4g} KiB"
    return f"{n:,.0f}"


def short(n: float, unit: str) -> str:
    """Return ``n`` with an SI prefix: ``312 TFLOP/s``."""
    for scale, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if n >= scale:
            return f"{n / scale:.3g} {prefix}{unit}"
    return f"{n:.3g} {unit}"


def duration(s: float) -> str:
    """Return a time: ``12.3 µs``."""
    if s < 1e-6:
        return f"{s * 1e9:.3g} ns"
    return f"{s * 1e6:.3g} µs" if s < 1e-3 else f"{s * 1e3:.3g} ms" if s < 1 else f"{s:.3g} s"


def headline(data: Record, lang: str) -> str:
    """Return what is shown, in one line."""
    g = data["gpus"][data["selected"]]
    how = word("lowered_for", lang, target=data["target"]) if data["lowered"] else data["target"]
    return f"{g['name']} ({g['target']}) · {how} · {word('runs' if g['runs'] else 'runs_not', lang)}"


def held_text(k: Record, lang: str) -> str:
    """Return the occupancy of a kernel in words."""
    if not k["blocks"]:
        return word("cannot_run", lang)
    percent = f"{100 * k['occupancy']:.3g}"
    text = word("occupancy_of", lang, blocks=k["blocks"], warps=k["warps"], most=k["warps_most"], percent=percent)
    names = ", ".join(word(x["key"], lang) for x in k["limits"] if x["binds"])
    return f"{text} · {word('bound_by', lang, names=names)}"


def notes(k: Record, lang: str) -> list[str]:
    """Return what else is to be said of a kernel's occupancy."""
    out = [] if k["registers_known"] else [word("registers_unknown", lang)]
    if k["waves"]:
        out.append(word("waves", lang, blocks=f"{k['grid']:,}", waves=f"{k['waves']:.3g}"))
    return out


def point_text(p: Record, r: Record, lang: str) -> str:
    """Return a point of the roofline in words."""
    text = f"{word(p['key'], lang)}: {p['intensity']:.3g} {word('intensity', lang)}, {short(p['rate'], 'FLOP/s')}"
    if p["key"] == "point_measured":
        least = next((q["seconds"] for q in r["points"] if q["key"] == "point_least"), 0.0)
        percent = f"{100 * least / p['seconds']:.3g}" if p["seconds"] else "0"
        more = word("time_measured", lang, time=duration(p["seconds"]), percent=percent)
        return f"{text}, {more}" + (f" ({p['label']})" if p["label"] else "")
    return f"{text}, {word('time_least', lang, time=duration(p['seconds']))}, {word(p['bound'], lang)}"


def draw(data: Record, lang: str) -> str:
    """Return the SVG for the selected GPU."""
    g = data["gpus"][data["selected"]]
    out = Svg(f"{data['kernel']}: {headline(data, lang)}", "; ".join(_description(g, lang)))
    out.heading(_LEFT, _TOP, data["kernel"], headline(data, lang), "head mono", "soft")
    out.text(_LEFT, _TOP + 18, word("source_of", lang, source=g["source"]), "soft tiny")
    y = _TOP + 34
    for f in g["findings"]:
        out.text(_LEFT, y, f"{f['code']}  {f['message'][:140]}", "bad tiny")
        y += 15
    top, y = y + 14, y + 14
    for k in g["kernels"]:
        y = _kernel(out, k, y, len(g["kernels"]) > 1, lang) + 22
    right = _LEFT + 520
    low = _roofline(out, data, g, right, top, lang)
    _matrix(out, data, _LEFT, max(y, low) + 16, lang)
    return out.finish()


def _description(g: Record, lang: str) -> Iterator[str]:
    for k in g["kernels"]:
        for u in k["uses"]:
            limit = amount(u["limit"], u["unit"], lang) if u["limit"] else "–"
            yield f"{word(u['key'], lang)}: {amount(u['used'], u['unit'], lang)} / {limit}"
        yield held_text(k, lang)


def _kernel(out: Svg, k: Record, y: float, named: bool, lang: str) -> float:
    out.heading(_LEFT, y, k["name"] if named else word("budget_title", lang), word("budget_hint", lang))
    y += 10
    for u in k["uses"]:
        y += 22
        out.text(_LEFT, y, word(u["key"], lang), "tiny")
        x = _LEFT + 150
        out.rect(x, y - 10, _BAR, 13, cls="track", radius=3)
        if u["used"] and u["limit"]:
            part = min(1.0, u["used"] / u["limit"])
            out.rect(x, y - 10, max(2.0, _BAR * part), 13, cls="mark-bad" if u["used"] > u["limit"] else "wrote", radius=3)
        limit = amount(u["limit"], u["unit"], lang) if u["limit"] else word("no_limit", lang)
        out.text(x + _BAR + 10, y, f"{amount(u['used'], u['unit'], lang)} / {limit}", "mono tiny")
    y += 40
    out.heading(_LEFT, y, word("occupancy", lang), held_text(k, lang))
    y += 10
    across = 16
    for slot in range(k["warps_most"]):
        x, row = _LEFT + slot % across * 16, y + slot // across * 16
        block = slot // max(1, k["warps_of_block"])
        if slot < k["warps"]:
            out.rect(x, row, 14, 14, fill=palette.warp_ramps()[block % 8][14], radius=2.5)
        else:
            out.rect(x, row, 14, 14, cls="track", radius=2.5)
    column, row = _LEFT + across * 16 + 16, y + 10
    for x in k["limits"]:
        out.text(column, row, word("allows", lang, name=word(x["key"], lang), count=x["blocks"]), "tiny bad" if x["binds"] else "tiny soft")
        row += 15
    for note in notes(k, lang):
        out.text(column, row, note, "tiny soft")
        row += 15
    return float(max(row, y + -(-k["warps_most"] // across) * 16 + 12))


# --------------------------------------------------------------------------------------------------- roofline
def _roofline(out: Svg, data: Record, g: Record, x: float, y: float, lang: str) -> float:
    r = g["roofline"]
    out.heading(x, y, word("roofline", lang), word("roofline_hint", lang))
    if r is None:
        why = word("no_dtype", lang, gpu=g["name"], dtype=data["dtype"]) if data["flops"] else word("no_roofline", lang)
        out.text(x, y + 24, why, "soft tiny")
        return y + 30
    w, h = _PLOT
    left, low = x + 40, y + 18 + h
    floor = r["bandwidth"] * _LOWEST

    def across(intensity: float) -> float:
        return left + w * math.log(min(_HIGHEST, max(_LOWEST, intensity)) / _LOWEST) / math.log(_HIGHEST / _LOWEST)

    def up(rate: float) -> float:
        return low - h * math.log(max(1.0, rate / floor)) / math.log(r["peak"] * 1.6 / floor)

    for power in range(-1, 5):
        out.line(across(10.0**power), low, across(10.0**power), low - h)
        out.text(across(10.0**power), low + 13, f"{10.0**power:g}", "soft tiny mid mono")
    out.line(left, low, left + w, low)
    out.path(f"M{left:.1f} {up(floor):.1f}L{across(r['ridge']):.1f} {up(r['peak']):.1f}L{left + w:.1f} {up(r['peak']):.1f}", "mark")
    out.text(across(r["ridge"]) + 4, up(r["peak"]) - 6, f"{short(r['peak'], 'FLOP/s')} {r['dtype']}", "tiny")
    out.text(left + 48, up(floor) - 8, short(r["bandwidth"], "B/s"), "tiny")
    out.text(left + w, low + 27, word("intensity", lang), "soft tiny end")
    y = low + 46
    for k, p in enumerate(r["points"]):
        colour = palette.warp_ramps()[(0, 2, 5)[k % 3]][24]
        out.rect(across(p["intensity"]) - 4.5, up(p["rate"]) - 4.5, 9, 9, fill=colour, radius=4.5)
        out.rect(left - 30, y - 8, 9, 9, fill=colour, radius=4.5)
        out.text(left - 14, y, point_text(p, r, lang), "tiny")
        out.reach(left - 14 + 5.6 * len(point_text(p, r, lang)), y)
        y += 16
    if data["matrix_share"] is not None:
        out.text(left - 14, y, word("tensor_cores", lang, percent=f"{100 * data['matrix_share']:.3g}"), "tiny soft")
        y += 16
    out.reach(left + w + 60, y)
    return y


def _matrix(out: Svg, data: Record, x: float, y: float, lang: str) -> None:
    out.heading(x, y, word("runs_title", lang), word("runs_hint", lang))
    for k, g in enumerate(data["gpus"]):
        row = y + 22 + k * 18
        if k == data["selected"]:
            out.rect(x - 6, row - 13, 720, 17, cls="here", radius=3)
        out.text(x, row, f"{g['name']}", "tiny")
        out.text(x + 90, row, g["target"], "mono tiny soft")
        out.text(
            x + 160,
            row,
            ("✓ " if g["runs"] else "✗ ") + word("runs" if g["runs"] else "runs_not", lang),
            "tiny good" if g["runs"] else "tiny bad",
        )
        held = max((n["occupancy"] for n in g["kernels"]), default=0.0)
        out.text(
            x + 260,
            row,
            f"{word('occupancy', lang)} {100 * held:.3g}%" if g["runs"] else change(g, lang),
            "tiny soft" if g["runs"] else "mono tiny",
        )


def change(g: Record, lang: str) -> str:
    """Return the smallest change after which a kernel runs on a GPU, and whether it was tried."""
    text = g["change"] if len(g["change"]) < 100 else g["change"][:99] + "…"
    return f"{text} ({word('tried', lang)})" if g["tried"] else text

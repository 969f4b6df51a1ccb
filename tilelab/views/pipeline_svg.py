"""The still picture of a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilelab.views import palette
from tilelab.views.svg import Svg
from tilelab.views.words import word

Record = Mapping[str, Any]
_LEFT, _TOP = 24.0, 34.0
_ROW, _WIDEST = 24.0, 38.0


def colour(iteration: int, deep: bool = True) -> str:
    """Return the colour of an iteration: one of eight hues, pale where a version is only being filled."""
    return palette.warp_ramps()[iteration % 8][14 if deep else 1]


def size(n: int) -> str:
    """Return bytes as people write them."""
    return f"{n} B" if n < 1024 else f"{n / 1024:.4g} KiB"


def lane_text(lane: str, lang: str) -> str:
    """Return a lane in words: what it does, and its threads where it is a role."""
    key, _, threads = lane.partition(" ")
    return f"{word(f'lane_{key}', lang)} {threads}".rstrip()


def loop_text(loop: Record, plan: Record) -> str:
    """Return the loop as it is written."""
    return f"for {loop['name']} in {'T.serial' if plan['basis'] == 'hand-roles' else 'T.Pipelined'}"


def rows(plan: Record) -> list[int]:
    """Return the statements in the order of the picture: lane by lane, within a lane as in the source."""
    return sorted(range(len(plan["statements"])), key=lambda k: (plan["statements"][k]["lane"], k))


def version_rows(plan: Record) -> list[tuple[int, int]]:
    """Return (buffer, version) in the order of the picture."""
    return [(k, v) for k, b in enumerate(plan["buffers"]) for v in range(b["versions"])]


def headline(loop: Record, plan: Record, lang: str) -> str:
    """Return what this loop does, in one line."""
    count, ahead = loop["iterations"], plan["overlap"]
    parts = [word("iterations_of", lang, count=count) if count else word("iterations_unknown", lang)]
    if plan["num_stages"] and plan["basis"] != "hand-roles":
        parts.append(word("stages_of", lang, count=plan["num_stages"]))
    parts.append(word(f"basis_{plan['basis']}", lang))
    parts.append(word("ahead", lang, count=ahead) if ahead > 1 else word("ahead_one" if ahead else "ahead_none", lang))
    if count > plan["shown"] or not count:
        parts.append(word("iterations_shown", lang, count=plan["shown"]))
    return " · ".join(parts)


def memory_line(data: Record, plan: Record, lang: str) -> str:
    """Return the shared memory of the kernel against the limit, or nothing where nothing is known."""
    if not plan["kernel_bytes"]:
        return ""
    text = f"{word('smem_kernel', lang)}: {size(plan['kernel_bytes'])}"
    if data["limit_bytes"]:
        fits = word("it_fits" if plan["fits"] else "too_big", lang)
        text += f" · {word('limit_of', lang, gpu=data['gpu'])}: {size(data['limit_bytes'])} · {fits}"
    return text


def draw(data: Record, lang: str) -> str:
    """Return the SVG of the selected loop."""
    loop = data["loops"][data["selected"]]
    plan = loop["plans"][0]
    out = Svg(f"{data['kernel']}, {loop['name']}: {headline(loop, plan, lang)}", "; ".join(_description(plan, lang)))
    out.heading(_LEFT, _TOP, loop_text(loop, plan), headline(loop, plan, lang), "head mono", "soft")
    y = _TOP + 20
    line = memory_line(data, plan, lang)
    if line:
        out.text(_LEFT, y, line, "soft tiny" if plan["fits"] else "bad tiny")
        y += 16
    for f in plan["findings"]:
        out.text(_LEFT, y + 2, f"{f['code']}  {f['message'][:150]}", "bad")
        y += 17
    w = min(_WIDEST, max(12.0, 760 / max(1, plan["steps"])))
    y = _steps(out, plan, y + 14, w, lang)
    y = _versions(out, plan, y + 34, w, lang) if plan["buffers"] else y
    if len(loop["plans"]) > 1:
        _compare(out, loop["plans"][1:], y + 36, lang)
    return out.finish()


def _description(plan: Record, lang: str) -> Iterator[str]:
    for k in rows(plan):
        runs = ", ".join(f"{c['step']}: {c['iteration']}" for c in plan["cells"] if c["statement"] == k)
        yield f"{plan['statements'][k]['text']} ({word('step', lang)}: {word('iteration', lang)}) {runs}"


def _names(plan: Record) -> float:
    """Pixels for the names of lanes and statements."""
    return 270 if plan["basis"] == "hand-roles" else 196


def _steps(out: Svg, plan: Record, y: float, w: float, lang: str) -> float:
    out.heading(_LEFT, y, word("steps_title", lang), word("steps_hint", lang))
    x, top = _LEFT + _names(plan), y + 38
    order = rows(plan)
    _phases(out, plan, x, top, w, len(order) * _ROW, lang)
    lane = -1
    for at, k in enumerate(order):
        s, row = plan["statements"][k], top + at * _ROW
        if s["lane"] != lane:
            lane = s["lane"]
            out.text(_LEFT, row + 15, lane_text(plan["lanes"][lane], lang), "soft tiny")
            if at:
                out.line(_LEFT, row - 1, x + plan["steps"] * w, row - 1)
        out.text(x - 10, row + 15, _short(s["text"], 22), "mono tiny end")
        for c in plan["cells"]:
            if c["statement"] == k:
                _cell(out, x + c["step"] * w, row, w, c["iteration"], True)
    return top + len(order) * _ROW


def _phases(out: Svg, plan: Record, x: float, y: float, w: float, high: float, lang: str) -> None:
    for k, p in enumerate(plan["phases"]):
        if p["end"] > p["first"]:
            left, wide = x + p["first"] * w, (p["end"] - p["first"]) * w
            if k == 1:
                out.rect(left - 1, y - 32, wide, high + 36, cls="track", radius=5)
            text = word(p["key"], lang)
            out.text(left + wide / 2, y - 20, text if len(text) * 6.2 < wide else text[: max(1, int(wide / 7))] + "…", "soft tiny mid")
    for step in range(plan["steps"]):
        out.text(x + step * w + w / 2, y - 6, str(step), "soft tiny mid mono")


def _cell(out: Svg, x: float, y: float, w: float, iteration: int, deep: bool) -> None:
    fill = colour(iteration, deep)
    out.rect(x, y + 1, w - 2, _ROW - 3, fill=fill, radius=3)
    if w >= 14:
        out.text(x + (w - 2) / 2, y + 15.5, str(iteration), "mono tiny mid", palette.ink_on(fill))


def _versions(out: Svg, plan: Record, y: float, w: float, lang: str) -> float:
    out.heading(_LEFT, y, word("versions_title", lang), word("versions_hint", lang))
    x, top = _LEFT + _names(plan), y + 14
    at = {pair: k for k, pair in enumerate(version_rows(plan))}
    for (b, v), k in at.items():
        buffer, row = plan["buffers"][b], top + k * _ROW
        out.text(x - 10, row + 15, f"{buffer['name']}[{v}]  {size(buffer['bytes'])}", "mono tiny end")
        if v == 0 and k:
            out.line(_LEFT, row - 1, x + plan["steps"] * w, row - 1)
    for h in plan["held"]:
        row = top + at[h["buffer"], h["version"]] * _ROW
        for step in range(h["written"], h["last"] + 1):
            _cell(out, x + step * w, row, w, h["iteration"], step >= h["read"])
    low = top + len(at) * _ROW + 34
    most = max(plan["alive"], default=0)
    out.text(x - 10, low - 4, f"{word('alive', lang)}, ≤ {size(most)}", "soft tiny end")
    for step, n in enumerate(plan["alive"]):
        tall = 24 * n / most if most else 0
        out.rect(x + step * w, low - tall, w - 2, max(tall, 0.5), fill=palette.ramp()[12], radius=1)
    return low


def _compare(out: Svg, plans: list[Record], y: float, lang: str) -> None:
    """Draw the other depths side by side: a small picture each, and what it costs."""
    out.heading(_LEFT, y, word("compare_title", lang), word("compare_hint", lang))
    x = _LEFT
    for plan in plans:
        order, top = rows(plan), y + 68
        cell = 10.0
        out.text(x, y + 22, word("stages_of", lang, count=plan["num_stages"]), "mono")
        out.text(x, y + 38, f"{word('overlap', lang)}: {plan['overlap']}", "soft tiny")
        out.text(x, y + 53, f"{size(plan['kernel_bytes'])} · {word('it_fits' if plan['fits'] else 'too_big', lang)}",
                 f"tiny {'good' if plan['fits'] else 'bad'}")  # fmt: skip
        for c in plan["cells"]:
            row = top + order.index(c["statement"]) * cell
            out.rect(x + c["step"] * cell, row, cell - 1, cell - 1, fill=colour(c["iteration"]), radius=1.5)
        x += max(plan["steps"] * cell, 118) + 26


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

"""The still picture of a layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.layout import shape_text
from tilelab.views import palette
from tilelab.views.svg import Svg
from tilelab.views.words import word

Record = Mapping[str, Any]
_LEFT, _TOP = 24.0, 34.0
_BOXES = 512  # more cells than this are drawn as an image


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A coloured grid: indices into ``colours``, and a label on each cell where there is room."""

    title: str
    hint: str
    down: str
    across: str
    cells: NDArray[Any]
    colours: tuple[str, ...]
    labels: NDArray[Any] | None
    ink: list[list[str]]
    mark: NDArray[Any] | None = None
    origin: str = ""


def draw(r: Record, lang: str) -> str:
    """Return the SVG of one layout record."""
    out = Svg(
        f"{r['name']}: {headline(r, lang)}",
        "; ".join([*(f"{n} = {f}" for n, f in r["formula"]), *(fact_text(f, lang) for f in r["facts"])]),
    )
    out.heading(_LEFT, _TOP, r["name"], headline(r, lang), "head mono", "soft")
    y = _TOP + 21
    for name, formula in r["formula"]:
        out.text(_LEFT, y, word(name, lang), "soft tiny")
        out.text(_LEFT + 60, y, _short(formula, 108), "mono tiny")
        y += 15
    for f in r["findings"]:
        out.text(_LEFT, y + 2, f"{f['code']}  {_short(f['message'], 120)}", "bad")
        y += 17
    y += 12
    (_shared if r["layout"] == "shared" else _owned)(out, r, y, lang)
    return out.finish()


def headline(r: Record, lang: str) -> str:
    """Return what this layout is, in one line."""
    parts = [f"{r['dtype']} {word(r['layout'], lang)}".strip(), shape_text(r["shape"])]
    if r["layout"] != "shared":
        parts.append(f"{r['threads']} {word('threads', lang)} × {r['registers']} {word('registers', lang)}")
    return " · ".join([*parts, *(fact_text(f, lang) for f in r["facts"])])


def fact_text(fact: Mapping[str, Any], lang: str) -> str:
    """Return a fact in words."""
    return word(fact["key"], lang, **fact["fill"])


def grid(r: Record, name: str) -> NDArray[Any]:
    """Return one array as the rows and columns to show, cut at ``r["at"]``; replicas stay as the last axis."""
    a, rank = np.asarray(r["arrays"][name]), len(r["shape"])
    if rank == 0:
        return a.reshape(1, 1, *a.shape)
    if rank == 1:
        return a.reshape(1, *a.shape) if r["shape"][0] <= 64 or r["shape"][0] % 32 else a.reshape(-1, 32, *a.shape[1:])
    down, across = r["axes"]
    cut = a[tuple(slice(None) if k in (down, across) else r["at"][k] for k in range(rank))]
    return cut if down < across else np.swapaxes(cut, 0, 1)


def panels(r: Record, lang: str) -> list[Panel]:
    """Return the grids of this layout: its tile by owner, or by bank before and after."""
    if r["layout"] == "shared":
        return [_bank_panel(r, lang, "before", "bank_before"), _bank_panel(r, lang, "after", "bank")]
    thread, register = grid(r, "thread")[..., 0], grid(r, "register")[..., 0]
    colours = tuple(c for ramp in palette.warp_ramps() for c in ramp)
    labels = np.char.add(np.char.add("T", thread.astype(str)), np.char.add("·r", register.astype(str)))
    return [_panel(r, word("tile", lang), word("tile_hint", lang), thread % 256, colours, labels, thread == 0)]


def _bank_panel(r: Record, lang: str, title: str, name: str) -> Panel:
    bank = grid(r, name)
    mark = np.zeros(bank.shape, dtype=bool)
    mark[:32, 0] = bank.shape[0] >= 32
    return _panel(r, word(title, lang), word("bank_hint", lang), bank, palette.ramp(), bank.astype(str), mark)


def _panel(
    r: Record, title: str, hint: str, cells: NDArray[Any], colours: tuple[str, ...], labels: NDArray[Any], mark: NDArray[Any]
) -> Panel:
    names = r["params"]
    down, across = (names[r["axes"][0]], names[r["axes"][1]]) if len(names) > 1 else ("", names[0] if names else "")
    fixed = ", ".join(f"{names[k]} = {r['at'][k]}" for k in range(len(names)) if k not in r["axes"])
    small = cells.size <= _BOXES and cells.shape[1] <= 32
    ink = [[palette.ink_on(colours[c]) for c in row] for row in cells] if small else []
    return Panel(title=title, hint=f"{hint}; {fixed}" if fixed else hint, down=down, across=across, cells=cells, colours=colours,
                 labels=labels if small else None, ink=ink, mark=mark)  # fmt: skip


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# ---------------------------------------------------------------------------------------------------- parts
def _grid(out: Svg, panel: Panel, x: float, y: float, most: float) -> tuple[float, float]:
    """Draw a panel with its title and axes; return its cell size."""
    rows, columns = panel.cells.shape
    out.heading(x, y, panel.title, panel.hint)
    y += 26
    if panel.labels is not None:
        w = min(46.0, max(30.0, most / columns))
        narrow = max(len(str(t)) for t in panel.labels.flat) * 6.3 > w - 3  # then thread and register have a line each
        h = 32.0 if narrow else 24.0
        for i in range(rows):
            for j in range(columns):
                out.rect(x + 22 + j * w, y + i * h, w - 1.5, h - 1.5, fill=panel.colours[panel.cells[i, j]], radius=3)
                lines = str(panel.labels[i, j]).split("·") if narrow else [str(panel.labels[i, j])]
                for k, line in enumerate(lines):
                    low = y + i * h + h / 2 + 3.5 + 12 * (k - (len(lines) - 1) / 2)
                    out.text(x + 22 + j * w + (w - 1.5) / 2, low, line, "mono tiny mid", panel.ink[i][j])
    else:
        w = h = min(most / columns, most / rows, 24.0)
        h = max(h, 3.0) if rows * 3 < most else h
        used, cells = np.unique(panel.cells, return_inverse=True)
        out.image(x + 22, y, columns * w, rows * h, cells.reshape(panel.cells.shape), [panel.colours[k] for k in used])
    for j in _ticks(columns, w):
        out.text(x + 22 + (j + 0.5) * w, y - 5, str(j), "soft tiny mid mono")
    for i in _ticks(rows, h):
        out.text(x + 17, y + (i + 0.5) * h + 3.5, str(i), "soft tiny end mono")
    out.text(x + 22 + columns * w + 5, y - 5, panel.across, "soft tiny mono")
    out.text(x + 17, y + rows * h + 12, panel.down, "soft tiny end mono")
    if panel.mark is not None and panel.mark.any():
        _outline(out, panel.mark, x + 22, y, w, h, 1.5 if panel.labels is not None else 0)
    return w, h


def _ticks(n: int, size: float) -> range:
    step = next(s for s in (1, 2, 4, 8, 16, 32, 64, 128, 256, 1 << 30) if s * size >= 22 or s >= n)
    return range(0, n, step)


def _outline(out: Svg, mark: NDArray[Any], x: float, y: float, w: float, h: float, gap: float) -> None:
    """Draw a border around the marked cells: one path along every edge between marked and unmarked."""
    padded = np.pad(mark, 1)
    d = []
    for i, j in np.argwhere(mark):
        left, top, right, low = x + j * w - gap / 2, y + i * h - gap / 2, x + (j + 1) * w - gap / 2, y + (i + 1) * h - gap / 2
        for (di, dj), edge in (((-1, 0), (left, top, right, top)), ((1, 0), (left, low, right, low)),
                               ((0, -1), (left, top, left, low)), ((0, 1), (right, top, right, low))):  # fmt: skip
            if not padded[i + 1 + di, j + 1 + dj]:
                d.append("M{:.1f} {:.1f}L{:.1f} {:.1f}".format(*edge))
    out.path("".join(d), "halo")
    out.path("".join(d), "mark")


def _owned(out: Svg, r: Record, y: float, lang: str) -> None:
    panel = panels(r, lang)[0]
    rows, columns = panel.cells.shape
    w, h = _grid(out, panel, _LEFT, y, 420)
    held = int((np.asarray(r["arrays"]["thread"]) == 0).any(axis=-1).sum())
    total = int(np.prod(r["shape"], dtype=np.int64))
    foot = y + 26 + rows * h + 24
    _legend_mark(out, _LEFT + 22, foot, word("holds", lang, thread=0, count=held, total=total))
    x = _LEFT + 22 + columns * w + 44
    _threads(out, r, x, y, lang)
    if panel.labels is None:
        thread, register = grid(r, "thread")[..., 0], grid(r, "register")[..., 0]
        corner = (slice(0, min(16, rows)), slice(0, min(8, columns)))
        labels = np.char.add(np.char.add("T", thread[corner].astype(str)), np.char.add("·r", register[corner].astype(str)))
        cells = thread[corner] % 256
        ink = [[palette.ink_on(panel.colours[c]) for c in row] for row in cells]
        title = word("corner", lang, rows=cells.shape[0], columns=cells.shape[1])
        inset = Panel(title=title, hint="", down=panel.down, across=panel.across,
                      cells=cells, colours=panel.colours, labels=labels, ink=ink, mark=thread[corner] == 0)  # fmt: skip
        _grid(out, inset, x, y + _threads_height(r) + 34, 330)


def _legend_mark(out: Svg, x: float, y: float, text: str) -> None:
    out.rect(x, y - 9, 11, 11, cls="mark", radius=2)
    out.text(x + 18, y, text, "soft tiny")


def _threads_height(r: Record) -> float:
    return 26.0 + min(32, -(-int(r["threads"]) // 32)) * 14


def _threads(out: Svg, r: Record, x: float, y: float, lang: str) -> None:
    """Draw the warps, one a line, in the colours of their threads."""
    out.heading(x, y, word("threads_title", lang), word("threads_hint", lang))
    warps = min(32, -(-r["threads"] // 32))
    for lane in (0, 8, 16, 24, 31):
        out.text(x + 50 + lane * 10 + 5, y + 21, str(lane), "soft tiny mid mono")
    for w in range(warps):
        top = y + 26 + w * 14
        out.text(x + 44, top + 9, f"{word('warp', lang)} {w}", "soft tiny end")
        for lane in range(min(32, r["threads"] - w * 32)):
            out.rect(x + 50 + lane * 10, top, 9, 11, fill=palette.thread_colour(w * 32 + lane), radius=1.5)


def _shared(out: Svg, r: Record, y: float, lang: str) -> None:
    before, after = panels(r, lang)
    rows, columns = before.cells.shape
    w, h = _grid(out, before, _LEFT, y, 380)
    x = _LEFT + 22 + columns * w + 36
    _grid(out, after, x, y, 380)
    foot = y + 26 + rows * h + 30
    _bank_legend(out, _LEFT + 22, foot, lang)
    if "hits" in r["arrays"]:
        foot += 54
        out.heading(_LEFT, foot, word("column_read", lang), "")
        for left, name, title in ((_LEFT, "hits_before", "before"), (x, "hits", "after")):
            _hits(out, r["arrays"][name], left + 22, foot + 22, columns * w, word(title, lang))
        foot += 66
    if r["conflicts"]:
        _conflicts(out, r, foot + 40, lang)


def _bank_legend(out: Svg, x: float, y: float, lang: str) -> None:
    out.text(x, y + 9, word("bank", lang), "soft tiny")
    for bank in range(32):
        out.rect(x + 36 + bank * 12, y, 11, 11, fill=palette.bank_colour(bank), radius=2)
    for bank in (0, 8, 16, 24, 31):
        out.text(x + 36 + bank * 12 + 5.5, y + 22, str(bank), "soft tiny mid mono")


def _hits(out: Svg, hits: NDArray[Any], x: float, y: float, width: float, title: str) -> None:
    """Draw a bar for each bank, as high as the lanes that hit it."""
    step, high = width / 32, 40.0
    out.line(x, y + high, x + width, y + high)
    for bank, n in enumerate(int(v) for v in hits):
        if n:
            tall = max(3.0, high * n / 32)
            out.rect(x + bank * step + step * 0.12, y + high - tall, step * 0.76, tall, fill=palette.bank_colour(bank), radius=1)
    most = int(hits.max())
    where = int(hits.argmax())
    out.text(x + where * step + step + 3, y + high - max(3.0, high * most / 32) + (9 if most > 9 else -3), f"× {most}", "tiny mono")
    out.text(x + width, y - 4, title, "soft tiny end")


def _conflicts(out: Svg, r: Record, y: float, lang: str) -> None:
    out.heading(_LEFT, y, word("conflicts", lang), word("wavefronts_hint", lang))
    columns = ((_LEFT + 22, "pattern"), (_LEFT + 300, "before"), (_LEFT + 400, "after"), (_LEFT + 500, "ideal"))
    for x, key in columns:
        out.text(x, y + 22, word(key, lang), "soft tiny")
    for k, c in enumerate(r["conflicts"]):
        top = y + 42 + k * 19
        out.line(_LEFT + 22, top - 14, _LEFT + 560, top - 14)
        out.text(columns[0][0], top, word(c["pattern"], lang))
        for x, key in columns[1:]:
            out.text(x, top, str(c[key]), f"mono {'good' if c[key] == c['ideal'] else 'bad'}")

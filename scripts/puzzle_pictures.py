"""Draws the pictures of the puzzles of parts A and B: ``python scripts/puzzle_pictures.py [NUMBER …]``.

The broken kernels of puzzles 4, 6 and 9 are shown by the trace view; the rest are rows of cells, drawn with the means of
the views. Every number in a picture is computed here.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tilelab
from tilelab.course import percent, puzzle
from tilelab.files import write_text
from tilelab.views import palette
from tilelab.views.svg import Svg

PUZZLES = Path(__file__).resolve().parents[1] / "puzzles"
_H = 24.0


def _colour(owner: int) -> str:
    """A colour of its own for each of a few owners; −1 is nobody's."""
    return palette.EMPTY if owner < 0 else palette.thread_colour(32 * owner + 14)


def _row(
    out: Svg,
    x: float,
    y: float,
    texts: Any,
    owners: Any,
    *,
    w: float = 30,
    name: str = "",
    marks: Sequence[int] = (),
) -> None:
    """Draw a row of cells with its name before it; the cells ``marks`` are outlined together."""
    if name:
        out.text(x - 10, y + 16, name, "mono end")
    for k, (text, owner) in enumerate(zip(texts, owners, strict=True)):
        colour = _colour(owner)
        out.rect(x + k * w, y, w - 1.5, _H - 1.5, fill=colour, radius=3)
        out.text(x + k * w + (w - 1.5) / 2, y + 15.5, str(text), "mono tiny mid", palette.ink_on(colour))
    if marks:
        _box(out, x + min(marks) * w - 1, y - 1, len(marks) * w + 0.5, _H + 0.5)


def _box(out: Svg, x: float, y: float, w: float, h: float) -> None:
    out.rect(x, y, w, h, cls="halo", radius=3)
    out.rect(x, y, w, h, cls="mark", radius=3)


def _arrow(out: Svg, x1: float, y1: float, x2: float, y2: float) -> None:
    """A line with a small head."""
    out.line(x1, y1, x2, y2, "mark")
    length = max(1.0, float(np.hypot(x2 - x1, y2 - y1)))
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    for side in (-1, 1):
        out.line(x2, y2, x2 - 7 * ux + side * 3.5 * uy, y2 - 7 * uy - side * 3.5 * ux, "mark")


def _number(v: float) -> str:
    """A number as a cell holds it: at most five characters or so."""
    if not np.isfinite(v):
        return {True: "∞", False: "−∞"}[v > 0] if not np.isnan(v) else "NaN"
    text = f"{v:.0f}" if 1000 <= abs(v) < 1e7 else f"{v:.3g}" if abs(v) >= 0.001 or v == 0 else f"{v:.0e}"
    return text.replace("e-0", "e−").replace("e+0", "e").replace("-", "−")


def _traced(number: int, show: Callable[[Any], Any]) -> str:
    """The trace view of a puzzle's starter, from a file that holds nothing else."""
    p = puzzle(number)
    cells = percent.parse(p.stub(), p.id)
    kernel = next(c.source for c in cells if c.metadata.get("tilelab", {}).get("role") == "solution")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{p.spec.entry}.py"
        path.write_text(f"import tilelang\nimport tilelang.language as T\n\n\n{kernel}\n", "utf-8")
        spec = importlib.util.spec_from_file_location(p.spec.entry, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return str(show(getattr(module, p.spec.entry)).to_svg())


# ----------------------------------------------------------------------------------------------------- part A
def who_am_i() -> str:
    """The numbers of five blocks on forty elements."""
    out = Svg("who am I", "forty elements in five tiles of eight; each element is the number of its block")
    owners = np.arange(40) // 8
    for b in range(5):
        out.text(30 + (b * 8 + 4) * 22, 28, f"bx = {b}", "mono mid")
        out.line(30 + b * 176, 36, 30 + b * 176 + 170, 36)
    _row(out, 30, 46, owners, owners, w=22, marks=range(16, 24))
    for k in range(0, 41, 8):
        out.text(30 + k * 22, 86, str(k), "soft tiny mono")
    return out.finish()


def vector_add() -> str:
    """Twenty elements, and the four that the last tile has too many."""
    out = Svg("vector add", "twenty elements in tiles of eight; the last four of the third tile do not exist")
    owners = [k // 8 if k < 20 else -1 for k in range(24)]
    for b in range(3):
        out.text(50 + (b * 8 + 4) * 30, 28, f"bx = {b}", "mono mid")
    for name, y in (("A", 44), ("B", 76), ("C", 116)):
        _row(out, 50, y, [k if k < 20 else "∅" for k in range(24)], owners, name=name)
    x = 50 + 20 * 30 - 1
    out.line(x, 36, x, 146, "mark")
    out.text(x, 162, "N = 20", "mono mid")
    return out.finish()


def outer_add() -> str:
    """A column and a row, and all of their sums."""
    a, b = np.array([10, 20, 30, 40]), np.arange(1, 7)
    out = Svg("outer add", "C[i, j] = A[i] + B[j]; one tile of two by three is outlined")
    tiles = np.arange(4)[:, None] // 2 * 2 + np.arange(6)[None, :] // 3
    _row(out, 130, 24, b, [5] * 6, w=40, name="B")
    for i in range(4):
        _row(out, 60, 66 + i * _H, [a[i]], [4], w=40, name="A" if i == 0 else "")
        _row(out, 130, 66 + i * _H, a[i] + b, tiles[i], w=40)
    _box(out, 129 + 3 * 40, 65 + 2 * _H, 3 * 40, 2 * _H)
    out.text(130 + 6 * 40 + 14, 66 + 3 * _H + 4, "bx = 1, by = 1", "mono")
    out.text(130 + 6 * 40 + 14, 82, "C", "mono")
    out.reach(500, 0)
    return out.finish()


def tail_that_lies() -> str:
    """The starter's last tile, half of which nobody wrote."""
    a = -1 - np.round(8 * np.random.default_rng(0).random((4, 24)), 1).astype(np.float32)
    return _traced(4, lambda k: tilelab.view.trace(k, a, buffer="tile", at=5, consts={"rows": 4, "cols": 16}))


def fused() -> str:
    """Five trips through global memory, or three."""
    out = Svg("fused add and ReLU", "two kernels make five trips through global memory, one kernel makes three")
    for x, names in ((110, ("A", "B", "A + B", "C")), (560, ("A", "B", "", "C"))):
        for k, name in enumerate(names):
            if name:
                _row(out, x + k * 84, 40, [name], [k], w=66)
    for y, label in ((56, "global"), (136, "registers")):
        out.text(92, y, label, "soft end")
    out.line(100, 92, 900, 92)
    for left, ends in ((110.0, ((0, 1), (1, 1), (2, -1), (2.35, 1), (3, -1))), (560.0, ((0, 1), (1, 1), (3, -1)))):
        for n, (slot, way) in enumerate(ends):
            at = left + slot * 84 + (33 if slot != 2 else 20)
            _arrow(out, at, *((70, at, 116) if way > 0 else (116, at, 70)))
            out.text(at + 5, 88, str(n + 1), "mono tiny")
    _row(out, 110, 124, ["a + b"], [2], w=234)
    _row(out, 360, 124, ["max(s, 0)"], [3], w=84)
    _row(out, 560, 124, ["max(a + b, 0)"], [3], w=318)
    return out.finish()


def missing_clear() -> str:
    """The starter at the first statement that reads what nobody has written."""
    a, b = np.random.default_rng(0).standard_normal((2, 4, 24), dtype=np.float32)
    return _traced(6, lambda k: tilelab.view.trace(k, a, b, buffer="products", consts={"rows": 4, "cols": 16}))


# ----------------------------------------------------------------------------------------------------- part B
def bias_gradient() -> str:
    """A strip of columns, two tiles of it, their sums and the total."""
    d = np.random.default_rng(3).integers(-4, 5, (6, 6))
    out = Svg("bias gradient", "a block walks down its three columns in tiles of three rows and carries the sums along")
    for i in range(6):
        _row(out, 60, 40 + i * _H, d[i], [i // 3 if j >= 3 else -1 for j in range(6)], w=34, name="dY" if i == 0 else "")
    for k in range(2):
        y = 39 + 3 * k * _H
        _box(out, 59 + 3 * 34, y, 3 * 34 + 0.5, 3 * _H)
        out.text(60 + 6 * 34 + 8, y + 40, f"k = {k}", "mono")
        _arrow(out, 60 + 6 * 34 + 62, y + 36, 60 + 6 * 34 + 96, y + 36)
        _row(out, 60 + 6 * 34 + 104, y + 24, d[3 * k : 3 * k + 3, 3:].sum(axis=0), [k] * 3, w=34)
    out.text(60 + 4.5 * 34, 28, "bx = 1", "mono mid")
    x = 60 + 6 * 34 + 104
    out.text(x + 51, 118, "+", "mono mid")
    out.line(x, 172, x + 102, 172, "mark")
    _row(out, x, 182, d[:, 3:].sum(axis=0), [5] * 3, w=34)
    out.text(x + 112, 198, "db", "mono")
    return out.finish()


def race() -> str:
    """The starter at the statement that races."""
    a = np.arange(256, dtype=np.float32)
    return _traced(9, lambda k: tilelab.view.trace(k, a, buffer="s"))


def warp_sum() -> str:
    """Three exchanges among eight lanes."""
    v = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    out = Svg("warp sum", "each lane adds the value of the lane at distance 4, then 2, then 1; in the end all hold the sum")
    w, x, y = 64.0, 130.0, 40.0
    for lane in range(8):
        out.text(x + lane * w + w / 2, 28, f"lane {lane}", "soft tiny mid")
    _row(out, x, y, v, [0] * 8, w=w, name="total")
    for step, d in enumerate((4, 2, 1)):
        for lane in range(8):
            out.line(x + lane * w + w / 2, y + _H, x + (lane ^ d) * w + w / 2, y + 70)
            out.line(x + lane * w + w / 2, y + _H, x + lane * w + w / 2, y + 70)
        out.text(x - 10, y + 52, f"shfl_xor {d}", "mono tiny end")
        v, y = v + v[np.arange(8) ^ d], y + 72
        _row(out, x, y, v, [step + 1] * 8, w=w)
    return out.finish()


def histogram() -> str:
    """Four threads at once, and the counters that they hit."""
    data = [2, 0, 2, 2, 1, 3, 2, 0, 3, 2, 2, 1]
    out = Svg(
        "histogram", "four threads at a time each add one to the counter that their number names; three of the first four hit counter 2"
    )
    _row(out, 70, 30, data, [k // 4 if k < 4 else -1 for k in range(12)], w=40, name="X", marks=range(4))
    for k in range(4):
        out.text(70 + k * 40 + 20, 22, f"t{k}", "soft tiny mid")
        _arrow(out, 70 + k * 40 + 20, 56, 110 + data[k] * 90 + 20 + (k - 1.5) * 8, 118)
    for value in range(4):
        now = data[:4].count(value)
        _row(out, 110 + value * 90, 122, [f"+{now}" if now else "0"], [0 if now else -1], w=40)
        out.text(110 + value * 90 + 20, 162, f"H[{value}]", "mono tiny mid")
    return out.finish()


def two_orders() -> str:
    """The error of a running sum, and that of 1024 short ones."""
    a = np.random.default_rng(0).random(100003, dtype=np.float32)
    exact = np.cumsum(a, dtype=np.float64)
    ends = np.unique(np.linspace(1024, a.size, 160).astype(int))
    one = np.abs(np.cumsum(a)[ends - 1] - exact[ends - 1]) / exact[ends - 1]
    many = []
    for n in ends:
        rows = np.pad(a[:n], (0, -n % 1024)).reshape(-1, 1024)
        partial = np.zeros(1024, np.float32)
        for row in rows:
            partial += row
        while partial.size > 1:
            partial = partial[: partial.size // 2] + partial[partial.size // 2 :]
        many.append(abs(partial[0] - exact[n - 1]) / exact[n - 1])
    out = Svg("one sum, two orders", "relative error after n numbers: one after another, and in 1024 short sums")
    x, y, w, h = 90.0, 30.0, 560.0, 190.0
    top = float(one.max()) * 1.08
    for k in range(4):
        level = top * k / 3
        out.line(x, y + h - h * k / 3, x + w, y + h - h * k / 3)
        out.text(x - 8, y + h - h * k / 3 + 4, f"{level:.1e}".replace("e-0", "e−") if k else "0", "soft tiny end mono")
    for values, name in ((one, "Σ"), (np.array(many), "1024 × Σ")):
        points = [f"{x + w * n / a.size:.1f} {y + h - h * e / top:.1f}" for n, e in zip(ends, values, strict=True)]
        out.path("M" + "L".join(points), "mark")
        out.text(x + w + 12, y + h - h * float(values[-1]) / top + 1, name, "mono")
    for n in (0, 50_000, 100_000):
        out.text(x + w * n / a.size, y + h + 18, f"n = {n:,}".replace(",", " "), "soft tiny mid mono")
    out.reach(x + w + 110, 0)
    return out.finish()


def two_launches() -> str:
    """Sums go out in the first launch, and come back to everybody in the second."""
    out = Svg("two launches", "in the first launch each block writes its sum; in the second each block reads all of them")
    x, w = 70.0, 150.0
    for b in range(4):
        _row(out, x + b * w, 40, [f"bx = {b}"], [b], w=120)
        _arrow(out, x + b * w + 60, 66, x + b * w + 60, 100)
        _row(out, x + b * w + 30, 104, ["Σ"], [b], w=60, name="sums" if b == 0 else "")
        _row(out, x + b * w, 220, [f"bx = {b}"], [b], w=120)
    out.line(20, 146, x + 4 * w, 146, "mark")
    for b in range(4):
        for other in range(4):
            out.line(x + b * w + 60, 152, x + other * w + 60, 214)
    out.text(24, 56, "1", "head")
    out.text(24, 236, "2", "head")
    return out.finish()


def prefix_sum() -> str:
    """Three scans and their carries."""
    a = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8])
    scans, owners = np.cumsum(a.reshape(3, 4), axis=1), np.arange(12) // 4
    carry = np.concatenate(([0], np.cumsum(scans[:, -1])[:-1]))
    out = Svg("prefix sum", "each block scans its own four numbers and adds the sum of all the blocks before it")
    _row(out, 90, 30, a, owners, w=42, name="A")
    _row(out, 90, 72, scans.reshape(-1), owners, w=42, name="cumsum")
    _row(out, 90, 162, np.cumsum(a), owners, w=42, name="B")
    for b in range(3):
        middle = 90 + (4 * b + 2) * 42
        _arrow(out, middle, 100, middle, 156)
        out.text(middle + 10, 132, f"+ {carry[b]}", "mono")
        if b < 2:
            _arrow(out, 90 + (4 * b + 3.5) * 42, 98, 90 + (4 * b + 6) * 42 - 14, 126)
    return out.finish()


def rms_norm() -> str:
    """Numbers, and their squares in two precisions."""
    x = np.array([1e-4, 0.01, 0.5, 3, 100, 255, 256, 1000])
    with np.errstate(over="ignore"):
        half = (x.astype(np.float16) * x.astype(np.float16)).astype(np.float64)
    full = x.astype(np.float32) ** 2
    bad = [0 if np.isfinite(h) and h > 0 else -1 for h in half]
    out = Svg("RMSNorm", "squares in float16 vanish or become infinite where those in float32 do not")
    _row(out, 130, 30, [_number(v) for v in x], [0] * 8, w=66, name="x")
    _row(out, 130, 72, [_number(v) for v in half], bad, w=66, name="float16 x²", marks=[6, 7])
    _row(out, 130, 114, [_number(float(v)) for v in full], [0] * 8, w=66, name="float32 x²")
    return out.finish()


def softmax() -> str:
    """The steps of a stable softmax, and the step that is not."""
    x = np.array([90.0, 3, 92, -5, 91, 88], np.float32)
    with np.errstate(over="ignore"):
        naive = np.exp(x)
    shifted = x - x.max()
    e = np.exp(shifted)
    out = Svg("softmax", "exp(x) overflows; after the maximum is subtracted every exponential lies between 0 and 1")
    rows: list[tuple[str, Any, int]] = [
        ("x", x, 0),
        ("exp(x)", naive, -1),
        ("x − max", shifted, 1),
        ("exp(x − max)", e, 2),
        ("share", e / e.sum(), 3),
    ]
    for k, (name, values, owner) in enumerate(rows):
        y = 30 + k * 36 + (12 if k > 1 else 0)
        _row(out, 150, y, [_number(float(v)) for v in values], [owner] * 6, w=72, name=name)
    out.line(60, 30 + 2 * 36 + 0, 150 + 6 * 72, 30 + 2 * 36 + 0)
    return out.finish()


def online_softmax() -> str:
    """Maximum and sum, tile by tile."""
    x = np.array([[1.0, 2, 0], [5, 3, 4], [4, 1, 2]])
    out = Svg("online softmax", "the sum so far is rescaled whenever the maximum grows")
    m, s = -np.inf, 0.0
    out.text(60, 56, "x", "mono end")
    for name, y in (("m", 96), ("factor", 132), ("s", 168)):
        out.text(60, y, name, "mono end")
    for k in range(3):
        left = 70 + k * 190
        _row(out, left, 40, [_number(v) for v in x[k]], [k] * 3, w=50)
        new = max(m, x[k].max())
        factor = np.exp(m - new) if np.isfinite(m) else 0.0
        part = np.exp(x[k] - new).sum()
        _row(out, left, 80, [_number(new)], [k], w=150)
        text = f"exp({_number(m)} − {_number(new)}) = {_number(factor)}" if k else "–"
        out.text(left + 75, 132, text, "mono tiny mid")
        m, s = new, s * factor + part
        _row(out, left, 152, [_number(s)], [k], w=150)
        if k:
            _arrow(out, left - 38, 164, left - 6, 164)
            _arrow(out, left - 38, 92, left - 6, 92)
    return out.finish()


DRAWN: Mapping[int, Callable[[], str]] = {
    0: who_am_i, 2: vector_add, 3: outer_add, 4: tail_that_lies, 5: fused, 6: missing_clear, 8: bias_gradient, 9: race, 10: warp_sum,
    11: histogram, 12: two_orders, 13: two_launches, 14: prefix_sum, 15: rms_norm, 16: softmax, 17: online_softmax,
}  # fmt: skip


def main(numbers: Sequence[str]) -> None:
    """Draw the pictures of the puzzles named, or all."""
    for number in [int(n) for n in numbers] or DRAWN:
        folder = next(PUZZLES.glob(f"{number:02d}_*"))
        write_text(folder / "picture.svg", DRAWN[number]() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

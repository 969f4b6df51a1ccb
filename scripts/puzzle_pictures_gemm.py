"""Draws the pictures of puzzles 18 to 24 and 26 to 34: ``python scripts/puzzle_pictures_gemm.py [NUMBER …]``.

Most are views of the solution (or of the broken kernel); how work is dealt out to blocks is drawn as a grid of cells.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from puzzle_pictures import DRAWN as EARLIER
from puzzle_pictures import PUZZLES, _box, _colour, _row

import tilelab
from tilelab import layout_make
from tilelab.course import puzzle
from tilelab.files import write_text
from tilelab.views.svg import Svg

_W, _H = 34.0, 24.0


def _kernel(number: int, file: str = "solution.py") -> Any:
    p = puzzle(number)
    spec = importlib.util.spec_from_file_location(p.id, p.folder / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, p.spec.entry)


def _layout(number: int, buffer: str, **consts: int) -> str:
    return str(tilelab.view.layout(_kernel(number), buffer, consts=consts).to_svg())


def _pipeline(number: int, **consts: int) -> str:
    return str(tilelab.view.pipeline(_kernel(number), consts=consts).to_svg())


def _grid(
    out: Svg, x: float, y: float, texts: NDArray[Any], owners: NDArray[np.int64], *, w: float = _W, across: str = "", down: str = ""
) -> None:
    """Draw a grid of cells with numbered axes."""
    for k in range(texts.shape[1]):
        out.text(x + k * w + w / 2, y - 6, str(k), "soft tiny mono mid")
    for i, (line, of) in enumerate(zip(texts, owners, strict=True)):
        out.text(x - 8, y + i * _H + 16, str(i), "soft tiny mono end")
        _row(out, x, y + i * _H, line, of, w=w)
    out.text(x + texts.shape[1] * w / 2, y - 22, across, "mono mid")
    out.text(x - 30, y + texts.shape[0] * _H / 2, down, "mono end")


def _legend(out: Svg, x: float, y: float, names: Sequence[str]) -> None:
    for k, name in enumerate(names):
        out.rect(x, y + k * 20, 14, 14, fill=_colour(k), radius=3)
        out.text(x + 22, y + k * 20 + 12, name, "mono tiny")


# ----------------------------------------------------------------------------------------------------- part C
def transpose() -> str:
    """The lanes of a warp on rows of a tile."""
    tile = layout_make.make_fragment((4, 32), lambda i, j: (j, i), threads=32, name="tile")
    return str(tilelab.view.layout(tile).to_svg())


def padded() -> str:
    """Banks of a tile whose rows are padded by four words."""
    return str(tilelab.view.layout(lambda i, j: i * 36 + j, shape=(32, 32), dtype="float32").to_svg())


def swizzle() -> str:
    """Banks of eight rows, in order and swizzled."""
    return str(tilelab.view.layout(layout_make.make_shared((8, 64), _swizzled, name="swizzle")).to_svg())


def _swizzled(i: Any, j: Any) -> Any:
    return i * 64 + ((j // 8) ^ (i % 8)) * 8 + j % 8


def vectors() -> str:
    """Eight neighbours for each lane."""
    lanes = layout_make.make_fragment((2, 32), lambda i, j: ((i * 32 + j) // 8, j % 8), threads=8, dtype="float16", name="X")
    return str(tilelab.view.layout(lanes).to_svg())


# ----------------------------------------------------------------------------------------------------- part D
def convolution() -> str:
    """An image, and the rows that its pixels become."""
    height, width = 3, 4
    out = Svg(
        "convolution as GEMM", "for each output pixel and tap the number of the pixel that is needed, and a dash where the image ends"
    )
    image = np.arange(height * width).reshape(height, width)
    _grid(out, 60, 60, image, np.zeros_like(image), across="column", down="row")
    rows, owners = [], []
    for p in range(height * width):
        at = [(p // width + t // 3 - 1, p % width + t % 3 - 1) for t in range(9)]
        inside = [0 <= r < height and 0 <= c < width for r, c in at]
        rows.append([str(r * width + c) if ok else "–" for (r, c), ok in zip(at, inside, strict=True)])
        owners.append([0 if ok else -1 for ok in inside])
    _grid(out, 320, 60, np.array(rows, object), np.array(owners), across="tap", down="pixel")
    _box(out, 60 - 1, 60 - 1, 3 * _W + 0.5, 3 * _H + 0.5)
    _box(out, 320 - 1, 60 + 5 * _H - 1, 9 * _W + 0.5, _H + 0.5)
    return out.finish()


def rasterisation() -> str:
    """The first blocks, row by row and in panels of four rows."""
    out = Svg("L2 rasterisation", "the first 32 blocks, row by row and in panels of four rows")
    y, x = np.mgrid[0:8, 0:16]
    plain = y * 16 + x
    panel = y // 4
    panels = panel * 64 + np.where(panel % 2, 15 - x, x) * 4 + y % 4
    for left, order in ((60, plain), (660, panels)):
        first = order < 32
        _grid(out, left, 60, order, np.where(first, 0, -1), across="bx", down="by")
        tiles = int(first.any(axis=1).sum()) + int(first.any(axis=0).sum())
        out.text(
            left,
            60 + 8 * _H + 22,
            f"32 blocks at once: {int(first.any(axis=1).sum())} rows + {int(first.any(axis=0).sum())} columns = {tiles} tiles",
            "mono",
        )
    return out.finish()


def split_k() -> str:
    """Which block has which part of the sum of which tile."""
    out = Svg("split-K", "eight tiles of C along the columns, four parts of K for each; every cell is a block")
    tile, part = np.mgrid[0:8, 0:4]
    _grid(out, 70, 60, part * 8 + tile, part, w=60, across="part of K (s)", down="bx")
    for k in range(8):
        y = 60 + k * _H
        out.text(324, y + 16, "→", "mono")
        _row(out, 350, y, [f"C tile {k}"], [4], w=80)
    return out.finish()


def stream_k() -> str:
    """Forty-eight units of work for five workers."""
    out = Svg("stream-K", "six tiles of eight steps, dealt out to five workers in pieces of ten")
    units = np.arange(48).reshape(6, 8)
    _grid(out, 70, 60, units, units // 10, across="step along K", down="tile")
    _legend(out, 70 + 8 * _W + 30, 64, [f"worker {k}" for k in range(5)])
    out.reach(470, 0)
    return out.finish()


def persistent() -> str:
    """Twenty-five tiles for eight workers, turn by turn."""
    out = Svg("persistent GEMM", "25 tiles for 8 workers: which worker makes a tile, and in which turn")
    tiles = np.arange(25).reshape(5, 5)
    _grid(out, 60, 60, tiles, tiles // 8, across="column of C", down="row")
    turns = np.arange(32).reshape(4, 8)
    _grid(out, 330, 60, np.where(turns < 25, turns.astype(str), "–"), np.where(turns < 25, turns // 8, -1), across="worker", down="turn")
    return out.finish()


DRAWN: Mapping[int, Callable[[], str]] = {
    18: transpose,
    19: lambda: str(tilelab.view.layout("mma.m16n8k16.A").to_svg()),
    20: lambda: str(tilelab.view.layout(_kernel(20, "stub.py"), consts={"B": 1, "D": 16}).to_svg()),
    21: padded,
    22: swizzle,
    23: vectors,
    24: lambda: _layout(24, "products", M=8, K=256),
    26: lambda: _pipeline(26, M=128, N=128, K=256, num_stages=3),
    27: lambda: _pipeline(27, M=128, N=128, K=512),
    28: lambda: _pipeline(28, M=64, N=64, K=256),
    29: convolution,
    30: rasterisation,
    31: lambda: str(tilelab.view.resources(_kernel(31), consts={"M": 1024, "N": 1024, "K": 512}).to_svg()),
    32: split_k,
    33: stream_k,
    34: persistent,
}
assert not set(DRAWN) & set(EARLIER)


def main(numbers: Sequence[str]) -> None:
    """Draw the pictures of the puzzles named, or all."""
    for number in [int(n) for n in numbers] or DRAWN:
        folder = next(PUZZLES.glob(f"{number:02d}_*"))
        write_text(folder / "picture.svg", DRAWN[number]() + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

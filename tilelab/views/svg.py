"""SVG, written by hand: a canvas of text and boxes, and small PNG pictures for what has too many cells for boxes."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.views.style import MONO, SANS, theme_css

_CSS = (
    f".tl-svg text{{font-family:{SANS};font-size:12px;fill:var(--tl-ink)}}.tl-svg .mono{{font-family:{MONO}}}"
    ".tl-svg .soft{fill:var(--tl-soft)}.tl-svg .hint{font-weight:400}.tl-svg .tiny{font-size:10.5px}.tl-svg text.tiny{font-size:10.5px}"
    ".tl-svg .head{font-size:17px;font-weight:650}.tl-svg .sub{font-weight:600;font-size:13px}"
    ".tl-svg .good{fill:var(--tl-good)}.tl-svg .bad{fill:var(--tl-bad)}.tl-svg .paper{fill:var(--tl-paper)}"
    ".tl-svg .rule{stroke:var(--tl-line);fill:none}.tl-svg .mark{stroke:var(--tl-mark);fill:none;stroke-width:1.5}"
    ".tl-svg .halo{stroke:var(--tl-halo);fill:none;stroke-width:3.5}"
    ".tl-svg .here{fill:var(--tl-here)}.tl-svg .track{fill:var(--tl-panel)}.tl-svg .ran{fill:var(--tl-ran)}"
    ".tl-svg .wrote{fill:var(--tl-accent)}"
    ".tl-svg .mark-bad{fill:var(--tl-bad)}.tl-svg .mark-print{fill:var(--tl-good)}"
    ".tl-svg .head-line{stroke:var(--tl-mark);stroke-width:2;fill:none}"
    ".tl-svg text.end{text-anchor:end}.tl-svg text.mid{text-anchor:middle}"
)

_SIZES = {"head": 17, "sub": 13, "tiny": 10.5}  # pixels of the letters of a class; 12 otherwise


class Svg:
    """A picture under construction; coordinates are pixels from the top left."""

    def __init__(self, title: str, description: str) -> None:
        self._parts: list[str] = []
        self._title, self._description = title, description
        self.width = self.height = 0.0

    def text(self, x: float, y: float, text: str, cls: str = "", fill: str = "") -> None:
        """Write ``text`` with its baseline at ``y``."""
        style = f' style="fill:{fill}"' if fill else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{_cls(cls)}{style}>{escape(text, quote=False)}</text>')
        wide = text_width(text, _SIZES.get(next((c for c in cls.split() if c in _SIZES), ""), 12))
        self.reach(x + wide * (0 if "end" in cls.split() else 0.5 if "mid" in cls.split() else 1), y + 4)

    def heading(self, x: float, y: float, title: str, hint: str, cls: str = "sub", hint_cls: str = "soft tiny") -> None:
        """Write ``title`` and, after it, a quieter ``hint``."""
        more = f'<tspan dx="10"{_cls("hint " + hint_cls)}>{escape(hint, quote=False)}</tspan>' if hint else ""
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"><tspan{_cls(cls)}>{escape(title, quote=False)}</tspan>{more}</text>')
        sizes = [_SIZES.get(next((c for c in names.split() if c in _SIZES), ""), 12) for names in (cls, hint_cls)]
        self.reach(x + text_width(title, sizes[0]) + (10 + text_width(hint, sizes[1]) if hint else 0), y + 4)

    def rect(self, x: float, y: float, w: float, h: float, *, cls: str = "", fill: str = "", radius: float = 0) -> None:
        """Draw a box."""
        colour = f' fill="{fill}"' if fill else ""
        corner = f' rx="{_n(radius)}"' if radius else ""
        self._parts.append(f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"{_cls(cls)}{colour}{corner}/>')
        self.reach(x + w, y + h)

    def path(self, d: str, cls: str) -> None:
        """Draw a path within what is there already."""
        self._parts.append(f'<path d="{d}"{_cls(cls)}/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, cls: str = "rule") -> None:
        """Draw a line."""
        self.path(f"M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}", cls)

    def image(self, x: float, y: float, w: float, h: float, cells: NDArray[Any], colours: Sequence[str]) -> None:
        """Draw ``cells`` (rows × columns of indices into ``colours``) as a picture of ``w`` × ``h`` with sharp cells."""
        data = base64.b64encode(png(cells, colours)).decode("ascii")
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(w)}" height="{_n(h)}"'
        self._parts.append(
            f'<image {place} preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
        )
        self.reach(x + w, y + h)

    def reach(self, x: float, y: float) -> None:
        """Let the picture include the point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def finish(self, margin: float = 20) -> str:
        """Return the SVG element."""
        w, h = _n(self.width + margin), _n(self.height + margin)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tl-svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img">'
            f"<title>{escape(self._title)}</title><desc>{escape(self._description)}</desc><style>{theme_css('.tl-svg')}{_CSS}</style>"
            f'<rect width="{w}" height="{h}" rx="10" class="paper"/>{"".join(self._parts)}</svg>'
        )


def text_width(text: str, pixels: float) -> float:
    """Return about how wide ``text`` is in letters of ``pixels``: Chinese letters are square, others three fifths of that."""
    return pixels * sum(1.0 if ord(c) > 0x2E7F else 0.6 for c in text)


def png(cells: NDArray[Any], colours: Sequence[str]) -> bytes:
    """Return a palette PNG of ``cells``, enlarged by a whole factor so that viewers which smooth pictures still show cells."""
    factor = max(1, min(8, 512 // max(cells.shape)))
    pixels = np.kron(cells.astype(np.uint8), np.ones((factor, factor), dtype=np.uint8))
    h, w = pixels.shape
    raw = np.zeros((h, w + 1), dtype=np.uint8)
    raw[:, 1:] = pixels
    raw[1:, 0] = 2  # "up" filter: equal rows become zeros
    raw[1:, 1:] -= pixels[:-1]
    palette = bytes(int(c[k : k + 2], 16) for c in colours for k in (1, 3, 5))
    header = struct.pack(">IIBBBBB", w, h, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(raw.tobytes(), 9)), (b"IEND", b""))
    body = b"".join(struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in chunks)
    return b"\x89PNG\r\n\x1a\n" + body


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _cls(cls: str) -> str:
    return f' class="{cls}"' if cls else ""

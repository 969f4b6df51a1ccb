"""Colours that colour-blind people can tell apart, computed once; the front ends get them as generated tables.

Threads: the hue says the warp (the eight hues of Okabe and Ito, "Color Universal Design", 2008), the lightness says the lane.
Banks and values: one ramp from violet to yellow whose lightness rises steadily, so that it also reads in grey.
Lightness and hue are those of OKLCH (Ottosson, "A perceptual color space for image processing", 2020).
"""

from __future__ import annotations

import math
from functools import cache

LANES = 32
BAD = "#d8432e"  # NaN and infinities among values
EMPTY = "#8b95a1"  # elements that nobody has written

#: hue in degrees and chroma of each warp, in turn: blue, orange, green, purple, sky, vermilion, yellow, grey
_WARPS = ((248, 0.125), (68, 0.135), (163, 0.115), (340, 0.115), (220, 0.095), (38, 0.15), (104, 0.135), (260, 0.012))


@cache
def warp_ramps() -> tuple[tuple[str, ...], ...]:
    """Return, for each of eight warps, the colours of its 32 lanes as ``#rrggbb``, pale to deep."""
    return tuple(tuple(_hex(0.93 - 0.36 * lane / (LANES - 1), chroma * (0.42 + 0.58 * lane / (LANES - 1)), hue) for lane in range(LANES))
                 for hue, chroma in _WARPS)  # fmt: skip


@cache
def ramp(n: int = 32) -> tuple[str, ...]:
    """Return ``n`` colours from deep violet through blue and green to yellow, of steadily rising lightness."""
    out = []
    for k in range(n):
        t = k / max(1, n - 1)
        out.append(_hex(0.36 + 0.56 * t, 0.105 + 0.055 * math.sin(math.pi * t), 292 - 192 * t**1.05))
    return tuple(out)


def thread_colour(thread: int) -> str:
    """Return the colour of ``thread``."""
    ramps = warp_ramps()
    return ramps[thread // LANES % len(ramps)][thread % LANES]


def bank_colour(bank: int) -> str:
    """Return the colour of a shared-memory bank."""
    return ramp()[bank % LANES]


def register_colour(register: int, registers: int) -> str:
    """Return the colour of a register among ``registers``."""
    return ramp()[min(31, register * 32 // max(1, registers))]


def ink_on(colour: str) -> str:
    """Return the colour of text on ``colour``: black or white, whichever contrasts more (WCAG relative luminance)."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (r, g, b)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#ffffff"


def _hex(lightness: float, chroma: float, hue: float) -> str:
    """OKLCH to sRGB; chroma gives way where the colour cannot be shown."""
    for _ in range(24):
        rgb = _rgb(lightness, chroma, hue)
        if all(-0.0005 <= c <= 1.0005 for c in rgb):
            break
        chroma *= 0.93
    return "#" + "".join(f"{round(255 * min(1.0, max(0.0, c))):02x}" for c in rgb)


def _rgb(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long, medium, short = (
        (lightness + ka * a + kb * b) ** 3
        for ka, kb in ((0.3963377774, 0.2158037573), (-0.1055613458, -0.0638541728), (-0.0894841775, -1.2914855480))
    )
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    r, g, blue = (12.92 * c if c <= 0.0031308 else 1.055 * max(c, 0.0) ** (1 / 2.4) - 0.055 for c in linear)
    return r, g, blue

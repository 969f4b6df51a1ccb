"""Outputs against the oracle: within tolerance element by element, NaN equal to NaN, an infinity equal to itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.grader.spec import Tolerance


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """The first wrong element (in C order) of an output, and how many are wrong.

    Attributes:
        output: Name of the output.
        index: Index of the first wrong element; empty when the shape is wrong.
        expected: The oracle's value there, in float64 (or the integer).
        got: The kernel's value there.
        wrong: Number of wrong elements.
        total: Number of elements.
        where: Which elements are wrong.
        written: Whether the kernel has written anything there at all.
    """

    output: str
    index: tuple[int, ...]
    expected: float
    got: float
    wrong: int
    total: int
    where: NDArray[np.bool_]
    written: bool = True

    def sentence(self) -> str:
        """Say it in one sentence."""
        if not self.written:
            return f"{self.output} is never written (all {self.total} elements are wrong)"
        at = ", ".join(map(str, self.index))
        wrong = f"({self.wrong} of {self.total} elements are wrong)"
        return f"{self.output}[{at}]: expected {number(self.expected)}, got {number(self.got)} {wrong}"


def compare(
    name: str, got: NDArray[Any], want: NDArray[Any], tolerance: Tolerance, magnitude: NDArray[Any] | None = None
) -> Mismatch | None:
    """Return the first mismatch of one output, or None when all of it is right. Shapes are equal already."""
    exact = got.dtype.kind in "iub"
    g = got if exact else got.astype(np.float64)
    w = np.asarray(want).astype(got.dtype if exact else np.float64)
    if exact:
        ok = g == w
    else:
        w = _as_stored(w, got.dtype)
        scale = np.abs(w) if magnitude is None else np.asarray(magnitude, np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(g - w) <= tolerance.atol + tolerance.rtol * scale
        finite = np.isfinite(w)
        ok = np.where(finite, near & np.isfinite(g), (g == w) | (np.isnan(g) & np.isnan(w)))
    if ok.all():
        return None
    where = ~np.asarray(ok)
    first = np.unravel_index(int(np.argmax(where)), where.shape) if where.ndim else ()
    index = tuple(int(i) for i in first)
    return Mismatch(
        output=name, index=index, expected=w[index].item(), got=g[index].item(), wrong=int(where.sum()), total=where.size, where=where
    )


def _as_stored(want: NDArray[np.float64], dtype: np.dtype[Any]) -> NDArray[np.float64]:
    """What is beyond the output's dtype is an infinity there; nothing else is rounded, the tolerance sees to that."""
    with np.errstate(over="ignore", invalid="ignore"):
        stored = want.astype(dtype).astype(np.float64)
    return np.where(np.isinf(stored), stored, want)


def number(value: Any) -> str:
    """Return a value as a learner reads it: few digits, integers whole."""
    if isinstance(value, bool | int):
        return str(value)
    return f"{value:.7g}"

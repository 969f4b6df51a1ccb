"""Answers to timing calls: how long the simulator took, marked as such."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

_said = False


class SimulatedMs(float):
    """Milliseconds that the simulator took. A number like any other, which prints that it is no GPU's."""

    simulated = True

    def __repr__(self) -> str:
        return f"{float(self):.6g} (simulated)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else repr(self)


def notice() -> None:
    """Say once, on stderr, what timings are worth here."""
    global _said
    if not _said:
        _said = True
        print("tilelab: there is no GPU here: times are the simulator's, not a GPU's", file=sys.stderr)


def do_bench(fn: Callable[[], Any], *args: Any, quantiles: list[float] | None = None, **kwargs: Any) -> Any:
    """Stand in for TileLang's ``do_bench``: run ``fn`` once and return the time, once for each of ``quantiles``."""
    notice()
    began = time.perf_counter()
    fn()
    took = SimulatedMs((time.perf_counter() - began) * 1e3)
    if quantiles is None:
        return took
    return took if len(quantiles) == 1 else [took] * len(quantiles)

"""The simulator of Programs: numpy only, no GPU, no TileLang."""

from __future__ import annotations

from typing import Any

__all__ = ["simulate"]


def __getattr__(name: str) -> Any:
    if name == "simulate":
        from tilelab.sim.engine import simulate

        return simulate
    raise AttributeError(f"module 'tilelab.sim' has no attribute {name!r}")

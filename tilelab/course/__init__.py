"""The course: puzzles, their cards and notebooks, and a learner's progress. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {"puzzle": "tilelab.course.catalog", "puzzles": "tilelab.course.catalog", "Puzzle": "tilelab.course.card"}
__all__ = ["Puzzle", "puzzle", "puzzles"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab.course' has no attribute {name!r}")

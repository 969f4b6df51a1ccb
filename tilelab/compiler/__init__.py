"""The only reader and writer of TileLang's IR. Names load when first used; TileLang loads when first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "capture": "tilelab.compiler.front",
    "capture_prim_func": "tilelab.compiler.front",
    "loading": "tilelab.compiler.front",
    "emit": "tilelab.compiler.writer",
    "lower": "tilelab.compiler.lowering",
    "refusal": "tilelab.compiler.refusals",
}
__all__ = ["capture", "capture_prim_func", "emit", "loading", "lower", "refusal"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab.compiler' has no attribute {name!r}")

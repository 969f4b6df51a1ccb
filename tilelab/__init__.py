"""TileLab: learn, see and debug TileLang GPU kernels, with no GPU. Names load when first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

#: public name → module that holds it
_HOME = {
    "capture": "tilelab.compiler",
    "lower": "tilelab.compiler",
    "whatif": "tilelab.compiler.whatif",
    "simulate": "tilelab.api",
    "check": "tilelab.api",
    "debug": "tilelab.debugger",
    "puzzle": "tilelab.course",
    "SimParams": "tilelab.trace",
    "load_ipython_extension": "tilelab.magics",
    "unload_ipython_extension": "tilelab.magics",
}
__all__ = ["SimParams", "capture", "check", "debug", "lower", "puzzle", "simulate", "view", "whatif"]


def __getattr__(name: str) -> Any:
    if name == "view":
        return import_module("tilelab.views")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})

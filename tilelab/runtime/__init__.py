"""Run unmodified TileLang programs on a machine with no GPU: cuda tensors live on the CPU, kernels go to the simulator.

``install`` does it for the whole process. ``tilelab run``, ``%load_ext tilelab`` and the pytest plugin call it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "captured_prints": "tilelab.runtime.device_prints",
    "Settings": "tilelab.runtime.hook",
    "install": "tilelab.runtime.hook",
    "installed": "tilelab.runtime.hook",
    "run_script": "tilelab.runtime.script",
}
__all__ = ["Settings", "captured_prints", "install", "installed", "run_script"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab.runtime' has no attribute {name!r}")

"""Shared by the tests of the simulator: capture and run a kernel in one call."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

CORPUS = Path(__file__).resolve().parent.parent / "corpus"


def load(name: str, path: Path) -> Any:
    """Import a Python file that is not in a package."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def run():
    """Capture a kernel and simulate it: ``run(kernel, A=…, n=…, params=SimParams(…))`` → Trace."""
    from tilelab.compiler import capture
    from tilelab.sim import simulate
    from tilelab.trace import SimParams

    def go(kernel: Any, params: SimParams | None = None, consts: dict[str, Any] | None = None, **inputs: Any):
        return simulate(capture(kernel, consts=consts), inputs, params or SimParams())

    return go


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def codes(trace: Any, *severities: str) -> list[str]:
    """The codes of the findings of these severities (error and warning by default)."""
    wanted = severities or ("error", "warning")
    return [f.code for f in trace.findings if f.severity in wanted]

"""Kernels of this folder, as modules of files that can be inspected."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "kernels"
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))  # schedule_run


def load(name: str):
    full = f"analysis_kernels_{name}"
    if full not in sys.modules:
        spec = importlib.util.spec_from_file_location(full, FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[full] = module
        spec.loader.exec_module(module)
    return sys.modules[full]


@pytest.fixture(scope="session")
def budget_kernels():
    return load("budget")


@pytest.fixture(scope="session")
def proof_kernels():
    return load("proof")

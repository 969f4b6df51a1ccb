"""Loads the corpus: ``cases()`` gives one Case a table of corpus.toml."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    file: str
    kernel: str
    oracle: str = ""
    consts: dict[str, Any] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    inputs: str = ""
    rtol: float = 0.0
    atol: float = 0.0

    def load(self) -> Any:
        """The kernel itself (needs TileLang)."""
        return getattr(_module(self.file), self.kernel)

    def make_inputs(self, seed: int = 0) -> dict[str, Any] | None:
        """Inputs by name, or None for the default ones."""
        return getattr(_module(self.file), self.inputs)(np.random.default_rng(seed)) if self.inputs else None

    def expected(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Outputs by name."""
        return getattr(_module(self.file), self.oracle)(**inputs)


@cache
def cases() -> tuple[Case, ...]:
    table = tomllib.loads((HERE / "corpus.toml").read_text())
    return tuple(Case(**c) for c in table["case"])


@cache
def _module(file: str) -> Any:
    path = HERE / file
    name = f"corpus_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    from tilelab.compiler import loading

    with loading():
        spec.loader.exec_module(module)
    return module

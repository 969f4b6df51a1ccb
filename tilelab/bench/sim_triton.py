"""The same work written for Triton, run by its interpreter (``TRITON_INTERPRET=1``): the measure of other interpreters.

Imports Triton: load lazily, and only through :func:`load`, which sets the variable that Triton reads when imported.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202, F821

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tilelab.errors import EnvironmentLacks


def load() -> SimpleNamespace:
    """Import Triton as an interpreter and return a callable for each case that Triton can do.

    Raises:
        EnvironmentLacks: Triton is missing, or was imported as a compiler before.
    """
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        raise EnvironmentLacks("Triton is already imported as a compiler", fix="Run `tilelab bench sim` in a process of its own")
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
        import triton.language as tl
    except ImportError as error:
        raise EnvironmentLacks(f"Triton cannot be imported: {error}", fix="pip install 'tilelab[bench]'") from None
    globals()["tl"] = tl  # the bodies of kernels look names up in their module
    import torch

    add, row_sum, softmax, matmul = (triton.jit(f) for f in (_add, _row_sum, _softmax, _matmul))

    def run_add(a: Any, b: Any) -> Any:
        c = torch.empty_like(a)
        add[(a.numel() // 1024,)](a, b, c, a.numel(), 1024)
        return c

    def run_row_sum(a: Any) -> Any:
        c = torch.empty(a.shape[0])
        row_sum[(a.shape[0],)](a, c, a.shape[1])
        return c

    def run_softmax(a: Any) -> Any:
        c = torch.empty_like(a)
        softmax[(a.shape[0],)](a, c, a.shape[1])
        return c

    def run_matmul(tile: tuple[int, int, int]) -> Callable[[Any, Any], Any]:
        bm, bn, bk = tile

        def run(a: Any, b: Any) -> Any:
            c = torch.empty(a.shape[0], b.shape[1], dtype=torch.float16)
            matmul[(b.shape[1] // bn, a.shape[0] // bm)](a, b, c, a.shape[1], b.shape[1], bm, bn, bk)
            return c

        return run

    return SimpleNamespace(add=run_add, row_sum=run_row_sum, softmax=run_softmax, matmul=run_matmul, version=triton.__version__)


def _add(a, b, c, n, WIDTH: tl.constexpr):
    i = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


def _row_sum(a, c, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    tl.store(c + row, tl.sum(tl.load(a + row * WIDTH + tl.arange(0, WIDTH)), axis=0))


def _softmax(a, c, WIDTH: tl.constexpr):
    i = tl.program_id(0) * WIDTH + tl.arange(0, WIDTH)
    x = tl.load(a + i)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(c + i, e / tl.sum(e, axis=0))


def _matmul(a, b, c, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rows[:, None] * K + (k + inner)[None, :])
        y = tl.load(b + (k + inner)[:, None] * N + columns[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.float16))

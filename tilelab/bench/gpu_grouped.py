"""Grouped GEMM against torch's grouped matmul: 8 groups of 4096 rows, and 32 of 256."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error, worst_error

N, K = 4096, 7168


def work(groups: int, rows: int) -> Work:
    """Uniform groups, bfloat16."""
    import torch

    from tilelab.kernels import grouped_gemm as op

    sets = [
        (
            torch.randn(groups * rows, K, dtype=torch.bfloat16, device="cuda"),
            torch.randn(groups, N, K, dtype=torch.bfloat16, device="cuda"),
            torch.arange(1, groups + 1, dtype=torch.int32, device="cuda") * rows,
        )
        for _ in range(2)
    ]

    def error() -> float:
        a, b, ends = sets[-1]
        out = op.grouped_gemm(a, b, ends)
        picked = (0, groups - 1)
        return max(relative_error(out[g * rows : (g + 1) * rows], a[g * rows : (g + 1) * rows].double() @ b[g].double().T) for g in picked)

    def other(a: Any, b: Any, ends: Any) -> object:
        return torch._grouped_mm(a, b.transpose(1, 2), offs=ends)

    peers: dict[str, Sequence[Launch]] = {"torch": [partial(other, *s) for s in sets]}
    return Work(ours=[partial(op.grouped_gemm, *s) for s in sets], peers=peers, error=partial(worst_error, sets[-1][:2], error))


def cases() -> list[Case]:
    """The two mixtures of the bar."""
    return [
        Case(
            family="grouped", name=f"bf16 {groups}x{rows} N{N} K{K}", flops=2.0 * groups * rows * N * K,
            bytes=2.0 * (groups * rows * (K + N) + groups * N * K), bound=4e-3, rival="torch", bar=0.95, aim=aim, make=partial(work,
                groups, rows),
        )
        for groups, rows, aim in ((8, 4096, 1.02), (32, 256, 1.05))
    ]

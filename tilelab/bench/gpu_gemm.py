"""GEMM against cuBLAS on the seven shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tilelab.bench.gpu import Case, Work, draw, relative_error, sets_for, worst_error

#: M, N, K
SHAPES = (
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 16384, 16384),
    (4096, 7168, 2048),
    (64, 7168, 7168),
)


#: M, N, K whose tiles do not come out even on 132 multiprocessors
UNEVEN = ((2560, 1792, 8192), (1536, 3072, 16384))


def stream_k(M: int, N: int, K: int) -> Work:
    """Even shares, beside whole tiles and cuBLAS."""
    import torch

    from tilelab.kernels import gemm, stream_k

    kind = torch.bfloat16
    sets = [
        (draw("random", M, K, dtype=kind), draw("random", N, K, dtype=kind), torch.empty(M, N, dtype=kind, device="cuda")) for _ in range(4)
    ]

    def error() -> float:
        a, b, c = sets[-1]
        c.fill_(float("nan"))
        stream_k.stream_k_gemm(a, b, out=c)
        return relative_error(c, stream_k.reference(a, b))

    return Work(
        ours=[partial(stream_k.stream_k_gemm, a, b, out=c) for a, b, c in sets],
        peers={
            "cublas": [partial(torch.matmul, a, b.T, out=c) for a, b, c in sets],
            "whole tiles": [partial(gemm.gemm, a, b, out=c) for a, b, c in sets],
        },
        error=partial(worst_error, sets[-1][:2], error),
    )


def work(M: int, N: int, K: int, dtype: str) -> Work:
    """X Wᵀ with both operands row-major, as torch's linear layer has them."""
    import torch

    from tilelab.kernels import gemm as op

    kind = getattr(torch, dtype)
    sets = [
        (
            torch.randn(M, K, dtype=kind, device="cuda"),
            torch.randn(N, K, dtype=kind, device="cuda"),
            torch.empty(M, N, dtype=kind, device="cuda"),
        )
        for _ in range(sets_for(2.0 * (M * K + N * K)))
    ]
    config = op.choose(M, N, K)

    def error() -> float:
        a, b, c = sets[-1]
        c.fill_(float("nan"))
        op.gemm(a, b, out=c)
        rows = max(1, min(M, (1 << 28) // N))  # float64 in pieces
        return max(relative_error(c[i : i + rows], a[i : i + rows].double() @ b.double().T) for i in range(0, M, rows))

    return Work(
        ours=[partial(op.gemm, a, b, out=c) for a, b, c in sets],
        peers={"cublas": [partial(torch.matmul, a, b.T, out=c) for a, b, c in sets]},
        error=partial(worst_error, sets[-1][:2], error),
        config=str(config),
    )


def case(name: str, M: int, N: int, K: int, make: Callable[[int, int, int], Work]) -> Case:
    """A bfloat16 product against cuBLAS."""
    return Case(
        family="gemm",
        name=f"{name} {M}x{N}x{K}",
        flops=2.0 * M * N * K,
        bytes=2.0 * (M * K + N * K + M * N),
        bound=4e-3,
        rival="cublas",
        bar=0.93,
        aim=1.0,
        make=partial(make, M, N, K),
    )


def cases() -> list[Case]:
    """The seven shapes, then stream-K where tiles do not come out even."""
    return [case("bf16", *shape, partial(work, dtype="bfloat16")) for shape in SHAPES] + [
        case("stream-K bf16", *shape, stream_k) for shape in UNEVEN
    ]

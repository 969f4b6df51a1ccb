"""2:4 sparse GEMM against cuSPARSELt (its own search picks its algorithm), float16."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import DRAWS, Case, Launch, Work, draw, relative_error

#: M, N, K
SHAPES = ((8192, 8192, 8192), (4096, 7168, 2048))


def work(M: int, N: int, K: int) -> Work:
    """A pruned A times the transpose of a dense B."""
    import torch

    from tilelab.kernels import sparse_gemm as op

    half = torch.float16
    sets: list[Any] = [(op.compress(draw("random", M, K, dtype=half)), draw("random", N, K, dtype=half)) for _ in range(2)]
    out = torch.empty((M, N), dtype=half, device="cuda")

    def error() -> float:
        errors = []
        for kind in DRAWS:
            a, b = op.compress(draw(kind, M, K, dtype=half)), draw(kind, N, K, dtype=half)
            out.fill_(float("nan"))
            op.sparse_gemm(a, b, out=out)
            dense = a.dense()
            errors += [relative_error(out[i : i + 2048], dense[i : i + 2048].double() @ b.double().T) for i in range(0, M, 2048)]
        return max(errors)

    peers: dict[str, Sequence[Launch]] = {}
    try:
        packed = [(torch._cslt_compress(a.dense()), b.T) for a, b in sets]
        best = torch._cslt_sparse_mm_search(*packed[0])
        peers["cusparselt"] = [partial(torch._cslt_sparse_mm, x, y, alg_id=best) for x, y in packed]
    except Exception as problem:
        print("no cuSPARSELt:", type(problem).__name__, str(problem)[:200])
    peers["cublas dense"] = [partial(torch.matmul, a.dense(), b.T, out=out) for a, b in sets]
    return Work(ours=[partial(op.sparse_gemm, a, b, out=out) for a, b in sets], peers=peers, error=error)


def cases() -> list[Case]:
    """Rates are of the dense product that it stands for."""
    return [
        Case(
            family="two_four",
            name=f"fp16 2:4 {M}x{N}x{K}",
            flops=2.0 * M * N * K,
            bytes=1.125 * M * K + 2.0 * (N * K + M * N),
            bound=1e-3,
            rival="cusparselt",
            bar=0.90,
            aim=1.0,
            make=partial(work, M, N, K),
        )
        for M, N, K in SHAPES
    ]

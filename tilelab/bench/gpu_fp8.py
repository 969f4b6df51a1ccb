"""FP8 GEMM with block scales against DeepGEMM (package ``sgl-deep-gemm``) and cuBLASLt."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import DRAWS, Case, Launch, Work, draw, relative_error, sets_for

#: M, N, K
SHAPES = ((8192, 8192, 8192), (4096, 7168, 2048))


def work(M: int, N: int, K: int) -> Work:
    """e4m3 operands with 1 × 128 and 128 × 128 scales, bfloat16 out."""
    import torch

    from tilelab.kernels import fp8_gemm as op

    sets: list[Any] = []
    for _ in range(sets_for(1.0 * (M * K + N * K), most=4)):
        a, sa = op.quantize(torch.randn(M, K, device="cuda"), square=False)
        b, sb = op.quantize(torch.randn(N, K, device="cuda"), square=True)
        sets.append((a, b, sa, sb))
    out = torch.empty(M, N, dtype=torch.bfloat16, device="cuda")

    def error() -> float:
        rows, errors = slice(0, min(M, 1024)), []
        for kind in DRAWS:
            (a, sa), (b, sb) = op.quantize(draw(kind, M, K), square=False), op.quantize(draw(kind, N, K), square=True)
            got = op.fp8_gemm(a, b, sa, sb)
            errors.append(relative_error(got[rows], op.reference(a[rows], b, sa[:, rows], sb)))
        return max(errors)

    halves = op.hopper(M, N, K, True, "bfloat16", 132, bn=192, stages=4, group=16, cn=32, split=2)
    halves(*sets[0], out)
    rows = slice(0, min(M, 1024))
    want = op.reference(sets[0][0][rows], sets[0][1], sets[0][2][:, rows], sets[0][3])
    print("two products a step: error", relative_error(out[rows], want))
    peers: dict[str, Sequence[Launch]] = {"ours, two products a step": [partial(halves, *s, out) for s in sets]}
    try:
        deep: Any = importlib.import_module("deep_gemm")
        pairs = [((a, sa.T.contiguous()), (b, sb)) for a, b, sa, sb in sets]
        ready = [((x, deep.get_mn_major_tma_aligned_tensor(s)), y) for (x, s), y in pairs]
        deep.fp8_gemm_nt(*ready[0], out)
        peers["deepgemm"] = [partial(deep.fp8_gemm_nt, x, y, out) for x, y in ready]
    except Exception as problem:
        print("no DeepGEMM:", type(problem).__name__, str(problem)[:200])
    try:
        scaled = [partial(torch._scaled_mm, a, b.T, sa.T, sb.T, out_dtype=torch.bfloat16) for a, b, sa, sb in sets]
        scaled[0]()
        peers["cublaslt"] = scaled
    except Exception as problem:
        print("no cuBLASLt with block scales:", type(problem).__name__, str(problem)[:200])
    return Work(ours=[partial(op.fp8_gemm, *s) for s in sets], peers=peers, error=error)


def tensorwise(M: int, N: int, K: int) -> Work:
    """One scale a tensor."""
    import torch

    from tilelab.kernels import fp8_gemm as op

    def make(kind: str) -> Any:
        x, y = draw(kind, M, K), draw(kind, N, K)
        sa, sb = x.abs().max() / 448, y.abs().max() / 448
        return (x / sa).to(torch.float8_e4m3fn), (y / sb).to(torch.float8_e4m3fn), sa.view(1), sb.view(1)

    sets = [make("random") for _ in range(2)]

    def error() -> float:
        errors = []
        for kind in DRAWS:
            a, b, sa, sb = make(kind)
            errors.append(relative_error(op.fp8_gemm(a, b, sa, sb)[:1024], op.reference(a[:1024], b, sa, sb)))
        return max(errors)

    peers = {"cublaslt": [partial(torch._scaled_mm, a, b.T, sa, sb, out_dtype=torch.bfloat16) for a, b, sa, sb in sets]}
    return Work(ours=[partial(op.fp8_gemm, *s) for s in sets], peers={**peers}, error=error)


def cases() -> list[Case]:
    """Both shapes with block scales, and one with a scale a tensor."""
    kinds = [(f"e4m3 block scales {M}x{N}x{K}", "deepgemm", partial(work, M, N, K), (M, N, K)) for M, N, K in SHAPES]
    kinds.append(("e4m3 tensor scales 8192x8192x8192", "cublaslt", partial(tensorwise, 8192, 8192, 8192), SHAPES[0]))
    return [
        Case(
            family="fp8",
            name=name,
            flops=2.0 * M * N * K,
            bytes=1.0 * (M * K + N * K) + 2.0 * M * N,
            bound=5e-3,
            rival=rival,
            bar=0.75,
            aim=1.0,
            make=make,
        )
        for name, rival, make, (M, N, K) in kinds
    ]

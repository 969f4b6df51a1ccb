"""Products that read weights once: GEMV against cuBLAS, and four-bit weights beside cuBLAS on bfloat16 ones."""

from __future__ import annotations

from functools import partial

from tilelab.bench.gpu import DRAWS, Case, Work, draw, relative_error, sets_for, worst_error

#: N, K
VECTORS = ((16384, 16384), (7168, 7168), (4096, 14336))
#: M, N, K
FOUR_BITS = ((1, 7168, 7168), (16, 7168, 7168), (64, 7168, 7168), (16, 28672, 8192), (4096, 7168, 2048))


def vector(N: int, K: int) -> Work:
    """W x."""
    import torch

    from tilelab.kernels import gemv as op

    kind = torch.bfloat16
    sets = [
        (draw("random", N, K, dtype=kind), draw("random", K, dtype=kind), torch.empty(N, dtype=kind, device="cuda"))
        for _ in range(sets_for(2.0 * N * K))
    ]

    def error() -> float:
        w, x, y = sets[-1]
        y.fill_(float("nan"))
        op.gemv(w, x, out=y)
        return relative_error(y, op.reference(w, x))

    return Work(
        ours=[partial(op.gemv, w, x, out=y) for w, x, y in sets],
        peers={"cublas": [partial(torch.mv, w, x, out=y) for w, x, y in sets]},
        error=partial(worst_error, sets[-1][:2], error),
    )


def four_bits(M: int, N: int, K: int) -> Work:
    """``x @ Wᵀ`` with W in four bits; cuBLAS reads W in bfloat16."""
    import torch

    from tilelab.kernels import w4a16 as op

    kind = torch.bfloat16
    sets = [
        (draw("random", M, K, dtype=kind), *op.quantize(draw("random", N, K, dtype=kind)), torch.empty(M, N, dtype=kind, device="cuda"))
        for _ in range(sets_for(0.52 * N * K))
    ]
    wide = [draw("random", N, K, dtype=kind) for _ in range(sets_for(2.0 * N * K))]

    def error() -> float:
        errors = []
        for how in DRAWS:
            a, (codes, scales) = draw(how, M, K, dtype=kind), op.quantize(draw(how, N, K, dtype=kind))
            errors.append(relative_error(op.w4a16_gemm(a, codes, scales), op.reference(a, codes, scales)))
        return max(errors)

    return Work(
        ours=[partial(op.w4a16_gemm, a, codes, scales, out=c) for a, codes, scales, c in sets],
        peers={"cublas bf16": [partial(torch.matmul, sets[0][0], w.T, out=sets[0][3]) for w in wide]},
        error=error,
        config=str(op.choose(M, N, K, 132)),
    )


def cases() -> list[Case]:
    """GEMV: the aim is a copy's bandwidth. Four bits: a quarter of the weights' bytes."""
    vectors = [
        Case(
            family="narrow",
            name=f"gemv bf16 {N}x{K}",
            flops=2.0 * N * K,
            bytes=2.0 * N * K,
            bound=4e-3,
            rival="cublas",
            bar=0.98,
            aim=1.0,
            make=partial(vector, N, K),
        )
        for N, K in VECTORS
    ]
    return vectors + [
        Case(
            family="narrow",
            name=f"w4a16 {M}x{N}x{K}",
            flops=2.0 * M * N * K,
            bytes=(0.5 + 2 / 128) * N * K + 2.0 * M * (N + K),
            bound=6e-3,  # weights are rounded to bfloat16 after their scale
            rival="cublas bf16",
            bar=1.0,
            aim=2.0,
            make=partial(four_bits, M, N, K),
        )
        for M, N, K in FOUR_BITS
    ]

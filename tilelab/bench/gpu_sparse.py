"""Sparse MLA prefill as a fraction of what cuBLAS gives on bfloat16 8192³ in the same run."""

from __future__ import annotations

from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Work, relative_error

HEADS, WIDTH, LATENT = 128, 576, 512
SCALE = (128 + 64) ** -0.5
PRODUCT = 2.0 * 8192**3


def data(queries: int, keys: int, picked: int) -> tuple[Any, Any, Any]:
    """q, kv and, for each query, distinct random rows."""
    import torch

    q = torch.randn(queries, HEADS, WIDTH, dtype=torch.bfloat16, device="cuda")
    kv = torch.randn(keys, WIDTH, dtype=torch.bfloat16, device="cuda")
    indices = torch.rand(queries, keys, device="cuda").topk(picked, dim=1).indices.to(torch.int32)
    return q, kv, indices


def work(queries: int, keys: int, picked: int) -> Work:
    """Forward; the rival is a cuBLAS product, compared by operations a second."""
    import torch

    from tilelab.kernels import sparse_mla as op

    sets = [data(queries, keys, picked) for _ in range(2)]
    pairs = [tuple(torch.randn(8192, 8192, dtype=torch.bfloat16, device="cuda") for _ in range(2)) for _ in range(2)]

    def error() -> float:
        q, kv, indices = sets[-1]
        out, _ = op.sparse_mla(q, kv, indices, scale=SCALE)
        some = [0, queries // 2, queries - 1]
        return relative_error(out[some], op.reference(q[some], kv, indices[some], scale=SCALE)[0])

    return Work(
        ours=[partial(op.sparse_mla, *s, scale=SCALE) for s in sets],
        peers={"cublas8192": [partial(torch.matmul, a, b.T) for a, b in pairs]},
        error=error,
    )


def backward(queries: int, keys: int, picked: int) -> Work:
    """Both gradients; no peer."""
    import torch

    from tilelab.kernels import sparse_mla as op

    q, kv, indices = data(queries, keys, picked)
    out, lse = op.sparse_mla(q, kv, indices, scale=SCALE)
    dout = torch.randn_like(out)
    call = partial(op.sparse_mla_backward, dout, q, kv, indices, out, lse, scale=SCALE)

    def error() -> float:
        dq, _ = call()
        some = [0, queries // 2, queries - 1]
        mine = q[some].double().requires_grad_()
        op.reference(mine, kv, indices[some], scale=SCALE)[0].backward(dout[some].double())
        return relative_error(dq[some], mine.grad)

    return Work(ours=[call], peers={}, error=error)


def cases() -> list[Case]:
    """4096 queries, 8192 keys, 2048 of them picked; backward with a quarter of the queries."""
    flops = 2.0 * HEADS * 2048 * (WIDTH + LATENT)
    return [
        Case(
            family="sparse",
            name="fwd 4096 of 8192, top-k 2048",
            flops=4096 * flops,
            bytes=2.0 * (8192 * WIDTH + 4096 * HEADS * (WIDTH + LATENT)),
            bound=6e-3,
            rival="cublas8192",
            bar=0.75,
            aim=0.86,
            make=partial(work, 4096, 8192, 2048),
            rival_flops=PRODUCT,
        ),
        Case(
            family="sparse",
            name="bwd 1024 of 8192, top-k 2048",
            flops=1024 * 2.5 * flops,
            bytes=2.0 * (3 * 8192 * WIDTH + 1024 * HEADS * (2 * WIDTH + 2 * LATENT)),
            bound=1e-2,
            rival="",
            bar=0.0,
            aim=0.0,
            make=partial(backward, 1024, 8192, 2048),
        ),
    ]

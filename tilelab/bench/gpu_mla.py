"""MLA decode, 128 heads, pages of 64 tokens, against flashinfer's fa3 MLA."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error

HEADS, WIDTH, LATENT, PAGE = 128, 576, 512, 64
SCALE = (128 + 64) ** -0.5


def flashinfer_peer(cache: Any, table: Any, lengths: Any, queries: Any) -> list[Launch] | None:
    """Flashinfer's paged MLA over the same cache, or None where the package is not there."""
    try:
        flashinfer: Any = importlib.import_module("flashinfer")
    except ImportError:
        return None
    import torch

    batch = queries[0].shape[0]
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(torch.empty(128 << 20, dtype=torch.uint8, device="cuda"), backend="fa3")
    pages = (lengths + PAGE - 1) // PAGE
    indptr = torch.zeros(batch + 1, dtype=torch.int32, device="cuda")
    indptr[1:] = pages.cumsum(0)
    indices = torch.cat([table[b, : int(pages[b])] for b in range(batch)])
    starts = torch.arange(batch + 1, dtype=torch.int32, device="cuda")
    wrapper.plan(starts, indptr, indices, lengths, HEADS, LATENT, WIDTH - LATENT, PAGE, False, SCALE, torch.bfloat16, torch.bfloat16)
    latent, rotary = cache[..., :LATENT], cache[..., LATENT:]
    return [partial(wrapper.run, q[..., :LATENT], q[..., LATENT:], latent, rotary, return_lse=False) for q in queries]


def work(batch: int, context: int) -> Work:
    """Pages in random order; the cache alone is far larger than the L2."""
    import torch

    from tilelab.kernels import mla as op

    per = -(-context // PAGE)
    cache = torch.randn(batch * per, PAGE, WIDTH, dtype=torch.bfloat16, device="cuda")
    table = torch.randperm(batch * per, device="cuda").to(torch.int32).view(batch, per)
    lengths = torch.full((batch,), context, dtype=torch.int32, device="cuda")
    queries = [torch.randn(batch, HEADS, WIDTH, dtype=torch.bfloat16, device="cuda") for _ in range(3)]

    def error() -> float:
        out, _ = op.mla_decode(queries[-1], cache, table, lengths, scale=SCALE)
        some = [0, batch // 2, batch - 1]
        want, _ = op.reference(queries[-1][some], cache, table[some], lengths[some], scale=SCALE)
        return relative_error(out[some], want)

    peers: dict[str, Sequence[Launch]] = {}
    other = flashinfer_peer(cache, table, lengths, queries)
    if other is not None:
        peers["flashinfer"] = other
    return Work(
        ours=[partial(op.mla_decode, q, cache, table, lengths, scale=SCALE) for q in queries],
        peers=peers,
        error=error,
        config=f"splits={op.choose_splits(batch, HEADS, context, 132)}",
    )


def cases() -> list[Case]:
    """Batches of 128 and 64 at contexts of 1024 to 32768."""
    return [
        Case(
            family="mla",
            name=f"decode b{batch} ctx{context}",
            flops=2.0 * batch * HEADS * context * (WIDTH + LATENT),
            bytes=2.0 * batch * (context * WIDTH + HEADS * (WIDTH + LATENT)),
            bound=6e-3,
            rival="flashinfer",
            bar=0.98 if context >= 4096 else 0.0,
            aim=1.12,
            make=partial(work, batch, context),
        )
        for batch, contexts in ((128, (1024, 4096, 8192, 32768)), (64, (4096, 8192, 32768)))
        for context in contexts
    ]

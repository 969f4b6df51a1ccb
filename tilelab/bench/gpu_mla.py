"""MLA decode, 128 heads, pages of 64 tokens, against flashinfer's fa3 MLA."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error

HEADS, WIDTH, LATENT, PAGE = 128, 576, 512, 64
SCALE = (128 + 64) ** -0.5


def flashinfer_peer(cache: Any, table: Any, lengths: Any, queries: Any) -> list[Launch] | None:
    """Flashinfer's paged MLA (its fa3 backend) over the same cache, or None where it is not there.

    Either the package, or ``FLASHINFER_MLA``: a module built from its sources (``csrc/batch_mla_sm90_*.cu``), for machines that lack
    what it imports.
    """
    import torch

    batch = queries[0].shape[0]
    pages = (lengths + PAGE - 1) // PAGE
    indptr = torch.zeros(batch + 1, dtype=torch.int32, device="cuda")
    indptr[1:] = pages.cumsum(0)
    indices = torch.cat([table[b, : int(pages[b])] for b in range(batch)])
    starts = torch.arange(batch + 1, dtype=torch.int32, device="cuda")
    floats = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    latent, rotary = cache[..., :LATENT], cache[..., LATENT:]
    built = os.environ.get("FLASHINFER_MLA")
    if built:
        module: Any = importlib.import_module("tvm_ffi").load_module(built)
        ints = torch.zeros(8 << 20, dtype=torch.uint8, device="cuda")
        staged = torch.zeros(8 << 20, dtype=torch.uint8, pin_memory=True)
        plan, used = module.plan(floats, ints, staged, starts.cpu(), indptr.cpu(), lengths.cpu(), HEADS, LATENT, False)
        ints[:used].copy_(staged[:used])
        out = torch.empty(batch, HEADS, LATENT, dtype=torch.bfloat16, device="cuda")
        return [
            partial(
                module.run, floats, ints, plan, q[..., :LATENT], q[..., LATENT:], latent, rotary, indices, out, None, 0, HEADS, PAGE,
                    SCALE, False, 1.0,
                1.0, None,
            )
            for q in queries
        ]
    try:
        flashinfer: Any = importlib.import_module("flashinfer")
    except ImportError:
        return None
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(floats, backend="fa3")
    wrapper.plan(starts, indptr, indices, lengths, HEADS, LATENT, WIDTH - LATENT, PAGE, False, SCALE, torch.bfloat16, torch.bfloat16)
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

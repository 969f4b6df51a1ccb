"""Split-KV decode with grouped heads against FA3's paged decode (``fa3-fwd``; flashinfer where it is there)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 64


def work(batch: int, context: int, narrow: bool = False) -> Work:
    """Uniform lengths, bfloat16; ``narrow``: a cache of e4m3, which the peers here do not read beside a bfloat16 q."""
    import torch

    from tilelab.kernels import decode as op

    per = -(-context // PAGE)
    caches = [torch.randn(batch * per, PAGE, KV_HEADS, DIM, dtype=torch.bfloat16, device="cuda") for _ in range(2)]
    # pages in order, so that an unpaged peer can read the same cache
    table = torch.arange(batch * per, dtype=torch.int32, device="cuda").view(batch, per)
    lengths = torch.full((batch,), context, dtype=torch.int32, device="cuda")
    queries = [torch.randn(batch, HEADS, DIM, dtype=torch.bfloat16, device="cuda") for _ in range(3)]

    if narrow:
        caches = [c.to(torch.float8_e4m3fn) for c in caches]

    def error() -> float:
        out, _ = op.decode(queries[-1], caches[0], caches[1], table, lengths)
        some = [0, batch - 1]
        want, _ = op.reference(queries[-1][some], caches[0], caches[1], table[some], lengths[some], kv_scales=op.ones("cuda"))
        return relative_error(out[some], want)

    ours = [partial(op.decode, q, caches[0], caches[1], table, lengths) for q in queries]
    config = f"splits={op.choose_splits(batch, KV_HEADS, context, 132)}"
    if narrow:
        return Work(ours=ours, peers={}, error=error, config=config)
    peers: dict[str, Sequence[Launch]] = {}
    try:
        fa3: Any = importlib.import_module("fa3_fwd_interface").flash_attn_with_kvcache
        plain = [c.view(batch, per * PAGE, KV_HEADS, DIM) for c in caches]
        calls = [partial(fa3, q[:, None], *plain, cache_seqlens=lengths, causal=True) for q in queries]
        calls[0]()
        peers["fa3"] = calls
    except Exception as problem:
        print("no FA3 decode:", type(problem).__name__, str(problem)[:200])
    try:
        flashinfer: Any = importlib.import_module("flashinfer")
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            torch.empty(256 << 20, dtype=torch.uint8, device="cuda"), "NHD", use_tensor_cores=True
        )
        starts = torch.arange(batch + 1, dtype=torch.int32, device="cuda") * per
        last = lengths - (per - 1) * PAGE
        wrapper.plan(starts, table.flatten(), last, HEADS, KV_HEADS, DIM, PAGE, q_data_type=torch.bfloat16)
        flash = [partial(wrapper.run, q, tuple(caches)) for q in queries]
        flash[0]()
        peers["flashinfer"] = flash
    except Exception as problem:
        print("no flashinfer decode:", type(problem).__name__, str(problem)[:200])
    return Work(ours=ours, peers=peers, error=error, config=config)


def cases() -> list[Case]:
    """From many short to few long sequences."""
    return [
        Case(
            family="decode",
            name=f"GQA 32/8 d128 b{batch} ctx{context}{' e4m3 cache' if narrow else ''}",
            flops=4.0 * batch * HEADS * context * DIM,
            bytes=(2.0 if narrow else 4.0) * batch * context * KV_HEADS * DIM,
            bound=6e-3,
            rival="" if narrow else "fa3",
            bar=0.0 if narrow else 0.95,
            aim=1.05,
            make=partial(work, batch, context, narrow),
        )
        for batch, context, narrow in ((128, 2048, False), (64, 8192, False), (16, 8192, False), (4, 32768, False), (64, 8192, True))
    ]

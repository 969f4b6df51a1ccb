"""FlashAttention forward against FA3 (package ``fa3-fwd``) and cuDNN, head size 128."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error

HEADS, DIM = 16, 128


def fa3() -> Any:
    """FA3's forward function, or None where no package has it."""
    for module in ("fa3_fwd_interface", "fa3_fwd", "flash_attn_interface"):
        try:
            return importlib.import_module(module).flash_attn_func
        except (ImportError, AttributeError):
            continue
    return None


def work(batch: int, length: int, causal: bool) -> Work:
    """q, k, v of 16 heads, bfloat16."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from tilelab.kernels import attention as op

    sets = [[torch.randn(batch, length, HEADS, DIM, dtype=torch.bfloat16, device="cuda") for _ in range(3)] for _ in range(3)]

    def error() -> float:
        q, k, v = sets[-1]
        out, _ = op.attention(q, k, v, causal=causal)
        picked = [(0, 0), (batch - 1, HEADS - 1)]
        return max(
            relative_error(
                out[b : b + 1, :, h : h + 1], op.reference(*(t[b : b + 1, :, h : h + 1] for t in (q, k, v)), causal=causal)[0]
            )
            for b, h in picked
        )

    def cudnn(q: Any, k: Any, v: Any) -> object:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=causal
            )

    peers: dict[str, Sequence[Launch]] = {"cudnn": [partial(cudnn, *s) for s in sets]}
    other = fa3()
    if other is not None:
        peers["fa3"] = [partial(other, *s, causal=causal) for s in sets]
    return Work(
        ours=[partial(op.attention, *s, causal=causal) for s in sets], peers=peers, error=error, config=f"bn={op.tile(DIM, DIM, causal)}"
    )


def cases() -> list[Case]:
    """16384 tokens in sequences of 4096, 8192 and 16384, full and causal."""
    return [
        Case(
            family="attention",
            name=f"fwd d128 {16384 // length}x{length} {'causal' if causal else 'full'}",
            flops=4.0 * 16384 * length * HEADS * DIM * (0.5 if causal else 1.0),
            bytes=2.0 * 4 * 16384 * HEADS * DIM,
            bound=6e-3,
            rival="fa3",
            bar=0.90,
            aim=1.0,
            make=partial(work, 16384 // length, length, causal),
        )
        for causal in (False, True)
        for length in (4096, 8192, 16384)
    ]

"""FlashAttention backward against torch's SDPA backward on cuDNN, head size 128."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import Case, Launch, Work, relative_error

HEADS, DIM = 16, 128


def cudnn_backward(q: Any, k: Any, v: Any, dout: Any, causal: bool) -> Callable[[], tuple[Any, ...]]:
    """What ``scaled_dot_product_attention`` calls in its backward when cuDNN is forced, on tensors [B, S, H, D]."""
    import torch

    q, k, v, dout = (t.transpose(1, 2) for t in (q, k, v, dout))
    forward = torch.ops.aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False)
    out, lse, cu_q, cu_k, longest_q, longest_k, seed, offset = forward[:8]
    return partial(
        torch.ops.aten._scaled_dot_product_cudnn_attention_backward,
        dout, q, k, v, out, lse, seed, offset, None, cu_q, cu_k, longest_q, longest_k, 0.0, causal,
    )  # fmt: skip


def work(batch: int, length: int, causal: bool, kv_heads: int = HEADS) -> Work:
    """q, k, v and the gradient of the output, bfloat16."""
    import torch

    from tilelab.kernels import attention as forward
    from tilelab.kernels import attention_backward as op

    shapes = [(batch, length, heads, DIM) for heads in (HEADS, kv_heads, kv_heads, HEADS)]
    sets = [[torch.randn(shape, dtype=torch.bfloat16, device="cuda") for shape in shapes] for _ in range(2)]
    calls = []
    for q, k, v, dout in sets:
        out, lse = forward.attention(q, k, v, causal=causal)
        calls.append(partial(op.attention_backward, dout, q, k, v, out, lse, causal=causal))

    def error() -> float:
        q, k, v, dout = sets[-1]
        own = calls[-1]()
        each = HEADS // kv_heads
        worst = 0.0
        for b, h in ((0, 0), (batch - 1, kv_heads - 1)):
            mine, heads = (slice(b, b + 1), slice(None), slice(h, h + 1)), (slice(b, b + 1), slice(None), slice(h * each, (h + 1) * each))
            want = op.reference(dout[heads], q[heads], k[mine], v[mine], causal=causal)
            worst = max(worst, *(relative_error(a[at], w) for a, at, w in zip(own, (heads, mine, mine), want, strict=True)))
        return worst

    peers: dict[str, Sequence[Launch]] = {}
    if kv_heads == HEADS:
        peers["cudnn"] = [cudnn_backward(q, k, v, dout, causal) for q, k, v, dout in sets]
    return Work(ours=calls, peers=peers, error=error, config=f"kv_heads={kv_heads}")


def cases() -> list[Case]:
    """16384 tokens in sequences of 4096, 8192 and 16384, full and causal."""
    return [
        Case(
            family="backward", name=f"bwd d128 {16384 // length}x{length} {'causal' if causal else 'full'}",
            flops=10.0 * 16384 * length * HEADS * DIM * (0.5 if causal else 1.0), bytes=2.0 * 8 * 16384 * HEADS * DIM, bound=8e-3,
            rival="cudnn", bar=0.85, aim=1.0, make=partial(work, 16384 // length, length, causal),
        )
        for causal in (False, True)
        for length in (4096, 8192, 16384)
    ]  # fmt: skip

"""The two operators before sparse attention: the FP8 indexer against DeepGEMM's, and the top-k selector against torch.topk."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from tilelab.bench.gpu import DRAWS, Case, Launch, Work, draw, relative_error

H, K = 64, 2048
#: queries, keys, causal
LOGITS = ((4096, 8192, False), (4096, 8192, True), (2048, 32768, True))
#: rows, columns
ROWS = ((4096, 8192), (2048, 32768))


def ranges(Q: int, S: int, causal: bool) -> Any:
    """Starts and ends: the queries are the last ones of S tokens."""
    import torch

    ends = (
        torch.arange(S - Q + 1, S + 1, dtype=torch.int32, device="cuda")
        if causal
        else torch.full((Q,), S, dtype=torch.int32, device="cuda")
    )
    return torch.zeros(Q, dtype=torch.int32, device="cuda"), ends


def logits(Q: int, S: int, causal: bool) -> Work:
    """Logits of every query and key."""
    import torch

    from tilelab.kernels import indexer as op

    starts, ends = ranges(Q, S, causal)

    def make(kind: str) -> Any:
        q, k = draw(kind, Q, H, 128), draw(kind, S, 128)
        scale = k.abs().amax(1).clamp_min(1e-10) / 448
        tight = (q / q.abs().amax(-1, keepdim=True).clamp_min(1e-10) * 448).to(torch.float8_e4m3fn)
        return tight, (k / scale[:, None]).to(torch.float8_e4m3fn), scale, draw("random", Q, H)

    sets = [make("random") for _ in range(2)]

    def error() -> float:
        errors = []
        for kind in DRAWS:
            q, k, scale, weights = make(kind)
            got = op.indexer(q, k, scale, weights, starts=starts, ends=ends)
            rows = slice(Q - 32, Q)
            want = op.reference(q[rows], k, scale, weights[rows], starts[rows], ends[rows])
            seen = torch.isfinite(want)
            if not torch.equal(torch.isfinite(got[rows]), seen):
                return float("inf")
            errors.append(relative_error(got[rows][seen], want[seen]))
        return max(errors)

    peers: dict[str, Sequence[Launch]] = {}
    try:
        deep: Any = importlib.import_module("deep_gemm")
        peers["deepgemm"] = [partial(deep.fp8_mqa_logits, q, (k, scale), w, starts, ends, clean_logits=False) for q, k, scale, w in sets]
        peers["deepgemm"][0]()
    except Exception as problem:
        peers.pop("deepgemm", None)
        print("no DeepGEMM indexer:", type(problem).__name__, str(problem)[:200])
    return Work(ours=[partial(op.indexer, *s, starts=starts, ends=ends, clean=False) for s in sets], peers=peers, error=error)


def select(R: int, L: int) -> Work:
    """The 2048 largest of each row; error is 0 if every row is what a stable sort gives, else infinite."""
    import torch

    from tilelab.kernels import topk as op

    sets = [draw("random", R, L) for _ in range(2)]
    starts, ends = ranges(R, L, False)

    def error() -> float:
        few = torch.randint(0, 40, (R, L), device="cuda").float()
        for x in (few, draw("heavy tail", R, L), *sets):
            last = torch.randint(0, L + 1, (R,), dtype=torch.int32, device="cuda")
            last[: R // 2] = L
            got = op.topk(x, K, starts=starts, ends=last)
            rows = torch.cat([torch.arange(32), torch.arange(R - 32, R)]).cuda()
            if not torch.equal(got[rows], op.reference(x[rows], K, starts[rows], last[rows])):
                return float("inf")
        return 0.0

    return Work(
        ours=[partial(op.topk, x, K, starts=starts, ends=ends) for x in sets],
        peers={"torch.topk": [partial(torch.topk, x, K, dim=1, sorted=False) for x in sets]},
        error=error,
    )


def cases() -> list[Case]:
    """Causal cases count the products that are seen."""
    found = [
        Case(
            family="indexer",
            name=f"e4m3 {Q} queries, {S} keys{', causal' if causal else ''}",
            flops=2.0 * (Q * (S - Q / 2) if causal else Q * S) * H * 128,
            bytes=4.0 * Q * S + Q * H * 132.0 + S * 132.0,
            bound=1e-3,
            rival="deepgemm",
            bar=0.95,
            aim=1.0,
            make=partial(logits, Q, S, causal),
        )
        for Q, S, causal in LOGITS
    ]
    return found + [
        Case(
            family="indexer",
            name=f"top {K} of {L}, {R} rows",
            flops=1.0 * R * L,
            bytes=4.0 * R * (L + K),
            bound=0.0,
            rival="torch.topk",
            bar=1.0,
            aim=4.0,
            make=partial(select, R, L),
        )
        for R, L in ROWS
    ]

"""Lightning indexer of DeepSeek sparse attention, in FP8: how much each query wants each key, before attention looks at any.

q [Q, H, D] and k [S, D] float8_e4m3fn (D 128), k_scale [S] float32 (one scale a key), weights [Q, H] float32 (the scale of q goes in
here), starts and ends [Q] int32 (query i sees the keys starts[i] … ends[i] − 1) → logits [Q, S] float32:

    logits[i, s] = k_scale[s] · Σₕ weights[i, h] · max(0, q[i, h] · k[s])

(DeepSeek-V3.2-Exp report, section 2.1, https://github.com/deepseek-ai/DeepSeek-V3.2-Exp; the operator that ``topk`` reads.)

- ``hopper``: a block owns ``bq`` queries with all their heads, 256 columns of one product; a producer warp streams keys through a ring with
  TMA, and two warpgroups take 64 keys of each tile: keys are the rows, so that the sum over heads stays in a thread and its three
  neighbours. While one warpgroup sums, the other multiplies. Tiles that no query of the block sees are not visited.
- ``portable``: the same with ``T.gemm``, for every target with FP8 matrix cores.

Two numbers (4096 queries, 8192 keys, 64 heads): 0.55 PFLOP → 0.26 ms at 2140 TFLOP/s; 2.1 G maxima and as many multiply-adds, 0.13 ms on
the ordinary cores beside them; 134 MB out → 32 µs.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import release

if TYPE_CHECKING:
    import torch

FP8 = "float8_e4m3fn"
DIM = 128


@tilelang.jit
def hopper(Q: int, S: int, H: int = 64, bq: int = 4, stages: int = 4) -> Any:
    """The warp-specialised kernel for sm_90a: ``(q [Q · H, D], k, k_scale, weights, starts, ends, logits)``."""
    bs, rows, width = 128, 64, bq * H

    @T.macro
    def span(starts, ends, block, first, tiles):
        """The tiles of keys that the block's queries see: where they begin, and how many."""
        low, high = T.alloc_var("int32", init=S), T.alloc_var("int32", init=0)
        for i in T.serial(bq):
            if block * bq + i < Q and starts[block * bq + i] < ends[block * bq + i]:
                low = T.min(low, T.max(starts[block * bq + i], 0))
                high = T.max(high, T.min(ends[block * bq + i], S))
        first[0] = low // bs
        tiles[0] = T.if_then_else(high > low, T.ceildiv(high, bs) - low // bs, 0)

    @T.macro
    def consume(wg, q, k, ready, full, free, s, total, w, scale, k_scale, weights, starts, ends, logits, block):
        T.inc_max_nreg(232)
        first, tiles = [T.alloc_local((1,), "int32") for _ in range(2)]
        span(starts, ends, block, first, tiles)
        for c in T.Parallel(width):
            w[c] = T.if_then_else(block * bq + c // H < Q, weights[T.min(block * bq + c // H, Q - 1), c % H], 0.0)
        T.mbarrier_wait_parity(ready, 0)
        for t in T.serial(tiles[0]):
            at = t % stages
            T.mbarrier_wait_parity(full[at], (t // stages) & 1)
            T.wgmma_gemm(k[at, wg * rows : wg * rows + rows, :], q, s, transpose_B=True, clear_accum=True)
            for r in T.Parallel(rows):
                scale[r] = k_scale[T.min((first[0] + t) * bs + wg * rows + r, S - 1)]
            T.wait_wgmma(0)
            release(free, at)
            for r, c in T.Parallel(rows, width):
                s[r, c] = T.max(s[r, c], 0.0) * w[c]
            T.reduce_sum(T.reshape(s, (rows, bq, H)), total, dim=2)
            for r, i in T.Parallel(rows, bq):
                key = (first[0] + t) * bs + wg * rows + r
                if block * bq + i < Q and key >= starts[block * bq + i] and key < T.min(ends[block * bq + i], S):
                    logits[block * bq + i, key] = total[r, i] * scale[r]

    @T.prim_func
    def main(
        q_in: T.Tensor((Q * H, DIM), FP8), k_in: T.Tensor((S, DIM), FP8), k_scale: T.Tensor((S,), "float32"),
        weights: T.Tensor((Q, H), "float32"), starts: T.Tensor((Q,), "int32"), ends: T.Tensor((Q,), "int32"),
        logits: T.Tensor((Q, S), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(Q, bq), threads=384) as block:
            q, k = T.alloc_shared((width, DIM), FP8), T.alloc_shared((stages, bs, DIM), FP8)
            s0, s1 = [T.alloc_fragment((rows, width), "float32") for _ in range(2)]
            t0, t1 = [T.alloc_fragment((rows, bq), "float32") for _ in range(2)]
            w0, w1 = [T.alloc_fragment((width,), "float32") for _ in range(2)]
            scale0, scale1 = [T.alloc_fragment((rows,), "float32") for _ in range(2)]
            ready, full, free = T.alloc_barrier([1]), T.alloc_barrier([1] * stages), T.alloc_barrier([8] * stages)
            tx = T.get_thread_binding()
            if tx >= 256:
                T.dec_max_nreg(40)
                if tx < 288:
                    first, tiles = [T.alloc_local((1,), "int32") for _ in range(2)]
                    span(starts, ends, block, first, tiles)
                    T.tma_copy(q_in[block * width : (block + 1) * width, :], q, barrier=ready[0])
                    release(ready, 0)
                    for t in T.serial(tiles[0]):
                        at = t % stages
                        key = (first[0] + t) * bs
                        T.mbarrier_wait_parity(free[at], ((t // stages) & 1) ^ 1)
                        T.tma_copy(k_in[key : key + bs, :], k[at, :, :], barrier=full[at])
                        release(full, at)
            elif tx < 128:
                consume(0, q, k, ready, full, free, s0, t0, w0, scale0, k_scale, weights, starts, ends, logits, block)
            else:
                consume(1, q, k, ready, full, free, s1, t1, w1, scale1, k_scale, weights, starts, ends, logits, block)

    return main


@tilelang.jit
def portable(Q: int, S: int, H: int = 64, bq: int = 1, bs: int = 64, stages: int = 2) -> Any:
    """The same for every target with FP8 matrix cores, with the same arguments."""
    width = bq * H

    @T.prim_func
    def main(
        q_in: T.Tensor((Q * H, DIM), FP8), k_in: T.Tensor((S, DIM), FP8), k_scale: T.Tensor((S,), "float32"),
        weights: T.Tensor((Q, H), "float32"), starts: T.Tensor((Q,), "int32"), ends: T.Tensor((Q,), "int32"),
        logits: T.Tensor((Q, S), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(S, bs), T.ceildiv(Q, bq), threads=128) as (bx, by):
            q, k = T.alloc_shared((width, DIM), FP8), T.alloc_shared((bs, DIM), FP8)
            s, total = T.alloc_fragment((bs, width), "float32"), T.alloc_fragment((bs, bq), "float32")
            T.copy(q_in[by * width, 0], q)
            T.copy(k_in[bx * bs, 0], k)
            T.gemm(k, q, s, transpose_B=True, clear_accum=True)
            for r, c in T.Parallel(bs, width):
                s[r, c] = T.max(s[r, c], 0.0) * weights[T.min(by * bq + c // H, Q - 1), c % H]
            T.reduce_sum(T.reshape(s, (bs, bq, H)), total, dim=2)
            for r, i in T.Parallel(bs, bq):
                key = bx * bs + r
                if by * bq + i < Q and key >= starts[by * bq + i] and key < T.min(ends[by * bq + i], S):
                    logits[by * bq + i, key] = total[r, i] * k_scale[key]

    return main


@lru_cache(maxsize=256)
def build(fast: bool, Q: int, S: int, H: int) -> Any:
    """The compiled kernel of one problem."""
    return hopper(Q, S, H, bq=256 // H) if fast else portable(Q, S, H)


def indexer(
    q: "torch.Tensor", k: "torch.Tensor", k_scale: "torch.Tensor", weights: "torch.Tensor", *, starts: "torch.Tensor | None" = None,
    ends: "torch.Tensor | None" = None, clean: bool = True,
) -> "torch.Tensor":  # fmt: skip
    """How much each query wants each key.

    Args:
        q: [Q, H, 128] float8_e4m3fn, contiguous; H 32, 64 or 128.
        k: [S, 128] float8_e4m3fn.
        k_scale: [S] float32.
        weights: [Q, H] float32.
        starts: [Q] int32, each query's first key; all 0 if None.
        ends: [Q] int32, the end of each query's keys; all S if None.
        clean: write −inf where a query does not see a key; otherwise those places hold anything (``topk`` does not read them).

    Returns:
        logits [Q, S] float32.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    checks.tensor("q", q, 3, (FP8,))
    checks.tensor("k", k, 2, (FP8,))
    (Q, H, D), S = q.shape, k.shape[0]
    checks.require(D == DIM and k.shape[1] == DIM, f"q and k must have {DIM} columns, but they have {D} and {k.shape[1]}")
    checks.require(H in (32, 64, 128), f"q must have 32, 64 or 128 heads, but it has {H}")
    checks.require(min(Q, S) > 0, f"there must be queries and keys, but there are {Q} and {S}")
    checks.tensor("k_scale", k_scale, 1, ("float32",))
    checks.tensor("weights", weights, 2, ("float32",))
    checks.require(k_scale.shape[0] == S, f"k_scale must have {S} elements, but it has {k_scale.shape[0]}")
    checks.require(tuple(weights.shape) == (Q, H), f"weights must have shape {(Q, H)}, but they have {tuple(weights.shape)}")
    checks.same_device(q=q, k=k, k_scale=k_scale, weights=weights, starts=starts, ends=ends)
    for name, value in (("starts", starts), ("ends", ends)):
        if value is not None:
            checks.tensor(name, value, 1, ("int32",))
            checks.require(value.shape[0] == Q, f"{name} must have one entry for each of the {Q} queries, but it has {value.shape[0]}")
    first = torch.zeros(Q, dtype=torch.int32, device=q.device) if starts is None else starts
    last = torch.full((Q,), S, dtype=torch.int32, device=q.device) if ends is None else ends
    logits = torch.empty((Q, S), dtype=torch.float32, device=q.device)
    if clean:
        logits.fill_(-float("inf"))
    build(checks.hopper(q), Q, S, H)(q.view(Q * H, DIM), k, k_scale, weights, first, last, logits)
    return logits


def reference(
    q: "torch.Tensor", k: "torch.Tensor", k_scale: "torch.Tensor", weights: "torch.Tensor", starts: "torch.Tensor", ends: "torch.Tensor"
) -> "torch.Tensor":
    """The same in torch, in float64, −inf where a query does not see a key."""
    import torch

    scores = torch.einsum("qhd,sd->qhs", q.double(), k.double()).clamp_min(0)
    logits = torch.einsum("qhs,qh->qs", scores, weights.double()) * k_scale.double()
    at = torch.arange(k.shape[0], device=k.device)
    return logits.masked_fill((at < starts[:, None]) | (at >= ends[:, None]), -float("inf"))

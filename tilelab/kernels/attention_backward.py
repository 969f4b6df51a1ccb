"""FlashAttention backward, and both directions as a ``torch.autograd.Function``: the scores are computed again, tile by tile, and never
stored.

From q, k, v, out and dout (shapes, masks and packed sequences as in ``attention``) and lse [H, tokens] float32 come dq, dk and dv. Three
kernels: ``prepare`` works out delta = Σ dout · out of each row, and zeroes the float32 sum of dq; the main one owns a tile of keys and
walks over the queries that see it (of all query heads that share the key head), adding its part of dq to that sum; ``finish`` scales and
rounds dq. The sum is an atomic one: dq may differ in its last bits from run to run; dk and dv do not.

``hopper`` (head sizes 64 and 128) follows the schedule of FlashAttention-3's backward (Shah et al. 2024,
https://arxiv.org/abs/2407.08608), written anew in TileLang. Each of two warpgroups owns 64 keys and holds their dk and dv in registers;
scores are transposed, so that Pᵀ and dSᵀ go to their products from registers; only dS crosses over through shared memory, for dq. The
scores of the next queries are in flight while dq is written, and two warps of the producer add dq to memory with TMA reductions.
``portable`` takes every head size.

Two numbers (64 queries × 128 keys, D 128): 2560 tensor cycles, about 2900 of shared memory (both score products read both operands from
there).
"""

from functools import lru_cache
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tilelab.kernels import checks
from tilelab.kernels.attention import FAST, LOG2E, Problem, attention, describe
from tilelab.kernels.parts import release

R, BN = 64, 128  # keys a warpgroup, and a block


@tilelang.jit(pass_configs=FAST)
def hopper(
    batch: int, heads: int, kv_heads: int, tokens_q: int, tokens_k: int, padded: int, longest_q: int, longest_k: int, dim: int = 128,
    causal: bool = False, window: int = 0, varlen: bool = False, dtype: str = "bfloat16", scale: float = 128**-0.5, stages: int = 2,
) -> Any:  # fmt: skip
    """The warp-specialised kernel for sm_90a: ``(Q, K, V, dO, LSE, Delta, cu_q, cu_k, dQ, dK, dV)``; three of them are ``prepare``'s."""
    s2, group, none = scale * LOG2E, heads // kv_heads, -T.infinity("float32")
    bm = R if dim > R else 2 * R  # queries a step
    rows, cols = (R, dim // 2) if bm == R else (R, dim)  # of the part of dq that one warpgroup multiplies

    def step(i: Any, nm: Any) -> tuple[Any, Any]:
        """Step → (query tile, head within the group)."""
        return (i % nm, i // nm) if group > 1 else (i, 0)

    @T.macro
    def load(X, Y, at, head, row, x, y, full, s):
        T.tma_copy(X[at : at + bm, head, :], x[s, :, :], barrier=full[s])
        T.tma_copy(Y[head, row : row + bm], y[s, :], barrier=full[s])
        release(full, s)

    @T.macro
    def reduce(w, n, nm, base, kv_head, dQ, dq, dq_full, dq_free):
        for i in T.serial(n):
            tile, head = step(i, nm)
            top = base + tile * bm + (0 if bm == R else w * R)
            left = w * cols if bm == R else 0
            T.mbarrier_wait_parity(dq_full[w], i & 1)
            T.atomic_add(dQ[kv_head * group + head, top : top + R, left : left + cols], dq, use_tma=True)
            release(dq_free, w)

    @T.macro
    def mask(S, key, row, lk, shift):
        """Scores (key, query) that are not seen; rows past the last query have an LSE of +inf instead."""
        edge = key + R > lk
        if causal:
            edge = T.Or(edge, key + R - 1 > row + shift)
        if window > 0:
            edge = T.Or(edge, key <= row + bm - 1 + shift - window)
        if edge:
            for r, c in T.Parallel(R, bm):
                seen = key + r < (T.min(lk, row + c + shift + 1) if causal else lk)
                if window > 0:
                    S[r, c] = T.if_then_else(T.And(seen, key + r > row + c + shift - window), S[r, c], none)
                else:
                    S[r, c] = T.if_then_else(seen, S[r, c], none)

    @T.macro
    def consume(
        w,
        k,
        v,
        q,
        do,
        lse,
        delta,
        ds,
        dq,
        kv_full,
        q_full,
        q_free,
        do_full,
        do_free,
        dq_full,
        dq_free,
        dK,
        dV,
        S,
        dP,
        P,
        dS,
        aK,
        aV,
        aQ,
        out,
        n,
        nm,
        low,
        at,
        key,
        lk,
        shift,
        kv_head,
    ):
        T.inc_max_nreg(240)
        T.fill(aK, 0)
        T.fill(aV, 0)
        T.mbarrier_wait_parity(kv_full[0], 0)
        if n > 0:
            T.mbarrier_wait_parity(q_full[0], 0)
            T.wgmma_gemm(k[w * R : w * R + R, :], q[0, :, :], S, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
        for i in T.serial(n):
            s = i % stages
            T.mbarrier_wait_parity(do_full[s], (i // stages) & 1)
            T.wgmma_gemm(v[w * R : w * R + R, :], do[s, :, :], dP, transpose_B=True, clear_accum=True)
            mask(S, key, (low + step(i, nm)[0]) * bm, lk, shift)
            for r, c in T.Parallel(R, bm):
                S[r, c] = T.exp2(S[r, c] * s2 - lse[s, c])
            T.copy(S, P)
            T.wgmma_gemm(P, do[s, :, :], aV)
            T.wait_wgmma(1)
            for r, c in T.Parallel(R, bm):
                S[r, c] *= dP[r, c] - delta[s, c]
            T.copy(S, dS)
            T.copy(dS, ds[i & 1, w * R : w * R + R, :])
            T.wgmma_gemm(dS, q[s, :, :], aK)
            T.fence_proxy_async()
            T.sync_threads(8, 256)
            T.wait_wgmma(1)
            release(do_free, s)
            if bm == R:
                T.wgmma_gemm(ds[i & 1, :, :], k[:, w * cols : w * cols + cols], aQ, transpose_A=True, clear_accum=True)
            else:
                T.wgmma_gemm(ds[i & 1, :, w * R : w * R + R], k, aQ, transpose_A=True, clear_accum=True)
            if i + 1 < n:
                T.mbarrier_wait_parity(q_full[(i + 1) % stages], ((i + 1) // stages) & 1)
            T.wgmma_gemm(k[w * R : w * R + R, :], q[(i + 1) % stages, :, :], S, transpose_B=True, clear_accum=True)  # unused after the last
            T.wait_wgmma(2)
            release(q_free, s)
            T.wait_wgmma(1)
            T.mbarrier_wait_parity(dq_free[w], (i & 1) ^ 1)
            T.copy(aQ, dq)
            T.fence_proxy_async()
            T.mbarrier_arrive(dq_full[w])
            T.wait_wgmma(0)  # no product may be in flight at the loop's end: ptxas would serialise them all
        for r, c in T.Parallel(R, dim):
            aK[r, c] *= scale
        T.copy(aK, out)
        for r, c in T.Parallel(R, dim):
            if key + r < lk:
                dK[at + r, kv_head, c] = out[r, c]
        T.copy(aV, out)
        for r, c in T.Parallel(R, dim):
            if key + r < lk:
                dV[at + r, kv_head, c] = out[r, c]

    @T.prim_func
    def main(
        Q: T.Tensor((tokens_q, heads, dim), dtype), K: T.Tensor((tokens_k, kv_heads, dim), dtype), V: T.Tensor((tokens_k, kv_heads, dim),
        dtype), dO: T.Tensor((tokens_q, heads, dim), dtype), LSE: T.Tensor((heads, padded), "float32"), Delta: T.Tensor((heads, padded),
        "float32"), cu_q: T.Tensor((batch + 1,), "int32"), cu_k: T.Tensor((batch + 1,), "int32"), dQ: T.Tensor((heads, padded, dim),
        "float32"), dK: T.Tensor((tokens_k, kv_heads, dim), dtype), dV: T.Tensor((tokens_k, kv_heads, dim), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(longest_k, BN), kv_heads, batch, threads=384) as (x, kv_head, b):
            k, v = [T.alloc_shared((BN, dim), dtype) for _ in range(2)]
            q, do = [T.alloc_shared((stages, bm, dim), dtype) for _ in range(2)]
            lse, delta = [T.alloc_shared((stages, bm), "float32") for _ in range(2)]
            ds = T.alloc_shared((2, BN, bm), dtype)
            dq0, dq1 = [T.alloc_shared((rows, cols), "float32") for _ in range(2)]
            S0, S1, dP0, dP1 = [T.alloc_fragment((R, bm), "float32") for _ in range(4)]
            P0, P1, dS0, dS1 = [T.alloc_fragment((R, bm), dtype) for _ in range(4)]
            aK0, aK1, aV0, aV1 = [T.alloc_fragment((R, dim), "float32") for _ in range(4)]
            aQ0, aQ1 = [T.alloc_fragment((rows, cols), "float32") for _ in range(2)]
            O0, O1 = [T.alloc_fragment((R, dim), dtype) for _ in range(2)]
            kv_full = T.alloc_barrier([1])
            q_full, do_full = T.alloc_barrier([1] * stages), T.alloc_barrier([1] * stages)
            q_free, do_free = T.alloc_barrier([8] * stages), T.alloc_barrier([8] * stages)
            dq_full, dq_free = T.alloc_barrier([128] * 2), T.alloc_barrier([1] * 2)
            tx = T.get_thread_binding()
            q0, k0, lq, lk, base, low, nm, n = [T.alloc_var("int32") for _ in range(8)]
            if varlen:
                q0 = cu_q[b]
                k0 = cu_k[b]
                lq = cu_q[b + 1] - q0
                lk = cu_k[b + 1] - k0
                base = (q0 // BN + b) * BN
            else:
                q0 = b * longest_q
                k0 = b * longest_k
                lq = longest_q
                lk = longest_k
                base = b * T.ceildiv(longest_q, BN) * BN
            low = T.max(0, x * BN - lk + lq) // bm if causal else 0
            nm = T.ceildiv(lq, bm)
            if window > 0:
                nm = T.min(nm, T.ceildiv(T.max(0, x * BN + BN - 1 + window - lk + lq), bm))
            nm = T.if_then_else(x * BN < lk, T.max(0, nm - low), 0)
            n = nm * group
            if tx >= 256:
                T.dec_max_nreg(24)
                if tx < 288:
                    T.tma_copy(K[k0 + x * BN : k0 + x * BN + BN, kv_head, :], k, barrier=kv_full[0])
                    T.tma_copy(V[k0 + x * BN : k0 + x * BN + BN, kv_head, :], v, barrier=kv_full[0])
                    release(kv_full, 0)
                    for i in T.serial(n):
                        s = i % stages
                        tile, head = step(i, nm)
                        row = (low + tile) * bm
                        T.mbarrier_wait_parity(q_free[s], ((i // stages) & 1) ^ 1)
                        load(Q, LSE, q0 + row, kv_head * group + head, base + row, q, lse, q_full, s)
                        T.mbarrier_wait_parity(do_free[s], ((i // stages) & 1) ^ 1)
                        load(dO, Delta, q0 + row, kv_head * group + head, base + row, do, delta, do_full, s)
                elif tx < 320:
                    reduce(0, n, nm, base + low * bm, kv_head, dQ, dq0, dq_full, dq_free)
                elif tx < 352:
                    reduce(1, n, nm, base + low * bm, kv_head, dQ, dq1, dq_full, dq_free)
            elif tx < 128:
                consume(0, k, v, q, do, lse, delta, ds, dq0, kv_full, q_full, q_free, do_full, do_free, dq_full, dq_free, dK, dV, S0, dP0,
                    P0, dS0, aK0, aV0, aQ0, O0, n, nm, low, k0 + x * BN, x * BN, lk, lk - lq, kv_head)  # fmt: skip
            else:
                consume(1, k, v, q, do, lse, delta, ds, dq1, kv_full, q_full, q_free, do_full, do_free, dq_full, dq_free, dK, dV, S1, dP1,
                    P1, dS1, aK1, aV1, aQ1, O1, n, nm, low, k0 + x * BN + R, x * BN + R, lk, lk - lq, kv_head)  # fmt: skip

    return main


@tilelang.jit
def prepare(
    batch: int, heads: int, tokens: int, padded: int, longest: int, dim: int, dim_v: int, varlen: bool = False, dtype: str = "bfloat16",
    br: int = 32,
) -> Any:  # fmt: skip
    """``(O, dO, lse, cu_q, LSE, Delta, dQ)``: what the main kernel needs of each row, sequences padded to whole tiles of 128 rows.

    LSE is in bits, and +inf for rows that see nothing or are padding, so that their probabilities come out as 0.
    """

    @T.prim_func
    def main(
        O: T.Tensor((tokens, heads, dim_v), dtype), dO: T.Tensor((tokens, heads, dim_v), dtype), lse: T.Tensor((heads, tokens), "float32"),
        cu_q: T.Tensor((batch + 1,), "int32"), LSE: T.Tensor((heads, padded), "float32"), Delta: T.Tensor((heads, padded), "float32"),
        dQ: T.Tensor((heads, padded, dim), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(longest, BN) * (BN // br), heads, batch, threads=128) as (x, head, b):
            products, sums = T.alloc_fragment((br, dim_v), "float32"), T.alloc_fragment((br,), "float32")
            q0, lq, base = [T.alloc_var("int32") for _ in range(3)]
            if varlen:
                q0 = cu_q[b]
                lq = cu_q[b + 1] - q0
                base = (q0 // BN + b) * BN
            else:
                q0 = b * longest
                lq = longest
                base = b * T.ceildiv(longest, BN) * BN
            if x * br < T.ceildiv(lq, BN) * BN:
                for r, c in T.Parallel(br, dim_v):
                    at = T.min(q0 + x * br + r, tokens - 1)
                    products[r, c] = T.if_then_else(
                        x * br + r < lq, T.cast(O[at, head, c], "float32") * T.cast(dO[at, head, c], "float32"), 0.0
                    )
                T.reduce_sum(products, sums, dim=1)
                for r in T.Parallel(br):
                    own = lse[head, T.min(q0 + x * br + r, tokens - 1)]
                    seen = T.And(x * br + r < lq, own > -T.infinity("float32"))
                    LSE[head, base + x * br + r] = T.if_then_else(seen, own * LOG2E, T.infinity("float32"))
                    Delta[head, base + x * br + r] = sums[r]
                for r, c in T.Parallel(br, dim):
                    dQ[head, base + x * br + r, c] = 0.0

    return main


@tilelang.jit
def finish(
    batch: int, heads: int, tokens: int, padded: int, longest: int, dim: int, varlen: bool = False, dtype: str = "bfloat16",
    scale: float = 1.0, br: int = 32,
) -> Any:  # fmt: skip
    """``(sums, cu_q, dQ)``: the float32 sums of dq, scaled and rounded."""

    @T.prim_func
    def main(
        sums: T.Tensor((heads, padded, dim), "float32"), cu_q: T.Tensor((batch + 1,), "int32"), dQ: T.Tensor((tokens, heads, dim), dtype)
    ):
        with T.Kernel(T.ceildiv(longest, br), heads, batch, threads=128) as (x, head, b):
            q0, lq, base = [T.alloc_var("int32") for _ in range(3)]
            if varlen:
                q0 = cu_q[b]
                lq = cu_q[b + 1] - q0
                base = (q0 // BN + b) * BN
            else:
                q0 = b * longest
                lq = longest
                base = b * T.ceildiv(longest, BN) * BN
            for r, c in T.Parallel(br, dim):
                if x * br + r < lq:
                    dQ[q0 + x * br + r, head, c] = T.cast(sums[head, base + x * br + r, c] * scale, dtype)

    return main


@tilelang.jit
def portable(
    batch: int, heads: int, kv_heads: int, tokens_q: int, tokens_k: int, padded: int, longest_q: int, longest_k: int, dim: int = 128,
    dim_v: int = 128, causal: bool = False, window: int = 0, varlen: bool = False, dtype: str = "bfloat16", scale: float = 128**-0.5,
    bm: int = 32, bn: int = 32, threads: int = 128,
) -> Any:  # fmt: skip
    """The same function as ``hopper`` for every target with tensor cores and every head size."""
    s2, group = scale * LOG2E, heads // kv_heads

    @T.prim_func
    def main(
        Q: T.Tensor((tokens_q, heads, dim), dtype), K: T.Tensor((tokens_k, kv_heads, dim), dtype), V: T.Tensor((tokens_k, kv_heads,
        dim_v), dtype), dO: T.Tensor((tokens_q, heads, dim_v), dtype), LSE: T.Tensor((heads, padded), "float32"), Delta: T.Tensor((heads,
        padded), "float32"), cu_q: T.Tensor((batch + 1,), "int32"), cu_k: T.Tensor((batch + 1,), "int32"), dQ: T.Tensor((heads, padded,
        dim), "float32"), dK: T.Tensor((tokens_k, kv_heads, dim), dtype), dV: T.Tensor((tokens_k, kv_heads, dim_v), dtype),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(longest_k, bn), kv_heads, batch, threads=threads) as (x, kv_head, b):
            k, v = T.alloc_shared((bn, dim), dtype), T.alloc_shared((bn, dim_v), dtype)
            q, do = T.alloc_shared((bm, dim), dtype), T.alloc_shared((bm, dim_v), dtype)
            p, ds = T.alloc_shared((bm, bn), dtype), T.alloc_shared((bm, bn), dtype)
            S, dP = T.alloc_fragment((bm, bn), "float32"), T.alloc_fragment((bm, bn), "float32")
            aK, aV = T.alloc_fragment((bn, dim), "float32"), T.alloc_fragment((bn, dim_v), "float32")
            aQ = T.alloc_fragment((bm, dim), "float32")
            q0, k0, lq, lk, base = [T.alloc_var("int32") for _ in range(5)]
            if varlen:
                q0 = cu_q[b]
                k0 = cu_k[b]
                lq = cu_q[b + 1] - q0
                lk = cu_k[b + 1] - k0
                base = (q0 // BN + b) * BN
            else:
                q0 = b * longest_q
                k0 = b * longest_k
                lq = longest_q
                lk = longest_k
                base = b * T.ceildiv(longest_q, BN) * BN
            T.fill(aK, 0)
            T.fill(aV, 0)
            for r, c in T.Parallel(bn, dim):
                k[r, c] = T.if_then_else(x * bn + r < lk, K[T.min(k0 + x * bn + r, tokens_k - 1), kv_head, c], 0)
            for r, c in T.Parallel(bn, dim_v):
                v[r, c] = T.if_then_else(x * bn + r < lk, V[T.min(k0 + x * bn + r, tokens_k - 1), kv_head, c], 0)
            for g, j in T.grid(group, T.ceildiv(lq, bm)):
                if x * bn < lk and (not causal or j * bm + bm - 1 + lk - lq >= x * bn):
                    for r, c in T.Parallel(bm, dim):
                        q[r, c] = T.if_then_else(j * bm + r < lq, Q[T.min(q0 + j * bm + r, tokens_q - 1), kv_head * group + g, c], 0)
                    for r, c in T.Parallel(bm, dim_v):
                        do[r, c] = T.if_then_else(j * bm + r < lq, dO[T.min(q0 + j * bm + r, tokens_q - 1), kv_head * group + g, c], 0)
                    T.gemm(q, k, S, transpose_B=True, clear_accum=True)
                    T.gemm(do, v, dP, transpose_B=True, clear_accum=True)
                    for r, c in T.Parallel(bm, bn):
                        last = j * bm + r + lk - lq
                        seen = x * bn + c < lk
                        if causal:
                            seen = T.And(seen, x * bn + c <= last)
                        if window > 0:
                            seen = T.And(seen, x * bn + c > last - window)
                        S[r, c] = T.if_then_else(seen, T.exp2(S[r, c] * s2 - LSE[kv_head * group + g, base + j * bm + r]), 0.0)
                    T.copy(S, p)
                    for r, c in T.Parallel(bm, bn):
                        S[r, c] *= dP[r, c] - Delta[kv_head * group + g, base + j * bm + r]
                    T.copy(S, ds)
                    T.gemm(p, do, aV, transpose_A=True)
                    T.gemm(ds, q, aK, transpose_A=True)
                    T.gemm(ds, k, aQ, clear_accum=True)
                    T.atomic_add(dQ[kv_head * group + g, base + j * bm : base + j * bm + bm, :], aQ)
            for r, c in T.Parallel(bn, dim):
                if x * bn + r < lk:
                    dK[k0 + x * bn + r, kv_head, c] = T.cast(aK[r, c] * scale, dtype)
            for r, c in T.Parallel(bn, dim_v):
                if x * bn + r < lk:
                    dV[k0 + x * bn + r, kv_head, c] = T.cast(aV[r, c], dtype)

    return main


def padded_rows(p: Problem) -> int:
    """Rows of the padded layout: each sequence begins at a multiple of 128."""
    return (p.tokens_q // BN + p.batch) * BN if p.varlen else p.batch * -(-p.longest_q // BN) * BN


@lru_cache(maxsize=256)
def build(fast: bool, p: Problem) -> tuple[Any, Any, Any]:
    """The compiled kernels of one problem: before, main, after."""
    rows = padded_rows(p)
    sizes = (p.batch, p.heads, p.kv_heads, p.tokens_q, p.tokens_k, rows, p.longest_q, p.longest_k, p.dim)
    masks = (p.causal, p.window, p.varlen, p.dtype, p.scale)
    if fast and p.dim == p.dim_v and p.dim in (64, 128):
        main = hopper(*sizes, *masks)
    else:
        main = portable(*sizes, p.dim_v, *masks, **({"bm": 64, "bn": 64, "threads": 256} if fast else {}))
    before = prepare(p.batch, p.heads, p.tokens_q, rows, p.longest_q, p.dim, p.dim_v, p.varlen, p.dtype)
    after = finish(p.batch, p.heads, p.tokens_q, rows, p.longest_q, p.dim, p.varlen, p.dtype, p.scale)
    return before, main, after


def attention_backward(
    dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, *, causal: bool = False,
    window: int = 0, scale: float | None = None, cu_q: torch.Tensor | None = None, cu_k: torch.Tensor | None = None,
    longest_q: int | None = None, longest_k: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """FlashAttention backward.

    Args:
        dout: the gradient of ``out``, in its shape and dtype.
        q, k, v: as given to ``attention``; so are the named arguments.
        out, lse: what ``attention`` returned.

    Returns:
        dq, dk and dv, in the shapes and dtype of q, k and v. Queries that see no key have a gradient of 0, and so do keys that none sees.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    p, cu_q, cu_k = describe(q, k, v, causal, window, scale, cu_q, cu_k, longest_q, longest_k)
    for name, value in (("dout", dout), ("out", out)):
        checks.tensor(name, value, q.dim(), (p.dtype,))
        checks.require(
            value.shape == (*q.shape[:-1], p.dim_v), f"{name} must be {(*q.shape[:-1], p.dim_v)}, but it is {tuple(value.shape)}"
        )
    checks.tensor("lse", lse, 2, ("float32",))
    checks.require(lse.shape == (p.heads, p.tokens_q), f"lse must be {(p.heads, p.tokens_q)}, but it is {tuple(lse.shape)}")
    checks.same_device(q=q, dout=dout, out=out, lse=lse)
    if p.tokens_q == 0 or p.tokens_k == 0:
        return torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    rows = padded_rows(p)
    bits, delta = lse.new_empty((p.heads, rows)), lse.new_empty((p.heads, rows))
    sums = lse.new_empty((p.heads, rows, p.dim))
    before, main, after = build(checks.hopper(q), p)
    q, k, v, out, dout = (t.view(-1, *t.shape[-2:]) for t in (q, k, v, out, dout))
    before(out, dout, lse, cu_q, bits, delta, sums)
    main(q, k, v, dout, bits, delta, cu_q, cu_k, sums, dk.view(k.shape), dv.view(v.shape))
    after(sums, cu_q, dq.view(q.shape))
    return dq, dk, dv


class FlashAttention(torch.autograd.Function):
    """``apply(q, k, v, options)`` → out, with the arguments of ``attention``; ``options`` are its named ones."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        """Keeps what the backward needs: the inputs, the output and the LSE."""
        out, lse = attention(q, k, v, **options)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.options = options
        return out

    @staticmethod
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor | None, ...]:  # type: ignore[override]
        """The gradients of q, k and v."""
        return *attention_backward(dout.contiguous(), *ctx.saved_tensors, **ctx.options), None


def flash_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    """``attention`` with a gradient: the same arguments, and out alone is returned."""
    return FlashAttention.apply(q, k, v, options)  # type: ignore[no-any-return, no-untyped-call]


def reference(
    dout: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: int = 0,
    scale: float | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One dense batch through torch's autograd, in float64."""
    group = q.shape[2] // k.shape[2]
    q, k, v = (t.detach().double().requires_grad_() for t in (q, k, v))
    keys, values = (t.repeat_interleave(group, 2).transpose(1, 2) for t in (k, v))
    scores = q.transpose(1, 2) @ keys.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        at = torch.arange(q.shape[1], device=q.device)[:, None] + k.shape[1] - q.shape[1] - torch.arange(k.shape[1], device=q.device)
        hidden = (at < 0) | (at >= window) if window else at < 0
        scores = scores.masked_fill(hidden, -1e300)
        weights = torch.softmax(scores, -1) * ~hidden
    else:
        weights = torch.softmax(scores, -1)
    (weights @ values).transpose(1, 2).backward(dout.double())
    return q.grad, k.grad, v.grad  # type: ignore[return-value]

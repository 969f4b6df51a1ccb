"""MLA decode (DeepSeek's multi-head latent attention, absorbed): one query a sequence against a paged cache of latent rows.

q [B, H, 576] (512 latent + 64 rotary columns), cache [pages, page, 576] (the keys; their first 512 columns are the values), table [B,
max_pages] int32, lengths [B] int32 (0 gives output 0 and LSE −inf) → out [B, H, 512] of q's dtype, lse [B, H] float32 (natural
logarithm).

``hopper`` follows FlashMLA's published schedule (https://github.com/deepseek-ai/FlashMLA, "seesaw" of its 2025 deep dive), written anew
in TileLang. A block owns 64 heads. Keys come in pairs of 64-token tiles. Each of two warpgroups scores one tile of the pair and keeps
half of the output columns; both halves need both score tiles, so the probabilities cross over through shared memory, and the running
maximum passes from the first to the second and back. While one warpgroup is in its softmax, the other's products keep the tensor cores
busy. The rotary columns of q live in registers, which makes room for two whole key tiles; each third of a tile (left, right, rotary) is
freed and refilled by itself.

Two numbers (64 heads × 64 tokens): 2176 tensor cycles at least; 72 KiB of keys, which two blocks of one sequence share in the L2.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import product, publish, release, scale_rows

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")
D, E, HALF, BH, BN = 512, 64, 256, 64, 64
LOG2E = 1.4426950408889634
LOW = -1.0e30
FAST = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


def seesaw(heads: int, s2: float, gathered: bool) -> Any:
    """The role of warpgroup w: it scores tile w of each pair and keeps half w of the output's columns.

    From its side, *own* is half w of tile w, *rest* the other half of tile w, *cross* half w of the other tile.
    """

    @T.macro
    def consume(w, own, rest, rope, cross, Q, O, LSE, at, row, q, tiles, p, sm, sx, rows, loaded, full, free, maxed, made, S, P, qe, acc,
        m, r, c, l, start, pairs, n):  # fmt: skip
        T.inc_max_nreg(224 if gathered else 240)
        T.copy(Q[at[1], row : row + BH, D : D + E], qe)
        T.fill(acc, 0)
        T.fill(m, LOW)
        T.fill(l, 0)
        T.mbarrier_wait_parity(loaded[0], 0)
        for i in T.serial(pairs):
            first = (2 * (start + i) + w) * BN
            product(full, own, i & 1, q[w], tiles[own], S, True)
            product(full, rope, i & 1, qe, tiles[rope], S, False)
            product(full, rest, i & 1, q[1 - w], tiles[rest], S, False)
            T.wait_wgmma(0)
            if gathered:
                for h, j in T.Parallel(BH, BN):
                    S[h, j] = T.if_then_else(rows[i & 1, w, j] >= 0, S[h, j], -T.infinity("float32"))
            elif first + BN > n:
                for h, j in T.Parallel(BH, BN):
                    S[h, j] = T.if_then_else(first + j < n, S[h, j], -T.infinity("float32"))
                for t, j in T.Parallel(BN, HALF):
                    if first + t >= n:  # whatever lies there (NaN, say) must not reach a product
                        tiles[own][t, j] = 0
                        tiles[rest][t, j] = 0
                T.fence_proxy_async()
                T.sync_threads(8 + w, 128)
            release(free, rope)
            T.reduce_max(S, r, dim=1)
            if w == 1:
                T.mbarrier_wait_parity(maxed[0], i & 1)
                T.copy(sm, m)
            for h in T.Parallel(BH):
                r[h] = T.max(m[h], r[h] * s2)
                c[h] = T.exp2(m[h] - r[h])
                m[h] = r[h]
                sm[h] = r[h]
                sx[w, h] = c[h]
            if w == 0:
                T.mbarrier_arrive(maxed[0])
            for h, j in T.Parallel(BH, BN):
                S[h, j] = T.exp2(S[h, j] * s2 - r[h])
            T.copy(S, P)
            if w == 1:
                for h in T.Parallel(BH):
                    c[h] *= sx[0, h]
                publish(P, p[1], made, 1)
            scale_rows(acc, c)
            T.wgmma_gemm(P, tiles[own], acc)
            T.reduce_sum(S, r, dim=1)
            for h in T.Parallel(BH):
                l[h] = l[h] * c[h] + r[h]
            T.mbarrier_wait_parity(made[1 - w], i & 1)
            if w == 0:
                T.copy(sm, m)
                for h in T.Parallel(BH):
                    c[h] = sx[1, h]
                    l[h] *= c[h]
                scale_rows(S, c)
                T.wait_wgmma(0)
                release(free, own)
                T.copy(S, P)
                publish(P, p[0], made, 0)
                scale_rows(acc, c)
            T.wgmma_gemm(p[1 - w], tiles[cross], acc)
            if w == 1:
                T.wait_wgmma(1)
                release(free, own)
            T.wait_wgmma(0)  # no product may be in flight at the loop's end: ptxas would serialise them all
            release(free, cross)
        T.copy(l, sx[w, :])
        T.sync_threads(10, 256)
        for h in T.Parallel(BH):
            l[h] += sx[1 - w, h]
            r[h] = T.if_then_else(l[h] > 0, 1.0 / l[h], 0.0)
            if w == 0 and row + h < heads:
                LSE[at[0], at[1], row + h] = T.if_then_else(l[h] > 0, m[h] / LOG2E + T.log(l[h]), -T.infinity("float32"))
        scale_rows(acc, r)
        T.copy(acc, O[at[0], at[1], row : row + BH, w * HALF : (w + 1) * HALF])

    return consume


@tilelang.jit(pass_configs=FAST)
def hopper(heads: int, page: int = 64, splits: int = 1, dtype: str = "bfloat16", scale: float = 576**-0.5) -> Any:
    """The warp-specialised kernel for sm_90a; page is a multiple of 64. Outputs float32 parts if splits > 1."""
    batch, tokens, width = T.dynamic("batch, tokens, width")
    out_dtype, consume = dtype if splits == 1 else "float32", seesaw(heads, scale * LOG2E, False)

    def place(table: Any, b: Any, tile: Any, n: Any) -> Any:
        """The cache row where a tile begins; one past the end takes the last tile of the sequence, whose scores are masked."""
        token = T.min(tile, T.ceildiv(n, BN) - 1) * BN
        return table[b, token // page] * page + token % page

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, D + E), dtype), KV: T.Tensor((tokens, D + E), dtype), table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"), O: T.Tensor((splits, batch, heads, D), out_dtype), LSE: T.Tensor((splits, batch, heads),
        "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(heads, BH), batch, splits, threads=384) as (hx, b, split):
            q, tiles = (
                [T.alloc_shared((BH, HALF), dtype) for _ in range(2)],
                [T.alloc_shared((BN, size), dtype) for size in (HALF, HALF, E) * 2],
            )
            p, (sm, sx) = (
                [T.alloc_shared((BH, BN), dtype) for _ in range(2)],
                [T.alloc_shared(shape, "float32") for shape in ((BH,), (2, BH))],
            )
            S0, S1 = [T.alloc_fragment((BH, BN), "float32") for _ in range(2)]
            P0, P1, qe0, qe1 = [T.alloc_fragment((BH, BN), dtype) for _ in range(4)]
            OL, OR = [T.alloc_fragment((BH, HALF), "float32") for _ in range(2)]
            m0, r0, c0, l0, m1, r1, c1, l1 = [T.alloc_fragment((BH,), "float32") for _ in range(8)]
            loaded, maxed, made = T.alloc_barrier([1]), T.alloc_barrier([128]), T.alloc_barrier([128] * 2)
            full, free = T.alloc_barrier([1] * 6), T.alloc_barrier([4] * 6)
            tx = T.get_thread_binding()
            n, start, pairs, row0, row1, next0, next1 = [T.alloc_var("int32") for _ in range(7)]
            n = lengths[b]
            start = split * T.ceildiv(T.ceildiv(n, 2 * BN), splits)
            pairs = T.max(0, T.min(T.ceildiv(T.ceildiv(n, 2 * BN), splits), T.ceildiv(n, 2 * BN) - start))
            if tx >= 256:
                T.dec_max_nreg(24)
                if tx < 288:
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, 0:HALF], q[0], barrier=loaded[0])
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, HALF:D], q[1], barrier=loaded[0])
                    release(loaded, 0)
                    next0 = place(table, b, 2 * start, n)
                    next1 = place(table, b, 2 * start + 1, n)
                    for i in T.serial(pairs):
                        row0 = next0
                        row1 = next1
                        next0 = place(table, b, 2 * (start + i + 1), n)  # asked for one pair ahead, so that its latency is hidden
                        next1 = place(table, b, 2 * (start + i + 1) + 1, n)
                        for s, row, left in ((0, row0, 0), (4, row1, HALF), (2, row0, D), (5, row1, D), (1, row0, HALF), (3, row1, 0)):
                            T.mbarrier_wait_parity(free[s], (i & 1) ^ 1)
                            T.tma_copy(KV[row : row + BN, left : left + tiles[s].shape[1]], tiles[s], barrier=full[s])
                            release(full, s)
            elif tx < 128:
                consume(0, 0, 1, 2, 3, Q, O, LSE, (split, b), hx * BH, q, tiles, p, sm, sx, sx, loaded, full, free, maxed, made, S0, P0,
                    qe0, OL, m0, r0, c0, l0, start, pairs, n)  # fmt: skip
            else:
                consume(1, 4, 3, 5, 1, Q, O, LSE, (split, b), hx * BH, q, tiles, p, sm, sx, sx, loaded, full, free, maxed, made, S1, P1,
                    qe1, OR, m1, r1, c1, l1, start, pairs, n)  # fmt: skip

    return main


@tilelang.jit
def portable(
    heads: int, page: int = 64, dtype: str = "bfloat16", scale: float = 576**-0.5, bh: int = 32, bn: int = 32, threads: int = 128
) -> Any:
    """The same function for every target with tensor cores and any page size, without a split: ``(Q, KV, table, lengths, O, LSE)``."""
    batch, tokens, width = T.dynamic("batch, tokens, width")
    s2 = scale * LOG2E

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, D + E), dtype),
        KV: T.Tensor((tokens, D + E), dtype),
        table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"),
        O: T.Tensor((1, batch, heads, D), dtype),
        LSE: T.Tensor((1, batch, heads), "float32"),
    ):
        with T.Kernel(T.ceildiv(heads, bh), batch, threads=threads) as (hx, b):
            ql, qe = T.alloc_shared((bh, D), dtype), T.alloc_shared((bh, E), dtype)
            kl, ke = T.alloc_shared((bn, D), dtype), T.alloc_shared((bn, E), dtype)
            S, P, acc = T.alloc_fragment((bh, bn), "float32"), T.alloc_shared((bh, bn), dtype), T.alloc_fragment((bh, D), "float32")
            m, mn, al, rs, l = [T.alloc_fragment((bh,), "float32") for _ in range(5)]
            rows = T.alloc_shared((bn,), "int32")
            n = T.alloc_var("int32")
            n = lengths[b]
            T.fill(acc, 0)
            T.fill(m, LOW)
            T.fill(l, 0)
            T.copy(Q[b, hx * bh : (hx + 1) * bh, 0:D], ql)
            T.copy(Q[b, hx * bh : (hx + 1) * bh, D : D + E], qe)
            for j in T.serial(T.ceildiv(n, bn)):
                for r in T.Parallel(bn):
                    token = T.min(j * bn + r, n - 1)
                    row = table[b, token // page] * page + token % page
                    rows[r] = T.if_then_else(T.And(j * bn + r < n, row < tokens), row, -1)
                for r, c in T.Parallel(bn, D):
                    kl[r, c] = T.if_then_else(rows[r] >= 0, KV[T.max(rows[r], 0), c], 0)
                for r, c in T.Parallel(bn, E):
                    ke[r, c] = T.if_then_else(rows[r] >= 0, KV[T.max(rows[r], 0), D + c], 0)
                T.gemm(ql, kl, S, transpose_B=True, clear_accum=True)
                T.gemm(qe, ke, S, transpose_B=True)
                for h, c in T.Parallel(bh, bn):
                    S[h, c] = T.if_then_else(rows[c] >= 0, S[h, c] * s2, -T.infinity("float32"))
                T.copy(m, mn)
                T.reduce_max(S, mn, dim=1, clear=False)
                for h in T.Parallel(bh):
                    al[h] = T.exp2(m[h] - mn[h])
                    m[h] = mn[h]
                for h, c in T.Parallel(bh, bn):
                    S[h, c] = T.exp2(S[h, c] - m[h])
                T.reduce_sum(S, rs, dim=1)
                for h in T.Parallel(bh):
                    l[h] = l[h] * al[h] + rs[h]
                for h, c in T.Parallel(bh, D):
                    acc[h, c] *= al[h]
                T.copy(S, P)
                T.gemm(P, kl, acc)
            for h, c in T.Parallel(bh, D):
                if hx * bh + h < heads:
                    O[0, b, hx * bh + h, c] = T.cast(T.if_then_else(l[h] > 0, acc[h, c] / l[h], 0.0), dtype)
            for h in T.Parallel(bh):
                if hx * bh + h < heads:
                    LSE[0, b, hx * bh + h] = T.if_then_else(l[h] > 0, m[h] / LOG2E + T.log(l[h]), -T.infinity("float32"))

    return main


@tilelang.jit
def combine(heads: int, splits: int, dtype: str = "bfloat16") -> Any:
    """Joins the parts of split keys by their LSE: ``(parts [splits, B, H, 512] float32, part_lse, out, lse)``."""
    batch = T.dynamic("batch")
    none = -T.infinity("float32")

    @T.prim_func
    def main(
        P: T.Tensor((splits, batch, heads, D), "float32"), PL: T.Tensor((splits, batch, heads), "float32"),
        O: T.Tensor((batch, heads, D), dtype), LSE: T.Tensor((batch, heads), "float32"),
    ):  # fmt: skip
        with T.Kernel(heads, batch, threads=128) as (h, b):
            acc = T.alloc_fragment((D,), "float32")
            top = T.alloc_var("float32", init=none)
            total = T.alloc_var("float32", init=0.0)
            T.clear(acc)
            for s in T.serial(splits):
                top = T.max(top, PL[s, b, h])
            top = T.if_then_else(top == none, 0.0, top)
            for s in T.serial(splits):
                weight = T.exp(PL[s, b, h] - top)
                total += weight
                for c in T.Parallel(D):
                    acc[c] += weight * P[s, b, h, c]
            for c in T.Parallel(D):
                O[b, h, c] = T.cast(T.if_then_else(total > 0, acc[c] / total, 0.0), dtype)
            LSE[b, h] = T.if_then_else(total > 0, top + T.log(total), none)

    return main


@lru_cache(maxsize=256)
def build(fast: bool, heads: int, page: int, splits: int, dtype: str, scale: float) -> Any:
    """The compiled kernels of one problem: the part over the keys, and the join if they are split (else None)."""
    if not fast:
        return portable(heads, page, dtype, scale), None
    if page % BN:  # a page is no whole tile for the copy engine
        from tilelab.kernels import sparse_mla

        return sparse_mla.hopper(heads, page, splits, dtype, scale), combine(heads, splits, dtype) if splits > 1 else None
    return hopper(heads, page, splits, dtype, scale), combine(heads, splits, dtype) if splits > 1 else None


def choose_splits(batch: int, heads: int, longest: int, sms: int) -> int:
    """As many parts of the keys as fill the multiprocessors, at least four pairs of tiles each."""
    blocks = batch * -(-heads // BH)
    return max(1, min(sms // blocks, -(-longest // (8 * BN)), 64)) if blocks < sms else 1


def mla_decode(
    q: "torch.Tensor",
    cache: "torch.Tensor",
    table: "torch.Tensor",
    lengths: "torch.Tensor",
    *,
    scale: float | None = None,
    splits: int | None = None,
) -> "tuple[torch.Tensor, torch.Tensor]":
    """One decode step of multi-head latent attention over a paged cache.

    Args:
        q: [B, H, 576], absorbed: 512 latent columns, then 64 rotary ones; bfloat16 or float16.
        cache: [pages, page, 576], of q's dtype; pages of a multiple of 64 tokens are loaded by the copy engine, others row by row.
        table: [B, max_pages] int32, the pages of each sequence in order.
        lengths: [B] int32, at most ``max_pages · page``.
        scale: of the scores; ``576 ** -0.5`` if None (DeepSeek's own is of the head before absorption: pass it).
        splits: parts that the keys are cut into; chosen if None.

    Returns:
        out [B, H, 512] and lse [B, H] float32.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    checks.tensor("q", q, 3, DTYPES)
    dtype = str(q.dtype).removeprefix("torch.")
    checks.tensor("cache", cache, 3, (dtype,))
    checks.tensor("table", table, 2, ("int32",))
    checks.tensor("lengths", lengths, 1, ("int32",))
    checks.same_device(q=q, cache=cache, table=table, lengths=lengths)
    batch, heads, width = q.shape
    _, page, width_c = cache.shape
    checks.require(width == D + E and width_c == D + E, f"q and cache must have {D + E} columns, but they have {width} and {width_c}")
    checks.require(table.shape[0] == batch and lengths.shape[0] == batch, f"table and lengths must have q's batch {batch}")
    fast = checks.hopper(q)
    parts = splits or (choose_splits(batch, heads, table.shape[1] * page, checks.sm_count(q)) if fast else 1)
    over, join = build(fast, heads, page, parts, dtype, 576**-0.5 if scale is None else scale)
    import torch

    out = q.new_empty((batch, heads, D))
    lse = q.new_empty((batch, heads), dtype=torch.float32)
    if join is None:
        over(q, cache.view(-1, width), table, lengths, out.unsqueeze(0), lse.unsqueeze(0))
    else:
        part, part_lse = lse.new_empty((parts, batch, heads, D)), lse.new_empty((parts, batch, heads))
        over(q, cache.view(-1, width), table, lengths, part, part_lse)
        join(part, part_lse, out, lse)
    return out, lse


def reference(
    q: "torch.Tensor", cache: "torch.Tensor", table: "torch.Tensor", lengths: "torch.Tensor", *, scale: float | None = None
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The same in torch, in float64, one sequence at a time."""
    import torch

    outs, sums = [], []
    for b in range(q.shape[0]):
        n = int(lengths[b])
        keys = cache[table[b].long()].reshape(-1, D + E)[:n].double()
        scores = q[b].double() @ keys.T * (576**-0.5 if scale is None else scale)
        sums.append(torch.logsumexp(scores, -1) if n else scores.new_full((q.shape[1],), -torch.inf))
        outs.append(torch.softmax(scores, -1) @ keys[:, :D])
    return torch.stack(outs), torch.stack(sums)

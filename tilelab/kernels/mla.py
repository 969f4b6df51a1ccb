"""MLA decode (DeepSeek's multi-head latent attention, absorbed): one query a sequence against a paged cache of latent rows.

q [B, H, 576] (512 latent + 64 rotary columns), cache [pages, page, 576] (the keys; their first 512 columns are the values), table [B,
max_pages]
int32, lengths [B] int32 (0 gives output 0 and LSE −inf) → out [B, H, 512] of q's dtype, lse [B, H] float32 (natural logarithm).

``hopper`` follows FlashMLA's published schedule (https://github.com/deepseek-ai/FlashMLA, "seesaw" of its 2025 deep dive), written anew
in TileLang. A
block owns 64 heads. Keys come in pairs of 64-token tiles. Each of two warpgroups scores one tile of the pair and keeps half of the
output columns;
both halves need both score tiles, so the probabilities cross over through shared memory, and the running maximum passes from the first
to the second
and back. While one warpgroup is in its softmax, the other's products keep the tensor cores busy. The rotary columns of q live in
registers, which
makes room for two whole key tiles; each third of a tile (left, right, rotary) is freed and refilled by itself.

Two numbers (64 heads × 64 tokens): 2176 tensor cycles at least; 72 KiB of keys, which two blocks of one sequence share in the L2.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")
D, E, HALF, BH, BN = 512, 64, 256, 64, 64
LOG2E = 1.4426950408889634
LOW = -1.0e30
FAST = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


@tilelang.jit(pass_configs=FAST)
def hopper(heads: int, page: int = 64, splits: int = 1, dtype: str = "bfloat16",
    scale: float = 576**-0.5) -> Any:
    """The warp-specialised kernel for sm_90a; page is a multiple of 64 or a divisor of 64 that is at least 8. Outputs float32 parts if
    splits > 1."""
    batch, tokens, width = T.dynamic("batch, tokens, width")
    s2 = scale * LOG2E
    out_dtype = dtype if splits == 1 else "float32"
    rows = min(page, BN)  # rows that one TMA load brings

    def place(table, b, token, n):
        """The cache row of a token; one past the end takes the last piece of the sequence, whose scores are masked."""
        last = T.min(token, (T.ceildiv(n, rows) - 1) * rows)
        return table[b, last // page] * page + last % page

    @T.macro
    def load(KV, table, b, tile, row, n, columns, width, dst, full, free, s, phase):
        T.mbarrier_wait_parity(free[s], phase)
        if rows == BN:
            T.tma_copy(KV[row : row + BN, columns : columns + width], dst, barrier=full[s])
        else:
            for r, c in T.grid(BN // rows, width // E):
                first = place(table, b, tile * BN + r * rows, n)
                left = columns + c * E
                T.tma_copy(KV[first : first + rows, left : left + E], dst[r * rows : r * rows + rows, c * E : c * E + E], barrier=full[s])
        if T.shuffle_elect(32):
            T.mbarrier_arrive(full[s])

    @T.macro
    def release(free, s):
        if T.shuffle_elect(32):
            T.mbarrier_arrive(free[s])

    @T.macro
    def scrub(kl, kr, ke, full, s, phase, valid):
        """Zeroes the rows past the end: whatever lies there (NaN, say) must not reach a product."""
        if valid < BN:
            for part in T.unroll(3, explicit=True):
                T.mbarrier_wait_parity(full[s + part], phase)
            for r, c in T.Parallel(BN, HALF):
                if r >= valid:
                    kl[r, c] = 0
                    kr[r, c] = 0
            for r, c in T.Parallel(BN, E):
                if r >= valid:
                    ke[r, c] = 0
            T.fence_proxy_async()
            T.sync_threads(8 + s // 3, 128)

    @T.macro
    def mask(S, first, n):
        if first + BN > n:
            for h, j in T.Parallel(BH, BN):
                S[h, j] = T.if_then_else(first + j < n, S[h, j], LOW)

    @T.macro
    def finish(acc, mine, other, m, O, LSE, b, hx, split, column):
        for h in T.Parallel(BH):
            other[h] += mine[h]
            mine[h] = T.if_then_else(other[h] > 0, 1.0 / other[h], 0.0)
        for h, j in T.Parallel(BH, HALF):
            acc[h, j] *= mine[h]
        T.copy(acc, O[split, b, hx * BH : (hx + 1) * BH, column : column + HALF])
        if column == 0:
            for h in T.Parallel(BH):
                if hx * BH + h < heads:
                    LSE[split, b, hx * BH + h] = T.if_then_else(other[h] > 0, m[h] / LOG2E + T.log(other[h]), -T.infinity("float32"))

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, D + E), dtype), KV: T.Tensor((tokens, D + E), dtype), table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"), O: T.Tensor((splits, batch, heads, D), out_dtype), LSE: T.Tensor((splits, batch, heads),
            "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(heads, BH), batch, splits, threads=384) as (hx, b, split):
            ql, qr, kl0, kr0, kl1, kr1 = [T.alloc_shared((BH, HALF), dtype) for _ in range(6)]
            ke0, ke1, p0, p1 = [T.alloc_shared((BN, E), dtype) for _ in range(4)]
            sm, sa, sb = [T.alloc_shared((BH,), "float32") for _ in range(3)]
            S0, S1 = [T.alloc_fragment((BH, BN), "float32") for _ in range(2)]
            P0, P1, qe0, qe1 = [T.alloc_fragment((BH, BN), dtype) for _ in range(4)]
            OL, OR = [T.alloc_fragment((BH, HALF), "float32") for _ in range(2)]
            m0, l0, r0, a0, c0, d0 = [T.alloc_fragment((BH,), "float32") for _ in range(6)]
            m1, l1, r1, a1, c1 = [T.alloc_fragment((BH,), "float32") for _ in range(5)]
            loaded = T.alloc_barrier([1])
            full, free = T.alloc_barrier([1] * 6), T.alloc_barrier([4] * 6)  # of kl0, kr0, ke0, kl1, kr1, ke1
            maxed, made0, made1 = T.alloc_barrier([128]), T.alloc_barrier([128]), T.alloc_barrier([128])
            tx = T.get_thread_binding()
            n, start, pairs = [T.alloc_var("int32") for _ in range(3)]
            n = lengths[b]
            start = split * T.ceildiv(T.ceildiv(n, 2 * BN), splits)
            pairs = T.max(0, T.min(T.ceildiv(T.ceildiv(n, 2 * BN), splits), T.ceildiv(n, 2 * BN) - start))
            if tx >= 256:
                T.dec_max_nreg(24)
                if tx < 288:
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, 0:HALF], ql, barrier=loaded[0])
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, HALF:D], qr, barrier=loaded[0])
                    release(loaded, 0)
                    row0, row1, next0, next1 = [T.alloc_var("int32") for _ in range(4)]
                    next0 = place(table, b, 2 * start * BN, n)
                    next1 = place(table, b, (2 * start + 1) * BN, n)
                    for i in T.serial(pairs):
                        t = 2 * (start + i)
                        row0 = next0
                        row1 = next1
                        next0 = place(table, b, (t + 2) * BN, n)  # asked for one pair ahead, so that its latency is hidden
                        next1 = place(table, b, (t + 3) * BN, n)
                        load(KV, table, b, t, row0, n, 0, HALF, kl0, full, free, 0, (i & 1) ^ 1)
                        load(KV, table, b, t + 1, row1, n, HALF, HALF, kr1, full, free, 4, (i & 1) ^ 1)
                        load(KV, table, b, t, row0, n, D, E, ke0, full, free, 2, (i & 1) ^ 1)
                        load(KV, table, b, t + 1, row1, n, D, E, ke1, full, free, 5, (i & 1) ^ 1)
                        load(KV, table, b, t, row0, n, HALF, HALF, kr0, full, free, 1, (i & 1) ^ 1)
                        load(KV, table, b, t + 1, row1, n, 0, HALF, kl1, full, free, 3, (i & 1) ^ 1)
            elif tx < 128:
                T.inc_max_nreg(240)
                T.copy(Q[b, hx * BH : (hx + 1) * BH, D : D + E], qe0)
                T.fill(OL, 0)
                T.fill(m0, LOW)
                T.fill(l0, 0)
                T.mbarrier_wait_parity(loaded[0], 0)
                for i in T.serial(pairs):
                    scrub(kl0, kr0, ke0, full, 0, i & 1, n - 2 * (start + i) * BN)
                    T.mbarrier_wait_parity(full[0], i & 1)
                    T.wgmma_gemm(ql, kl0, S0, transpose_B=True, clear_accum=True)
                    T.mbarrier_wait_parity(full[2], i & 1)
                    T.wgmma_gemm(qe0, ke0, S0, transpose_B=True)
                    T.mbarrier_wait_parity(full[1], i & 1)
                    T.wgmma_gemm(qr, kr0, S0, transpose_B=True)
                    T.wait_wgmma(0)
                    release(free, 2)
                    mask(S0, 2 * (start + i) * BN, n)
                    T.reduce_max(S0, r0, dim=1)
                    for h in T.Parallel(BH):
                        r0[h] = T.max(m0[h], r0[h] * s2)
                        a0[h] = T.exp2(m0[h] - r0[h])
                        sm[h] = r0[h]
                        sa[h] = a0[h]
                    T.mbarrier_arrive(maxed[0])
                    for h, j in T.Parallel(BH, BN):
                        S0[h, j] = T.exp2(S0[h, j] * s2 - r0[h])
                    T.copy(S0, P0)
                    for h, j in T.Parallel(BH, HALF):
                        OL[h, j] *= a0[h]
                    T.wgmma_gemm(P0, kl0, OL)
                    T.reduce_sum(S0, c0, dim=1)
                    T.mbarrier_wait_parity(made1[0], i & 1)
                    T.copy(sm, m0)
                    T.copy(sb, d0)
                    for h in T.Parallel(BH):
                        l0[h] = (l0[h] * a0[h] + c0[h]) * d0[h]
                    for h, j in T.Parallel(BH, BN):
                        S0[h, j] *= d0[h]
                    T.wait_wgmma(0)
                    release(free, 0)
                    T.copy(S0, P0)
                    T.copy(P0, p0)
                    T.fence_proxy_async()
                    T.mbarrier_arrive(made0[0])
                    for h, j in T.Parallel(BH, HALF):
                        OL[h, j] *= d0[h]
                    T.wgmma_gemm(p1, kl1, OL)
                    T.wait_wgmma(0)  # no product may be in flight at the loop's end: ptxas would serialise them all
                    release(free, 3)
                T.copy(l0, sa)
                T.mbarrier_arrive(maxed[0])
                T.mbarrier_wait_parity(made1[0], pairs & 1)
                T.copy(sb, d0)
                finish(OL, l0, d0, m0, O, LSE, b, hx, split, 0)
            else:
                T.inc_max_nreg(240)
                T.copy(Q[b, hx * BH : (hx + 1) * BH, D : D + E], qe1)
                T.fill(OR, 0)
                T.fill(l1, 0)
                T.mbarrier_wait_parity(loaded[0], 0)
                for i in T.serial(pairs):
                    scrub(kl1, kr1, ke1, full, 3, i & 1, n - (2 * (start + i) + 1) * BN)
                    T.mbarrier_wait_parity(full[4], i & 1)
                    T.wgmma_gemm(qr, kr1, S1, transpose_B=True, clear_accum=True)
                    T.mbarrier_wait_parity(full[5], i & 1)
                    T.wgmma_gemm(qe1, ke1, S1, transpose_B=True)
                    T.mbarrier_wait_parity(full[3], i & 1)
                    T.wgmma_gemm(ql, kl1, S1, transpose_B=True)
                    T.wait_wgmma(0)
                    release(free, 5)
                    mask(S1, (2 * (start + i) + 1) * BN, n)
                    T.reduce_max(S1, r1, dim=1)
                    T.mbarrier_wait_parity(maxed[0], i & 1)
                    T.copy(sm, m1)
                    T.copy(sa, a1)
                    for h in T.Parallel(BH):
                        r1[h] = T.max(m1[h], r1[h] * s2)
                        c1[h] = T.exp2(m1[h] - r1[h])
                    for h, j in T.Parallel(BH, BN):
                        S1[h, j] = T.exp2(S1[h, j] * s2 - r1[h])
                    T.copy(S1, P1)
                    T.copy(P1, p1)
                    for h in T.Parallel(BH):
                        sm[h] = r1[h]
                        sb[h] = c1[h]
                    T.fence_proxy_async()
                    T.mbarrier_arrive(made1[0])
                    for h in T.Parallel(BH):
                        a1[h] *= c1[h]
                    for h, j in T.Parallel(BH, HALF):
                        OR[h, j] *= a1[h]
                    T.wgmma_gemm(P1, kr1, OR)
                    T.reduce_sum(S1, c1, dim=1)
                    for h in T.Parallel(BH):
                        l1[h] = l1[h] * a1[h] + c1[h]
                    T.mbarrier_wait_parity(made0[0], i & 1)
                    T.wgmma_gemm(p0, kr0, OR)
                    T.wait_wgmma(1)
                    release(free, 4)
                    T.wait_wgmma(0)
                    release(free, 1)
                T.mbarrier_wait_parity(maxed[0], pairs & 1)
                T.copy(sa, a1)
                T.copy(l1, sb)
                T.mbarrier_arrive(made1[0])
                finish(OR, l1, a1, m1, O, LSE, b, hx, split, HALF)

    return main


@tilelang.jit
def portable(heads: int, page: int = 64, dtype: str = "bfloat16", scale: float = 576**-0.5, bh: int = 32, bn: int = 32,
    threads: int = 128) -> Any:
    """The same function for every target with tensor cores and any page size, without a split: ``(Q, KV, table, lengths, O, LSE)``."""
    batch, tokens, width = T.dynamic("batch, tokens, width")
    s2 = scale * LOG2E

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, D + E), dtype), KV: T.Tensor((tokens, D + E), dtype), table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"), O: T.Tensor((1, batch, heads, D), dtype), LSE: T.Tensor((1, batch, heads), "float32"),
    ):
        with T.Kernel(T.ceildiv(heads, bh), batch, threads=threads) as (hx, b):
            ql, qe = T.alloc_shared((bh, D), dtype), T.alloc_shared((bh, E), dtype)
            kl, ke = T.alloc_shared((bn, D), dtype), T.alloc_shared((bn, E), dtype)
            S, P, acc = T.alloc_fragment((bh, bn), "float32"), T.alloc_shared((bh, bn), dtype), T.alloc_fragment((bh, D), "float32")
            m, mn, al, rs, l = [T.alloc_fragment((bh,), "float32") for _ in range(5)]
            n = T.alloc_var("int32")
            n = lengths[b]
            T.fill(acc, 0)
            T.fill(m, LOW)
            T.fill(l, 0)
            T.copy(Q[b, hx * bh : (hx + 1) * bh, 0:D], ql)
            T.copy(Q[b, hx * bh : (hx + 1) * bh, D : D + E], qe)
            for j in T.serial(T.ceildiv(n, bn)):
                for r, c in T.Parallel(bn, D):
                    token = T.min(j * bn + r, n - 1)
                    kl[r, c] = T.if_then_else(j * bn + r < n, KV[table[b, token // page] * page + token % page, c], 0)
                for r, c in T.Parallel(bn, E):
                    token = T.min(j * bn + r, n - 1)
                    ke[r, c] = T.if_then_else(j * bn + r < n, KV[table[b, token // page] * page + token % page, D + c], 0)
                T.gemm(ql, kl, S, transpose_B=True, clear_accum=True)
                T.gemm(qe, ke, S, transpose_B=True)
                for h, c in T.Parallel(bh, bn):
                    S[h, c] = T.if_then_else(j * bn + c < n, S[h, c] * s2, LOW)
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
    return hopper(heads, page, splits, dtype, scale), combine(heads, splits, dtype) if splits > 1 else None


def choose_splits(batch: int, heads: int, longest: int, sms: int) -> int:
    """As many parts of the keys as fill the multiprocessors, at least four pairs of tiles each."""
    blocks = batch * -(-heads // BH)
    return max(1, min(sms // blocks, -(-longest // (8 * BN)), 64)) if blocks < sms else 1


def mla_decode(
    q: "torch.Tensor", cache: "torch.Tensor", table: "torch.Tensor", lengths: "torch.Tensor", *, scale: float | None = None,
        splits: int | None = None
) -> "tuple[torch.Tensor, torch.Tensor]":
    """One decode step of multi-head latent attention over a paged cache.

    Args:
        q: [B, H, 576], absorbed: 512 latent columns, then 64 rotary ones; bfloat16 or float16.
        cache: [pages, page, 576], of q's dtype; the fast kernel takes pages of 8, 16, 32 or a multiple of 64 tokens.
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
    fast = checks.hopper(q) and (page % BN == 0 or page in (8, 16, 32))
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

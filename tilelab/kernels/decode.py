"""Attention decode: one query a sequence against a paged cache of keys and values, split along the keys, with grouped heads.

q [B, H, D], k and v caches [pages, page, Hk, D], table [B, max_pages] int32, lengths [B] int32 (0 gives 0 and LSE −inf) → out [B, H, D],
lse [B, H]. H / Hk ≤ 64. bfloat16 or float16; D 64, 128 or 256. Batch, pages and the table's width are free at run time.

The cost is reading the cache once, so the kernel is built for bytes in flight: a block serves all the queries of one key head (they fill
the 64 rows of a wgmma), a producer warp keeps a ring of key and value tiles filled with TMA, and two blocks share a multiprocessor so
that one's softmax hides behind the other's loads. ``splits`` parts of the keys go to blocks of their own and are joined by their LSE
("Flash-Decoding", Dao et al. 2023, https://crfm.stanford.edu/2023/10/12/flashdecoding.html).

A cache of float8_e4m3fn with a scale for k and one for v is widened to float16 on the way to the tensor cores; q is then rounded to it too.

Two numbers (B 64, 8192 keys, 8 key heads, D 128): 2.1 GB → 0.51 ms at 4.2 TB/s; the products take a quarter of that.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import release

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")
LOG2E = 1.4426950408889634
LOW = -1.0e30
FAST = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}
R, BN = 64, 64


@tilelang.jit(pass_configs=FAST)
def hopper(
    heads: int, kv_heads: int, dim: int, page: int, splits: int, dtype: str = "bfloat16", scale: float = 128**-0.5,
    kv_dtype: str = "bfloat16", stages: int = 3,
) -> Any:  # fmt: skip
    """The warp-specialised kernel for sm_90a: ``(Q, K, V, scales, table, lengths, O [splits, …], LSE)``; O is float32,
    and of q's dtype if there is one part."""
    batch, pages, width = T.dynamic("batch, pages, width")
    per, narrow = heads // kv_heads, kv_dtype != dtype
    inner = "float16" if narrow else dtype  # e4m3 becomes float16 in one instruction for two, bfloat16 in three
    rows = min(page, BN)
    out_dtype = dtype if splits == 1 else "float32"

    @T.macro
    def load(X, table, b, head, tile, n, dst, full, free, s, phase):
        T.mbarrier_wait_parity(free[s], phase)
        if rows == BN:
            token = T.min(tile * BN, (T.ceildiv(n, BN) - 1) * BN)
            at = table[b, token // page]
            off = token % page
            T.tma_copy(X[at, off : off + BN, head, :], dst[s, :, :], barrier=full[s])
        else:
            for r, c in T.grid(BN // rows, dim // BN):
                token = T.min(tile * BN + r * rows, (T.ceildiv(n, rows) - 1) * rows)
                at = table[b, token // page]
                T.tma_copy(X[at, :, head, c * BN : c * BN + BN], dst[s, r * rows : r * rows + rows, c * BN : c * BN + BN], barrier=full[s])
        release(full, s)

    @T.macro
    def widen(x, s, wide, at):
        """A tile of 8-bit floats into one that the tensor cores take beside q."""
        for r, c in T.Parallel(BN, dim):
            wide[at, r, c] = T.cast(x[s, r, c], inner)
        T.fence_proxy_async()
        T.sync_threads(8, 128)

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype), K: T.Tensor((pages, page, kv_heads, dim), kv_dtype),
        V: T.Tensor((pages, page, kv_heads, dim), kv_dtype), scales: T.Tensor((2,), "float32"), table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"), O: T.Tensor((splits, batch, heads, dim), out_dtype), LSE: T.Tensor((splits, batch, heads),
        "float32"),
    ):  # fmt: skip
        with T.Kernel(splits, kv_heads, batch, threads=256) as (split, head, b):
            q = T.alloc_shared((R, dim), dtype)
            k, v = [T.alloc_shared((stages, BN, dim), kv_dtype) for _ in range(2)]
            if narrow and dim <= 128:
                T.annotate_min_blocks_per_sm(2)
            if narrow:
                wide, q_wide = T.alloc_shared((2, BN, dim), inner), T.alloc_shared((R, dim), inner)
            S, acc = T.alloc_fragment((R, BN), "float32"), T.alloc_fragment((R, dim), "float32")
            P = T.alloc_fragment((R, BN), inner)
            m, mn, al, rs, l = [T.alloc_fragment((R,), "float32") for _ in range(5)]
            asked = T.alloc_barrier([1])
            k_full, v_full = T.alloc_barrier([1] * stages), T.alloc_barrier([1] * stages)
            k_free, v_free = T.alloc_barrier([4] * stages), T.alloc_barrier([4] * stages)
            tx = T.get_thread_binding()
            n, start, count = [T.alloc_var("int32") for _ in range(3)]
            n = lengths[b]
            s2 = T.alloc_var("float32")
            s2 = scale * LOG2E * scales[0]
            start = split * T.ceildiv(T.ceildiv(n, BN), splits)
            count = T.max(0, T.min(T.ceildiv(T.ceildiv(n, BN), splits), T.ceildiv(n, BN) - start))
            if tx >= 128:
                if tx < 160 and count > 0:
                    T.tma_copy(Q[b, head * per : head * per + R, :], q, barrier=asked[0])
                    release(asked, 0)
                    for i in T.serial(count):
                        load(K, table, b, head, start + i, n, k, k_full, k_free, i % stages, ((i // stages) & 1) ^ 1)
                        load(V, table, b, head, start + i, n, v, v_full, v_free, i % stages, ((i // stages) & 1) ^ 1)
            else:
                T.fill(acc, 0)
                T.fill(m, LOW)
                T.fill(l, 0)
                if count > 0:
                    T.mbarrier_wait_parity(asked[0], 0)
                    if narrow:
                        for r, c in T.Parallel(R, dim):
                            q_wide[r, c] = T.cast(q[r, c], inner)
                for i in T.serial(count):
                    s = i % stages
                    T.mbarrier_wait_parity(k_full[s], (i // stages) & 1)
                    if narrow:
                        widen(k, s, wide, 0)
                        T.wgmma_gemm(q_wide, wide[0, :, :], S, transpose_B=True, clear_accum=True)
                    else:
                        T.wgmma_gemm(q, k[s, :, :], S, transpose_B=True, clear_accum=True)
                    T.wait_wgmma(0)
                    release(k_free, s)
                    if (start + i + 1) * BN > n:
                        for r, c in T.Parallel(R, BN):
                            S[r, c] = T.if_then_else((start + i) * BN + c < n, S[r, c], LOW)
                    T.copy(m, mn)
                    T.reduce_max(S, mn, dim=1, clear=False)
                    for r in T.Parallel(R):
                        al[r] = T.exp2((m[r] - mn[r]) * s2)
                        m[r] = mn[r]
                    for r, c in T.Parallel(R, BN):
                        S[r, c] = T.exp2(S[r, c] * s2 - m[r] * s2)
                    T.reduce_sum(S, rs, dim=1)
                    for r in T.Parallel(R):
                        l[r] = l[r] * al[r] + rs[r]
                    for r, c in T.Parallel(R, dim):
                        acc[r, c] *= al[r]
                    T.copy(S, P)
                    T.mbarrier_wait_parity(v_full[s], (i // stages) & 1)
                    if (start + i + 1) * BN > n:
                        for r, c in T.Parallel(BN, dim):
                            if (start + i) * BN + r >= n:
                                v[s, r, c] = T.cast(0.0, kv_dtype)
                        T.fence_proxy_async()
                        T.sync_threads(8, 128)
                    if narrow:
                        widen(v, s, wide, 1)
                        T.wgmma_gemm(P, wide[1, :, :], acc)
                    else:
                        T.wgmma_gemm(P, v[s, :, :], acc)
                    T.wait_wgmma(0)
                    release(v_free, s)
                for r in T.Parallel(R):
                    rs[r] = T.if_then_else(l[r] > 0, scales[1] / l[r], 0.0)
                    if r < per:
                        LSE[split, b, head * per + r] = T.if_then_else(l[r] > 0, m[r] * s2 / LOG2E + T.log(l[r]), -T.infinity("float32"))
                for r, c in T.Parallel(R, dim):
                    if r < per:
                        O[split, b, head * per + r, c] = T.cast(acc[r, c] * rs[r], out_dtype)

    return main


@tilelang.jit
def portable(
    heads: int, kv_heads: int, dim: int, page: int, dtype: str = "bfloat16", scale: float = 128**-0.5, kv_dtype: str = "bfloat16",
    bh: int = 16, bn: int = 64,
) -> Any:  # fmt: skip
    """The same function for every target with tensor cores and any page size, without a split."""
    batch, pages, width = T.dynamic("batch, pages, width")
    per = heads // kv_heads

    @T.prim_func
    def main(
        Q: T.Tensor((batch, heads, dim), dtype), K: T.Tensor((pages, page, kv_heads, dim), kv_dtype),
        V: T.Tensor((pages, page, kv_heads, dim), kv_dtype), scales: T.Tensor((2,), "float32"), table: T.Tensor((batch, width), "int32"),
        lengths: T.Tensor((batch,), "int32"), O: T.Tensor((1, batch, heads, dim), dtype), LSE: T.Tensor((1, batch, heads), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(per, bh), kv_heads, batch, threads=128) as (hx, head, b):
            q, k, v = T.alloc_shared((bh, dim), dtype), T.alloc_shared((bn, dim), dtype), T.alloc_shared((bn, dim), dtype)
            S, P, acc = T.alloc_fragment((bh, bn), "float32"), T.alloc_shared((bh, bn), dtype), T.alloc_fragment((bh, dim), "float32")
            m, mn, al, rs, l = [T.alloc_fragment((bh,), "float32") for _ in range(5)]
            n = T.alloc_var("int32")
            n = lengths[b]
            s2 = T.alloc_var("float32")
            s2 = scale * LOG2E * scales[0]
            T.fill(acc, 0)
            T.fill(m, LOW)
            T.fill(l, 0)
            for r, c in T.Parallel(bh, dim):
                q[r, c] = T.if_then_else(hx * bh + r < per, Q[b, T.min(head * per + hx * bh + r, heads - 1), c], 0)
            for j in T.serial(T.ceildiv(n, bn)):
                for r, c in T.Parallel(bn, dim):
                    token = T.min(j * bn + r, n - 1)
                    k[r, c] = T.if_then_else(j * bn + r < n, T.cast(K[table[b, token // page], token % page, head, c], dtype), 0)
                    v[r, c] = T.if_then_else(j * bn + r < n, T.cast(V[table[b, token // page], token % page, head, c], dtype), 0)
                T.gemm(q, k, S, transpose_B=True, clear_accum=True)
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
                for h, c in T.Parallel(bh, dim):
                    acc[h, c] *= al[h]
                T.copy(S, P)
                T.gemm(P, v, acc)
            for h, c in T.Parallel(bh, dim):
                if hx * bh + h < per:
                    O[0, b, head * per + hx * bh + h, c] = T.cast(T.if_then_else(l[h] > 0, acc[h, c] * scales[1] / l[h], 0.0), dtype)
            for h in T.Parallel(bh):
                if hx * bh + h < per:
                    LSE[0, b, head * per + hx * bh + h] = T.if_then_else(l[h] > 0, m[h] / LOG2E + T.log(l[h]), -T.infinity("float32"))

    return main


@tilelang.jit
def combine(heads: int, dim: int, splits: int, dtype: str = "bfloat16") -> Any:
    """Joins the parts of split keys by their LSE: ``(parts [splits, B, H, D] float32, part_lse, out, lse)``."""
    batch = T.dynamic("batch")
    none = -T.infinity("float32")

    @T.prim_func
    def main(
        P: T.Tensor((splits, batch, heads, dim), "float32"),
        PL: T.Tensor((splits, batch, heads), "float32"),
        O: T.Tensor((batch, heads, dim), dtype),
        LSE: T.Tensor((batch, heads), "float32"),
    ):
        with T.Kernel(heads, batch, threads=128) as (h, b):
            acc = T.alloc_fragment((dim,), "float32")
            top = T.alloc_var("float32", init=none)
            total = T.alloc_var("float32", init=0.0)
            T.clear(acc)
            for s in T.serial(splits):
                top = T.max(top, PL[s, b, h])
            top = T.if_then_else(top == none, 0.0, top)
            for s in T.serial(splits):
                total = total + T.exp(PL[s, b, h] - top)
                for c in T.Parallel(dim):
                    acc[c] += T.exp(PL[s, b, h] - top) * P[s, b, h, c]
            for c in T.Parallel(dim):
                O[b, h, c] = T.cast(T.if_then_else(total > 0, acc[c] / total, 0.0), dtype)
            LSE[b, h] = T.if_then_else(total > 0, top + T.log(total), none)

    return main


@lru_cache(maxsize=256)
def build(fast: bool, heads: int, kv_heads: int, dim: int, page: int, splits: int, dtype: str, scale: float, kv_dtype: str) -> Any:
    """The compiled kernels of one problem: the part over the keys, and the join if they are split (else None)."""
    if not fast:
        return portable(heads, kv_heads, dim, page, dtype, scale, kv_dtype), None
    over = hopper(heads, kv_heads, dim, page, splits, dtype, scale, kv_dtype, stages=3 if dim <= 128 else 2)
    return over, combine(heads, dim, splits, dtype) if splits > 1 else None


def choose_splits(batch: int, kv_heads: int, longest: int, sms: int) -> int:
    """As many parts as two blocks a multiprocessor take in one wave, of four tiles or more."""
    return max(1, min(2 * sms // (batch * kv_heads), -(-longest // (4 * BN)), 64))


def decode(
    q: "torch.Tensor", k_cache: "torch.Tensor", v_cache: "torch.Tensor", table: "torch.Tensor", lengths: "torch.Tensor", *,
    scale: float | None = None, splits: int | None = None, kv_scales: "torch.Tensor | None" = None,
) -> "tuple[torch.Tensor, torch.Tensor]":  # fmt: skip
    """One decode step over a paged cache.

    Args:
        q: [B, H, D] bfloat16 or float16.
        k_cache, v_cache: [pages, page, Hk, D], of q's dtype or float8_e4m3fn (q then fits float16); the fast kernel takes pages of 8,
            16, 32 or a multiple of 64 tokens.
        table: [B, max_pages] int32, the pages of each sequence in order.
        lengths: [B] int32.
        scale: of the scores; ``D ** -0.5`` if None.
        splits: parts that the keys are cut into; chosen if None.
        kv_scales: [2] float32 on the device, what a float8 k and v were divided by; 1 if None.

    Returns:
        out [B, H, D] and lse [B, H] float32.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    checks.tensor("q", q, 3, DTYPES)
    dtype = str(q.dtype).removeprefix("torch.")
    checks.tensor("k_cache", k_cache, 4, (dtype, "float8_e4m3fn"))
    kv_dtype = str(k_cache.dtype).removeprefix("torch.")
    checks.tensor("v_cache", v_cache, 4, (kv_dtype,))
    if kv_scales is not None:
        checks.tensor("kv_scales", kv_scales, 1, ("float32",))
        checks.require(kv_scales.shape[0] == 2, f"kv_scales must hold 2 numbers, but it holds {kv_scales.shape[0]}")
    checks.tensor("table", table, 2, ("int32",))
    checks.tensor("lengths", lengths, 1, ("int32",))
    checks.same_device(q=q, k_cache=k_cache, v_cache=v_cache, table=table, lengths=lengths)
    batch, heads, dim = q.shape
    _, page, kv_heads, dim_k = k_cache.shape
    checks.require(
        k_cache.shape == v_cache.shape and dim_k == dim, f"caches must be [pages, page, heads, {dim}], not {tuple(k_cache.shape)}"
    )
    checks.require(
        heads % kv_heads == 0 and heads // kv_heads <= R, f"H / Hk must be whole and at most {R}, but H is {heads} and Hk {kv_heads}"
    )
    checks.require(dim in (64, 128, 256), f"D must be 64, 128 or 256, but it is {dim}")
    checks.require(table.shape[0] == batch and lengths.shape[0] == batch, f"table and lengths must have q's batch {batch}")
    fast = checks.hopper(q) and (page % BN == 0 or page in (8, 16, 32))
    parts = splits or (choose_splits(batch, kv_heads, table.shape[1] * page, checks.sm_count(q)) if fast else 1)
    scales = ones(str(q.device)) if kv_scales is None else kv_scales
    over, join = build(fast, heads, kv_heads, dim, page, parts, dtype, dim**-0.5 if scale is None else scale, kv_dtype)
    out = torch.empty_like(q)
    lse = torch.empty((batch, heads), dtype=torch.float32, device=q.device)
    if join is None:
        over(q, k_cache, v_cache, scales, table, lengths, out.unsqueeze(0), lse.unsqueeze(0))
    else:
        part, part_lse = lse.new_empty((parts, batch, heads, dim)), lse.new_empty((parts, batch, heads))
        over(q, k_cache, v_cache, scales, table, lengths, part, part_lse)
        join(part, part_lse, out, lse)
    return out, lse


@lru_cache(maxsize=8)
def ones(device: str) -> "torch.Tensor":
    """The scales of a cache that is not scaled."""
    import torch

    return torch.ones(2, dtype=torch.float32, device=device)


def reference(
    q: "torch.Tensor", k_cache: "torch.Tensor", v_cache: "torch.Tensor", table: "torch.Tensor", lengths: "torch.Tensor", *,
    scale: float | None = None, kv_scales: "torch.Tensor | None" = None,
) -> "tuple[torch.Tensor, torch.Tensor]":  # fmt: skip
    """The same in torch, in float64, one sequence at a time."""
    import torch

    group = q.shape[1] // k_cache.shape[2]
    outs, sums = [], []
    if kv_scales is not None:
        k_cache, v_cache = k_cache.double() * kv_scales[0].double(), v_cache.double() * kv_scales[1].double()
    for b in range(q.shape[0]):
        n = int(lengths[b])
        k, v = (c[table[b].long()].flatten(0, 1)[:n].double().repeat_interleave(group, 1) for c in (k_cache, v_cache))
        scores = torch.einsum("hd,nhd->hn", q[b].double(), k) * (q.shape[-1] ** -0.5 if scale is None else scale)
        sums.append(torch.logsumexp(scores, -1) if n else scores.new_full((q.shape[1],), -torch.inf))
        outs.append(torch.einsum("hn,nhd->hd", torch.softmax(scores, -1), v))
    return torch.stack(outs), torch.stack(sums)

"""DeepSeek sparse attention over MLA's latent rows: each query attends to the rows that its own indices name; forward and backward.

q [S, H, 576] (512 latent + 64 rotary columns), kv [tokens, 576] (the keys; their first 512 columns are the values), indices [S, K] int32
→ out [S, H, 512] of q's dtype, lse [S, H] float32 (natural logarithm). An index below 0 or past the last row is no key; one that comes
twice counts twice; a query without a key gives 0 and an LSE of −inf. bfloat16 or float16.

``hopper`` is ``mla``'s schedule (FlashMLA's "seesaw", https://github.com/deepseek-ai/FlashMLA) with another producer: a whole warpgroup
gathers rows with ``cp.async``, eight lanes to a piece of 128 bytes, and fills with zeros what is no key. It reads a paged cache as well,
with pages of any size: the index list is then a page table. ``backward`` follows DeepSeek-V3.2's report
(https://github.com/deepseek-ai/DeepSeek-V3.2-Exp): dq is summed over a query's keys in registers, dkv in float32 with atomics, since many
queries share a key: its last bits may differ from run to run.

Two numbers (64 heads × 64 keys): 2176 tensor cycles; 72 KiB out of the L2, which 128 heads fetch twice. 4096 queries × 2048 keys: 2.3
TFLOP, 19 GB.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.mla import BH, BN, DTYPES, FAST, HALF, LOG2E, D, E, portable, seesaw
from tilelab.kernels.parts import release

if TYPE_CHECKING:
    import torch

ROWS = 16  # rows that 128 threads bring at a time, eight lanes to a row
STEPS = BN // ROWS


@tilelang.jit(pass_configs=FAST)
def hopper(heads: int, page: int = 1, splits: int = 1, dtype: str = "bfloat16", scale: float = 576**-0.5) -> Any:
    """``(Q, KV, table, lengths, O [splits, …] float32, LSE)`` for sm_90a; O of q's dtype if there is one part.

    With pages of one row, the table is a list of rows, and negative entries are left out.
    """
    batch, tokens, width = T.dynamic("batch, tokens, width")
    out_dtype, consume = dtype if splits == 1 else "float32", seesaw(heads, scale * LOG2E, True)

    def row_of(table: Any, b: Any, token: Any, n: Any, tokens: Any) -> Any:
        """The row of a token, or −1 if there is none."""
        last = T.max(T.min(token, n - 1), 0)
        row = table[b, last // page] * page + last % page
        return T.if_then_else(T.And(token < n, T.And(row >= 0, row < tokens)), row, -1)

    @T.macro
    def gather(KV, own, first, group, lane, left, chunks, dst, full, free, s, phase):
        T.mbarrier_wait_parity(free[s], phase)
        for r in T.unroll(STEPS):
            for c in T.unroll(chunks):
                T.ptx_cp_async(
                    T.access_ptr(dst[r * ROWS + group, c * E + lane * 8], "w", 8),
                    T.access_ptr(KV[T.max(own[first + r], 0), left + c * E + lane * 8], "r", 8), 8, own[first + r] >= 0,
                )  # fmt: skip
        T.cp_async_barrier_noinc(full[s])

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
            rows = T.alloc_shared((2, 2, BN), "int32")  # of this pair's keys and the next one's
            S0, S1 = [T.alloc_fragment((BH, BN), "float32") for _ in range(2)]
            P0, P1, qe0, qe1 = [T.alloc_fragment((BH, BN), dtype) for _ in range(4)]
            OL, OR = [T.alloc_fragment((BH, HALF), "float32") for _ in range(2)]
            m0, r0, c0, l0, m1, r1, c1, l1 = [T.alloc_fragment((BH,), "float32") for _ in range(8)]
            own = T.alloc_local((2 * STEPS,), "int32")
            loaded, maxed, made = T.alloc_barrier([1]), T.alloc_barrier([128]), T.alloc_barrier([128] * 2)
            full, free = T.alloc_barrier([128] * 6), T.alloc_barrier([4] * 6)
            tx = T.get_thread_binding()
            n, start, pairs, ahead = [T.alloc_var("int32") for _ in range(4)]
            n = lengths[b]
            start = split * T.ceildiv(T.ceildiv(n, 2 * BN), splits)
            pairs = T.max(0, T.min(T.ceildiv(T.ceildiv(n, 2 * BN), splits), T.ceildiv(n, 2 * BN) - start))
            if tx >= 256:
                T.dec_max_nreg(56)
                if tx < 288:
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, 0:HALF], q[0], barrier=loaded[0])
                    T.tma_copy(Q[b, hx * BH : (hx + 1) * BH, HALF:D], q[1], barrier=loaded[0])
                    release(loaded, 0)
                group = (tx - 256) // 8
                lane = (tx - 256) % 8
                rows[0, (tx - 256) // BN, tx % BN] = row_of(table, b, 2 * start * BN + tx - 256, n, tokens)
                T.sync_threads(11, 128)
                for i in T.serial(pairs):
                    ahead = row_of(table, b, 2 * (start + i + 1) * BN + tx - 256, n, tokens)  # a token a thread, one pair ahead
                    for r in T.unroll(2 * STEPS):
                        own[r] = rows[i & 1, r // STEPS, r % STEPS * ROWS + group]
                    for s, w, left in ((0, 0, 0), (4, 1, HALF), (2, 0, D), (5, 1, D), (1, 0, HALF), (3, 1, 0)):
                        gather(KV, own, w * STEPS, group, lane, left, tiles[s].shape[1] // E, tiles[s], full, free, s, (i & 1) ^ 1)
                    rows[(i + 1) & 1, (tx - 256) // BN, tx % BN] = ahead  # nobody reads the old ones: both rotary tiles were free
                    T.sync_threads(11, 128)
            elif tx < 128:
                consume(0, 0, 1, 2, 3, Q, O, LSE, (split, b), hx * BH, q, tiles, p, sm, sx, rows, loaded, full, free, maxed, made, S0, P0,
                    qe0, OL, m0, r0, c0, l0, start, pairs, n)  # fmt: skip
            else:
                consume(1, 4, 3, 5, 1, Q, O, LSE, (split, b), hx * BH, q, tiles, p, sm, sx, rows, loaded, full, free, maxed, made, S1, P1,
                    qe1, OR, m1, r1, c1, l1, start, pairs, n)  # fmt: skip

    return main


@tilelang.jit
def gradient(heads: int, dtype: str = "bfloat16", scale: float = 576**-0.5, bh: int = 16, bn: int = 16, threads: int = 64) -> Any:
    """``(Q, KV, indices, dO, LSE, Delta, dQ, dKV float32)`` for every target with tensor cores; dKV is added to."""
    queries, tokens, width = T.dynamic("queries, tokens, width")
    s2 = scale * LOG2E

    @T.prim_func
    def main(
        Q: T.Tensor((queries, heads, D + E), dtype), KV: T.Tensor((tokens, D + E), dtype), indices: T.Tensor((queries, width), "int32"),
        dO: T.Tensor((queries, heads, D), dtype), LSE: T.Tensor((queries, heads), "float32"), Delta: T.Tensor((queries, heads), "float32"),
        dQ: T.Tensor((queries, heads, D + E), dtype), dKV: T.Tensor((tokens, D + E), "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(heads, bh), queries, threads=threads) as (hx, b):
            ql, qe, do = T.alloc_shared((bh, D), dtype), T.alloc_shared((bh, E), dtype), T.alloc_shared((bh, D), dtype)
            kl, ke = T.alloc_shared((bn, D), dtype), T.alloc_shared((bn, E), dtype)
            p, ds = T.alloc_shared((bh, bn), dtype), T.alloc_shared((bh, bn), dtype)
            rows, bits, delta = T.alloc_shared((bn,), "int32"), T.alloc_shared((bh,), "float32"), T.alloc_shared((bh,), "float32")
            S, dP = T.alloc_fragment((bh, bn), "float32"), T.alloc_fragment((bh, bn), "float32")
            aQ, aE = T.alloc_fragment((bh, D), "float32"), T.alloc_fragment((bh, E), "float32")
            aL, aR = T.alloc_fragment((bn, D), "float32"), T.alloc_fragment((bn, E), "float32")
            T.fill(aQ, 0)
            T.fill(aE, 0)
            for h, c in T.Parallel(bh, D):
                ql[h, c] = T.if_then_else(hx * bh + h < heads, Q[b, T.min(hx * bh + h, heads - 1), c], 0)
                do[h, c] = T.if_then_else(hx * bh + h < heads, dO[b, T.min(hx * bh + h, heads - 1), c], 0)
            for h, c in T.Parallel(bh, E):
                qe[h, c] = T.if_then_else(hx * bh + h < heads, Q[b, T.min(hx * bh + h, heads - 1), D + c], 0)
            for h in T.Parallel(bh):
                own = LSE[b, T.min(hx * bh + h, heads - 1)]
                seen = T.And(hx * bh + h < heads, own > -T.infinity("float32"))
                bits[h] = T.if_then_else(seen, own * LOG2E, T.infinity("float32"))
                delta[h] = Delta[b, T.min(hx * bh + h, heads - 1)]
            for j in T.serial(T.ceildiv(width, bn)):
                for r in T.Parallel(bn):
                    row = indices[b, T.min(j * bn + r, width - 1)]
                    rows[r] = T.if_then_else(T.And(j * bn + r < width, row < tokens), row, -1)
                for r, c in T.Parallel(bn, D):
                    kl[r, c] = T.if_then_else(rows[r] >= 0, KV[T.max(rows[r], 0), c], 0)
                for r, c in T.Parallel(bn, E):
                    ke[r, c] = T.if_then_else(rows[r] >= 0, KV[T.max(rows[r], 0), D + c], 0)
                T.gemm(ql, kl, S, transpose_B=True, clear_accum=True)
                T.gemm(qe, ke, S, transpose_B=True)
                T.gemm(do, kl, dP, transpose_B=True, clear_accum=True)
                for h, c in T.Parallel(bh, bn):
                    S[h, c] = T.if_then_else(rows[c] >= 0, T.exp2(S[h, c] * s2 - bits[h]), 0.0)
                T.copy(S, p)
                for h, c in T.Parallel(bh, bn):
                    S[h, c] *= (dP[h, c] - delta[h]) * scale
                T.copy(S, ds)
                T.gemm(ds, kl, aQ)
                T.gemm(ds, ke, aE)
                T.gemm(ds, ql, aL, transpose_A=True, clear_accum=True)
                T.gemm(p, do, aL, transpose_A=True)
                T.gemm(ds, qe, aR, transpose_A=True, clear_accum=True)
                for r, c in T.Parallel(bn, D):
                    if rows[r] >= 0:
                        T.atomic_add(dKV[rows[r], c], aL[r, c])
                for r, c in T.Parallel(bn, E):
                    if rows[r] >= 0:
                        T.atomic_add(dKV[rows[r], D + c], aR[r, c])
            for h, c in T.Parallel(bh, D):
                if hx * bh + h < heads:
                    dQ[b, hx * bh + h, c] = T.cast(aQ[h, c], dtype)
            for h, c in T.Parallel(bh, E):
                if hx * bh + h < heads:
                    dQ[b, hx * bh + h, D + c] = T.cast(aE[h, c], dtype)

    return main


@lru_cache(maxsize=64)
def build(fast: bool, heads: int, dtype: str, scale: float) -> Any:
    """The compiled forward kernel."""
    return hopper(heads, 1, 1, dtype, scale) if fast else portable(heads, 1, dtype, scale)


@lru_cache(maxsize=64)
def build_gradient(fast: bool, heads: int, dtype: str, scale: float) -> Any:
    """The compiled backward kernel: larger tiles where shared memory holds them."""
    return gradient(heads, dtype, scale, **({"bh": 64, "bn": 32, "threads": 256} if fast else {}))


def check(q: "torch.Tensor", kv: "torch.Tensor", indices: "torch.Tensor") -> str:
    """Checks what both directions take; the dtype's name."""
    checks.tensor("q", q, 3, DTYPES)
    dtype = str(q.dtype).removeprefix("torch.")
    checks.tensor("kv", kv, 2, (dtype,))
    checks.tensor("indices", indices, 2, ("int32",))
    checks.same_device(q=q, kv=kv, indices=indices)
    checks.require(
        q.shape[2] == D + E and kv.shape[1] == D + E, f"q and kv must have {D + E} columns, but they have {q.shape[2]} and {kv.shape[1]}"
    )
    checks.require(
        indices.shape[0] == q.shape[0], f"indices must have a row for each of q's {q.shape[0]} queries, but they have {indices.shape[0]}"
    )
    checks.require(kv.shape[0] > 0 and indices.shape[1] > 0, "kv and indices must not be empty")
    return dtype


def sparse_mla(
    q: "torch.Tensor", kv: "torch.Tensor", indices: "torch.Tensor", *, scale: float | None = None
) -> "tuple[torch.Tensor, torch.Tensor]":
    """Sparse attention of each query over the rows that its indices name.

    Args:
        q: [S, H, 576]: 512 latent columns, then 64 rotary ones; bfloat16 or float16.
        kv: [tokens, 576], of q's dtype.
        indices: [S, K] int32, rows of kv; those outside it are left out, equal ones count each time.
        scale: of the scores; ``576 ** -0.5`` if None (DeepSeek's own is of the head before absorption: pass it).

    Returns:
        out [S, H, 512] and lse [S, H] float32.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    dtype = check(q, kv, indices)
    out, lse = q.new_empty((*q.shape[:2], D)), q.new_empty(q.shape[:2], dtype=torch.float32)
    if q.shape[0] == 0:
        return out, lse
    kernel = build(checks.hopper(q), q.shape[1], dtype, 576**-0.5 if scale is None else scale)
    kernel(q, kv, indices, whole(q.shape[0], indices.shape[1], str(q.device)), out.unsqueeze(0), lse.unsqueeze(0))
    return out, lse


def sparse_mla_backward(
    dout: "torch.Tensor", q: "torch.Tensor", kv: "torch.Tensor", indices: "torch.Tensor", out: "torch.Tensor", lse: "torch.Tensor", *,
    scale: float | None = None,
) -> "tuple[torch.Tensor, torch.Tensor]":  # fmt: skip
    """The gradients dq [S, H, 576] and dkv [tokens, 576], of q's dtype; ``dout`` is that of out, ``out`` and ``lse`` are ``sparse_mla``'s.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    dtype = check(q, kv, indices)
    for name, value in (("dout", dout), ("out", out)):
        checks.tensor(name, value, 3, (dtype,))
        checks.require(value.shape == (*q.shape[:2], D), f"{name} must be {(*q.shape[:2], D)}, but it is {tuple(value.shape)}")
    checks.tensor("lse", lse, 2, ("float32",))
    checks.same_device(q=q, dout=dout, out=out, lse=lse)
    dq, dkv = torch.empty_like(q), torch.zeros(kv.shape, dtype=torch.float32, device=kv.device)
    if q.shape[0]:
        delta = torch.linalg.vecdot(dout.float(), out.float())
        kernel = build_gradient(checks.hopper(q), q.shape[1], dtype, 576**-0.5 if scale is None else scale)
        kernel(q, kv, indices, dout, lse, delta, dq, dkv)
    return dq, dkv.to(kv.dtype)


@lru_cache(maxsize=16)
def whole(queries: int, keys: int, device: str) -> "torch.Tensor":
    """The lengths of index lists that are all full."""
    import torch

    return torch.full((queries,), keys, dtype=torch.int32, device=device)


def reference(
    q: "torch.Tensor", kv: "torch.Tensor", indices: "torch.Tensor", *, scale: float | None = None
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The same in torch, in float64, differentiable."""
    import torch

    valid = (indices >= 0) & (indices < kv.shape[0])
    rows = kv.double()[indices.clamp(0, kv.shape[0] - 1).long()]
    scores = torch.einsum("shd,skd->shk", q.double(), rows) * (576**-0.5 if scale is None else scale)
    scores = scores.masked_fill(~valid[:, None], -torch.inf)
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse.clamp_min(-1e300)[..., None])
    return torch.einsum("shk,skd->shd", weights, rows[..., :D]), lse

"""FlashAttention forward: ``softmax(scale · Q Kᵀ + mask) V`` with the scores never leaving the chip, and its logarithm of sums for the
backward.

Dense: q [B, Sq, H, D], k [B, Sk, Hk, D], v [B, Sk, Hk, Dv] → out [B, Sq, H, Dv]. Packed sequences (varlen): the first two axes are one,
[tokens, H, D], and cu_q, cu_k [B + 1] int32 say where each sequence begins. H is a multiple of Hk (grouped-query attention). lse [H,
tokens] float32, natural. ``causal`` aligns the last query with the last key; ``window = w`` (causal only) lets a query see its last w
keys. A query that sees no key gives 0, and an LSE of −inf. bfloat16 or float16, D and Dv multiples of 64 up to 256 (256: tiles of 80
keys).

``hopper`` follows FlashAttention-3 (Shah et al. 2024, https://arxiv.org/abs/2407.08608), written anew in TileLang: a producer warp brings
K and V tiles with TMA; two consumer warpgroups own 64 queries each and take turns at the tensor cores (named barriers), so that one's
softmax hides behind the other's products; inside a warpgroup the scores of the next tile are in flight while the probabilities of this
one are multiplied with V. Tiles run from the last key to the first, so that masked tiles come first.

Two numbers (128 queries × 128 keys, D 128): 2048 tensor cycles, and 1024 cycles of the special function unit for the exponentials.
"""

from dataclasses import astuple, dataclass
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
FAST = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}
R = 64  # queries a consumer warpgroup
BM = 2 * R


@tilelang.jit(pass_configs=FAST)
def hopper(
    batch: int, heads: int, kv_heads: int, tokens_q: int, tokens_k: int, longest_q: int, longest_k: int, dim: int = 128, dim_v: int = 128,
    causal: bool = False, window: int = 0, varlen: bool = False, dtype: str = "bfloat16", scale: float = 128**-0.5, bn: int = 128,
        stages: int = 2,
    turns: bool = True,
) -> Any:  # fmt: skip
    """The warp-specialised kernel for sm_90a: ``(Q, K, V, cu_q, cu_k, O, LSE)``; dense tensors are given with batch and sequence merged."""
    s2 = scale * LOG2E
    blocks = -(-longest_q // BM)
    none = -T.infinity("float32")

    def stop(row: Any, lq: Any, lk: Any) -> Any:
        """One past the last key tile that the block's queries see."""
        return T.ceildiv(T.max(0, T.min(lk, row + BM + lk - lq)), bn) if causal else T.ceildiv(lk, bn)

    def start(row: Any, lq: Any, lk: Any, end: Any) -> Any:
        """The first key tile that they see."""
        return T.min(end, T.max(0, row + lk - lq - window + 1) // bn) if window > 0 else 0

    @T.macro
    def softmax(S, m, mn, ms, al, rs, l, row, first, lq, lk):
        """One tile of scores (keys from ``first``) into probabilities; ``al`` is what everything before must be multiplied with."""
        shift = lk - lq
        edge = first + bn > (T.min(lk, row + shift + 1) if causal else lk)
        if (edge or first < row + R + shift - window) if window > 0 else edge:
            for r, c in T.Parallel(R, bn):
                seen = first + c < (T.min(lk, row + r + shift + 1) if causal else lk)
                if window > 0:
                    S[r, c] = T.if_then_else(T.And(seen, first + c > row + r + shift - window), S[r, c], none)
                else:
                    S[r, c] = T.if_then_else(seen, S[r, c], none)
        T.copy(m, mn)
        T.reduce_max(S, mn, dim=1, clear=False)
        for r in T.Parallel(R):
            ms[r] = T.if_then_else(mn[r] == none, 0.0, mn[r] * s2)
            al[r] = T.exp2(m[r] * s2 - ms[r])
            m[r] = mn[r]
        for r, c in T.Parallel(R, bn):
            S[r, c] = T.exp2(S[r, c] * s2 - ms[r])
        T.reduce_sum(S, rs, dim=1)
        for r in T.Parallel(R):
            l[r] = l[r] * al[r] + rs[r]

    @T.macro
    def consume(
        wg, q, k, v, asked, k_full, k_free, v_full, v_free, O, LSE, row, q0, lq, lk, head, last, n, S, P, acc, out, m, mn, ms, al, rs, l
    ):
        T.inc_max_nreg(240)
        T.fill(acc, 0)
        T.fill(m, none)
        T.fill(l, 0)
        if turns:  # noqa: SIM102 – both are known while tracing
            if wg == 1:
                T.named_barrier_arrive(8, 256)
        if n > 0:
            T.mbarrier_wait_parity(asked[0], 0)
            T.mbarrier_wait_parity(k_full[0], 0)
            T.wgmma_gemm(q, k[0, :, :], S, transpose_B=True, clear_accum=True)
            T.wait_wgmma(0)
            release(k_free, 0)
            softmax(S, m, mn, ms, al, rs, l, row, last * bn, lq, lk)
            T.copy(S, P)
            for i in T.serial(1, n):
                s = i % stages
                p = (i - 1) % stages
                T.mbarrier_wait_parity(k_full[s], (i // stages) & 1)
                if turns:
                    T.sync_threads(8 + wg, 256)
                T.wgmma_gemm(q, k[s, :, :], S, transpose_B=True, clear_accum=True)
                T.mbarrier_wait_parity(v_full[p], ((i - 1) // stages) & 1)
                T.wgmma_gemm(P, v[p, :, :], acc)
                if turns:
                    T.named_barrier_arrive(9 - wg, 256)
                T.wait_wgmma(1)
                release(k_free, s)
                softmax(S, m, mn, ms, al, rs, l, row, (last - i) * bn, lq, lk)
                T.wait_wgmma(0)
                release(v_free, p)
                for r, c in T.Parallel(R, dim_v):
                    acc[r, c] *= al[r]
                T.copy(S, P)
            T.mbarrier_wait_parity(v_full[(n - 1) % stages], ((n - 1) // stages) & 1)
            T.wgmma_gemm(P, v[(n - 1) % stages, :, :], acc)
            T.wait_wgmma(0)
        for r in T.Parallel(R):
            rs[r] = T.if_then_else(l[r] > 0, 1.0 / l[r], 0.0)
            if row + r < lq:
                LSE[head, q0 + row + r] = T.if_then_else(l[r] > 0, m[r] * scale + T.log(l[r]), none)
        for r, c in T.Parallel(R, dim_v):
            acc[r, c] *= rs[r]
        T.copy(acc, out)
        for r, c in T.Parallel(R, dim_v):
            if row + r < lq:
                O[q0 + row + r, head, c] = out[r, c]

    @T.prim_func
    def main(
        Q: T.Tensor((tokens_q, heads, dim), dtype), K: T.Tensor((tokens_k, kv_heads, dim), dtype), V: T.Tensor((tokens_k, kv_heads,
            dim_v), dtype),
        cu_q: T.Tensor((batch + 1,), "int32"), cu_k: T.Tensor((batch + 1,), "int32"),
        O: T.Tensor((tokens_q, heads, dim_v), dtype), LSE: T.Tensor((heads, tokens_q), "float32"),
    ):  # fmt: skip
        with T.Kernel(blocks, heads, batch, threads=384) as (x, head, b):
            q_0, q_1 = [T.alloc_shared((R, dim), dtype) for _ in range(2)]
            k = T.alloc_shared((stages, bn, dim), dtype)
            v = T.alloc_shared((stages, bn, dim_v), dtype)
            S0, S1 = [T.alloc_fragment((R, bn), "float32") for _ in range(2)]
            P0, P1 = [T.alloc_fragment((R, bn), dtype) for _ in range(2)]
            A0, A1 = [T.alloc_fragment((R, dim_v), "float32") for _ in range(2)]
            F0, F1 = [T.alloc_fragment((R, dim_v), dtype) for _ in range(2)]
            m0, n0, s0, a0, r0, l0 = [T.alloc_fragment((R,), "float32") for _ in range(6)]
            m1, n1, s1, a1, r1, l1 = [T.alloc_fragment((R,), "float32") for _ in range(6)]
            asked = T.alloc_barrier([1])
            k_full, v_full = T.alloc_barrier([1] * stages), T.alloc_barrier([1] * stages)
            k_free, v_free = T.alloc_barrier([8] * stages), T.alloc_barrier([8] * stages)
            tx = T.get_thread_binding()
            row = ((blocks - 1 - x) if causal else x) * BM
            if varlen:
                q0, k0, lq, lk, end, n = [T.alloc_var("int32") for _ in range(6)]  # variables, so that each is worked out once
                q0 = cu_q[b]
                k0 = cu_k[b]
                lq = cu_q[b + 1] - q0
                lk = cu_k[b + 1] - k0
                end = stop(row, lq, lk)
                n = T.if_then_else(row < lq, end - start(row, lq, lk, end), 0)
            else:
                q0 = b * longest_q
                k0 = b * longest_k
                lq = longest_q
                lk = longest_k
                end = stop(row, lq, lk)
                n = end - start(row, lq, lk, end)
            if tx >= 256:
                T.dec_max_nreg(24)
                if tx < 288:
                    if n > 0:
                        T.tma_copy(Q[q0 + row : q0 + row + R, head, :], q_0, barrier=asked[0])
                        T.tma_copy(Q[q0 + row + R : q0 + row + 2 * R, head, :], q_1, barrier=asked[0])
                        release(asked, 0)
                    for i in T.serial(n):
                        s = i % stages
                        first = k0 + (end - 1 - i) * bn
                        T.mbarrier_wait_parity(k_free[s], ((i // stages) & 1) ^ 1)
                        T.tma_copy(K[first : first + bn, head // (heads // kv_heads), :], k[s, :, :], barrier=k_full[s])
                        release(k_full, s)
                        T.mbarrier_wait_parity(v_free[s], ((i // stages) & 1) ^ 1)
                        T.tma_copy(V[first : first + bn, head // (heads // kv_heads), :], v[s, :, :], barrier=v_full[s])
                        release(v_full, s)
            elif tx < 128:
                consume(
                    0, q_0, k, v, asked, k_full, k_free, v_full, v_free, O, LSE, row, q0, lq, lk, head, end - 1, n, S0, P0, A0, F0, m0,
                        n0, s0, a0, r0, l0
                )  # fmt: skip
            else:
                consume(
                    1, q_1, k, v, asked, k_full, k_free, v_full, v_free, O, LSE, row + R, q0, lq, lk, head, end - 1, n, S1, P1, A1, F1,
                        m1, n1, s1, a1, r1, l1
                )  # fmt: skip

    return main


@tilelang.jit
def portable(
    batch: int,
    heads: int,
    kv_heads: int,
    tokens_q: int,
    tokens_k: int,
    longest_q: int,
    longest_k: int,
    dim: int = 128,
    dim_v: int = 128,
    causal: bool = False,
    window: int = 0,
    varlen: bool = False,
    dtype: str = "bfloat16",
    scale: float = 128**-0.5,
    bn: int = 64,
    bm: int = 64,
    threads: int = 128,
) -> Any:
    """The same function for every target with tensor cores, with the same arguments."""
    s2 = scale * LOG2E
    none = -T.infinity("float32")

    @T.prim_func
    def main(
        Q: T.Tensor((tokens_q, heads, dim), dtype),
        K: T.Tensor((tokens_k, kv_heads, dim), dtype),
        V: T.Tensor((tokens_k, kv_heads, dim_v), dtype),
        cu_q: T.Tensor((batch + 1,), "int32"),
        cu_k: T.Tensor((batch + 1,), "int32"),
        O: T.Tensor((tokens_q, heads, dim_v), dtype),
        LSE: T.Tensor((heads, tokens_q), "float32"),
    ):
        with T.Kernel(T.ceildiv(longest_q, bm), heads, batch, threads=threads) as (x, head, b):
            q, k, v = T.alloc_shared((bm, dim), dtype), T.alloc_shared((bn, dim), dtype), T.alloc_shared((bn, dim_v), dtype)
            S, P = T.alloc_fragment((bm, bn), "float32"), T.alloc_fragment((bm, bn), dtype)
            acc = T.alloc_fragment((bm, dim_v), "float32")
            m, mn, ms, al, rs, l = [T.alloc_fragment((bm,), "float32") for _ in range(6)]
            row = x * bm
            q0, k0, lq, lk = [T.alloc_var("int32") for _ in range(4)]
            if varlen:
                q0 = cu_q[b]
                k0 = cu_k[b]
                lq = cu_q[b + 1] - q0
                lk = cu_k[b + 1] - k0
            else:
                q0 = b * longest_q
                k0 = b * longest_k
                lq = longest_q
                lk = longest_k
            T.fill(acc, 0)
            T.fill(m, none)
            T.fill(l, 0)
            for r, c in T.Parallel(bm, dim):
                q[r, c] = T.if_then_else(row + r < lq, Q[T.min(q0 + row + r, tokens_q - 1), head, c], 0)
            for j in T.serial(T.ceildiv(lk, bn)):
                if not causal or j * bn < row + bm + lk - lq:
                    for r, c in T.Parallel(bn, dim):
                        k[r, c] = T.if_then_else(
                            j * bn + r < lk, K[T.min(k0 + j * bn + r, tokens_k - 1), head // (heads // kv_heads), c], 0
                        )
                    for r, c in T.Parallel(bn, dim_v):
                        v[r, c] = T.if_then_else(
                            j * bn + r < lk, V[T.min(k0 + j * bn + r, tokens_k - 1), head // (heads // kv_heads), c], 0
                        )
                    T.gemm(q, k, S, transpose_B=True, clear_accum=True, policy=T.GemmWarpPolicy.FullRow)
                    for r, c in T.Parallel(bm, bn):
                        last = row + r + lk - lq
                        seen = j * bn + c < lk
                        if causal:
                            seen = T.And(seen, j * bn + c <= last)
                        if window > 0:
                            seen = T.And(seen, j * bn + c > last - window)
                        S[r, c] = T.if_then_else(seen, S[r, c], none)
                    T.copy(m, mn)
                    T.reduce_max(S, mn, dim=1, clear=False)
                    for r in T.Parallel(bm):
                        ms[r] = T.if_then_else(mn[r] == none, 0.0, mn[r] * s2)
                        al[r] = T.exp2(m[r] * s2 - ms[r])
                        m[r] = mn[r]
                    for r, c in T.Parallel(bm, bn):
                        S[r, c] = T.exp2(S[r, c] * s2 - ms[r])
                    T.reduce_sum(S, rs, dim=1)
                    for r in T.Parallel(bm):
                        l[r] = l[r] * al[r] + rs[r]
                    for r, c in T.Parallel(bm, dim_v):
                        acc[r, c] *= al[r]
                    T.copy(S, P)
                    T.gemm(P, v, acc, policy=T.GemmWarpPolicy.FullRow)
            for r in T.Parallel(bm):
                if row + r < lq:
                    LSE[head, q0 + row + r] = T.if_then_else(l[r] > 0, m[r] * scale + T.log(l[r]), none)
            for r, c in T.Parallel(bm, dim_v):
                if row + r < lq:
                    O[q0 + row + r, head, c] = T.cast(T.if_then_else(l[r] > 0, acc[r, c] / l[r], 0.0), dtype)

    return main


@dataclass(frozen=True, slots=True)
class Problem:
    """What a kernel is compiled for: sizes, masks, dtype and scale."""

    batch: int
    heads: int
    kv_heads: int
    tokens_q: int
    tokens_k: int
    longest_q: int
    longest_k: int
    dim: int
    dim_v: int
    causal: bool
    window: int
    varlen: bool
    dtype: str
    scale: float


@lru_cache(maxsize=256)
def build(fast: bool, p: Problem) -> Any:
    """The compiled kernel of one problem."""
    return hopper(*astuple(p), tile(p.dim, p.dim_v, p.causal)) if fast else portable(*astuple(p))


def describe(
    q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", causal: bool, window: int, scale: float | None, cu_q: "torch.Tensor | None",
    cu_k: "torch.Tensor | None", longest_q: int | None, longest_k: int | None,
) -> "tuple[Problem, torch.Tensor, torch.Tensor]":  # fmt: skip
    """Checks the arguments of ``attention``: the problem, and where each sequence begins (something unused if they are dense)."""
    varlen = cu_q is not None
    axes = 3 if varlen else 4
    checks.tensor("q", q, axes, DTYPES)
    dtype = str(q.dtype).removeprefix("torch.")
    checks.tensor("k", k, axes, (dtype,))
    checks.tensor("v", v, axes, (dtype,))
    checks.same_device(q=q, k=k, v=v, cu_q=cu_q, cu_k=cu_k)
    heads, dim = q.shape[-2:]
    kv_heads, dim_v = v.shape[-2:]
    checks.require(k.shape[-1] == dim, f"q and k must have the same last axis, but they have {dim} and {k.shape[-1]}")
    checks.require(
        k.shape[:-1] == v.shape[:-1], f"k and v must agree but for the last axis, but they are {tuple(k.shape)} and {tuple(v.shape)}"
    )
    checks.require(heads % kv_heads == 0, f"the number of q's heads, {heads}, must be a multiple of k's, {kv_heads}")
    for name, value in (("D", dim), ("Dv", dim_v)):
        checks.require(value % 64 == 0 and value <= 256, f"{name} must be a multiple of 64 up to 256, but it is {value}")
    checks.require(window == 0 or causal, "window needs causal=True")
    if varlen:
        together = cu_k is not None and longest_q is not None and longest_k is not None
        checks.require(together, "packed sequences need cu_q, cu_k, longest_q and longest_k together")
        batch = cu_q.shape[0] - 1
    else:
        batch, longest_q, longest_k = q.shape[0], q.shape[1], k.shape[1]
        checks.require(k.shape[0] == batch, f"q and k must have the same batch, but they have {batch} and {k.shape[0]}")
        cu_q = cu_k = unused(batch + 1, str(q.device))
    problem = Problem(
        batch, heads, kv_heads, q.shape[:-2].numel(), k.shape[:-2].numel(), longest_q, longest_k, dim, dim_v, causal, window, varlen, dtype,
        dim**-0.5 if scale is None else scale,
    )  # fmt: skip
    return problem, cu_q, cu_k


def attention(
    q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", *, causal: bool = False, window: int = 0, scale: float | None = None,
    cu_q: "torch.Tensor | None" = None, cu_k: "torch.Tensor | None" = None, longest_q: int | None = None, longest_k: int | None = None,
) -> "tuple[torch.Tensor, torch.Tensor]":  # fmt: skip
    """FlashAttention forward.

    Args:
        q: [B, Sq, H, D], or [tokens, H, D] with ``cu_q``.
        k: [B, Sk, Hk, D], or [tokens, Hk, D]; H is a multiple of Hk.
        v: [B, Sk, Hk, Dv], or [tokens, Hk, Dv].
        causal: mask keys after the query; the last query is aligned with the last key.
        window: with ``causal``, how many keys a query sees at most; 0 for all.
        scale: of the scores; ``D ** -0.5`` if None.
        cu_q, cu_k: [B + 1] int32 on the device, where each packed sequence begins; ``longest_q`` and ``longest_k`` go with them.

    Returns:
        out, of v's last axis and q's other axes, and lse [H, tokens] float32.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    p, cu_q, cu_k = describe(q, k, v, causal, window, scale, cu_q, cu_k, longest_q, longest_k)
    out = q.new_empty((*q.shape[:-1], p.dim_v))
    lse = q.new_empty((p.heads, p.tokens_q), dtype=single())
    if p.tokens_q == 0:
        return out, lse
    q, k, v = (t.view(-1, *t.shape[-2:]) for t in (q, k, v))
    build(checks.hopper(q), p)(q, k, v, cu_q, cu_k, out.view(-1, p.heads, p.dim_v), lse)
    return out, lse


def tile(dim: int, dim_v: int, causal: bool) -> int:
    """Keys a tile: as many as shared memory and registers allow; a multiple of 16."""
    if max(dim, dim_v) > 192:
        return 80
    if dim == dim_v == 128 and not causal:
        return 160
    return 128


@lru_cache(maxsize=64)
def unused(size: int, device: str) -> "torch.Tensor":
    """The stand-in for the sequence starts of a dense problem."""
    import torch

    return torch.zeros(size, dtype=torch.int32, device=device)


def single() -> Any:
    """torch.float32, without torch at import."""
    import torch

    return torch.float32


def reference(
    q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor", *, causal: bool = False, window: int = 0, scale: float | None = None
) -> "tuple[torch.Tensor, torch.Tensor]":
    """One dense batch in torch, in float64: out [B, Sq, H, Dv] and lse [H, B · Sq]."""
    import torch

    group = q.shape[2] // k.shape[2]
    q, k, v = (t.double().transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    scores = q @ k.transpose(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    at = torch.arange(q.shape[2], device=q.device)[:, None] + k.shape[2] - q.shape[2] - torch.arange(k.shape[2], device=q.device)
    if causal:
        scores.masked_fill_((at < 0) | ((at >= window) if window else False), -torch.inf)
    lse = torch.logsumexp(scores, -1)
    out = torch.softmax(scores, -1).nan_to_num(0) @ v
    return out.transpose(1, 2), lse.transpose(0, 1).flatten(1)

"""W4A16 GEMM: ``C = A @ dequantised(W)ᵀ`` for weights of four bits with a scale for every 128 of a row; summed in float32.

a [M, K] and C [M, N] bfloat16 or float16. Weights as ``quantize`` packs them: codes [N, K / 2] uint8, two weights a byte, each q + 8 for
q in −8 … 7; scales [N, K / 128] of a's dtype. K a multiple of 128, any M and N. Within 128 columns the codes lie in the order in which the
lanes of a warp hold the operand of a matrix instruction (``spot``): a lane's 32 weights of a row are four words that follow each other,
and two neighbours of a row are 16 bits apart.

- ``portable``, for few rows of A: the weights are the operand that comes from registers. A tile of codes is read from shared memory, made
  into numbers (the four bits go under an exponent that makes them 1024 + code in float16, 128 + code in bfloat16, so that no conversion is
  needed) and multiplied with the tile of A from shared memory, so that the product is Cᵀ. ``split_k`` shares out K where there are too few
  tiles, and ``gemm.combine`` adds. The arrangement is the one that TileLang's authors describe for dequantised products
  (https://arxiv.org/abs/2504.17577), written anew; weights in the order of the lanes are Marlin's (https://arxiv.org/abs/2408.11743).
- ``unpack``, for many rows: the weights are made once, and ``gemm`` multiplies; each tile of A would make them again otherwise.

Two numbers (M 16, N = K = 7168): 25.7 MB of codes and 0.8 MB of scales → 6.3 µs at 4.22 TB/s, a quarter of what bfloat16 weights take.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks, gemm

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")
GROUP = 128
#: dtype → (the bits under which four bits become base + code, that base plus 8)
MAGIC = {"float16": (0x6400, 1032.0), "bfloat16": (0x4300, 136.0)}


#: from so many rows of A on the weights are made once
MANY = 256


def spot(c: Any) -> tuple[Any, Any]:
    """Where column c of a group is: the word of its 16 (lane, then matrix instructions by two) and the lowest bit in it."""
    return c % 8 // 2 * 4 + c // 32, c % 2 * 16 + c // 16 % 2 * 8 + c // 8 % 2 * 4


def number(word: Any, bit: Any, dtype: str) -> Any:
    """The four bits of ``word`` from ``bit`` on as a number from −8 to 7."""
    bits, base = MAGIC[dtype]
    return T.reinterpret(T.cast(((word >> bit) & 15) | bits, "uint16"), dtype) - T.cast(base, dtype)


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def portable(
    M: int, N: int, K: int, dtype: str = "bfloat16", bm: int = 64, bn: int = 64, stages: int = 3, threads: int = 128, split_k: int = 1
) -> Any:
    """The kernel, for every target with tensor cores: ``(A, codes, scales, C)``, C [split_k, M, N] float32 where K is split."""
    steps = T.ceildiv(K // GROUP, split_k)
    groups = K // GROUP
    bits, base = MAGIC[dtype]
    c_shape = (M, N) if split_k == 1 else (split_k, M, N)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), codes: T.Tensor((N, K // 8), "int32"), scales: T.Tensor((N, groups), dtype),
        C: T.Tensor(c_shape, dtype if split_k == 1 else "float32"),
    ):  # fmt: skip
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), split_k, threads=threads) as (bx, by, part):
            a, q = T.alloc_shared((bm, GROUP), dtype), T.alloc_shared((bn, GROUP // 8), "int32")
            w, scale = T.alloc_fragment((bn, GROUP), dtype), T.alloc_fragment((bn,), dtype)
            pairs = T.alloc_fragment((bn, GROUP // 2), "int32")
            acc = T.alloc_fragment((bn, bm), "float32")
            T.clear(acc)
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, (part * steps + k) * GROUP], a)
                T.copy(codes[bx * bn, (part * steps + k) * (GROUP // 8)], q)
                for r in T.Parallel(bn):
                    scale[r] = scales[T.min(bx * bn + r, N - 1), T.min(part * steps + k, groups - 1)]
                for r, c in T.Parallel(bn, GROUP // 2):
                    pairs[r, c] = (q[r, spot(2 * c)[0]] >> spot(2 * c)[1]) & 0x000F000F | (bits << 16 | bits)  # two neighbours at once
                raw = T.view(pairs, (bn, GROUP), dtype)
                for r, c in T.Parallel(bn, GROUP):
                    w[r, c] = (raw[r, c] - T.cast(base, dtype)) * scale[r]
                T.gemm(w, a, acc, transpose_B=True)
            for r, c in T.Parallel(bn, bm):
                if bx * bn + r < N and by * bm + c < M:
                    if split_k == 1:
                        C[by * bm + c, bx * bn + r] = T.cast(acc[r, c], dtype)
                    else:
                        C[part, by * bm + c, bx * bn + r] = acc[r, c]

    return main


@tilelang.jit
def unpack(N: int, K: int, dtype: str = "bfloat16", bn: int = 16, threads: int = 128) -> Any:
    """The weights themselves: ``(codes, scales, W [N, K])``."""

    @T.prim_func
    def main(codes: T.Tensor((N, K // 8), "int32"), scales: T.Tensor((N, K // GROUP), dtype), W: T.Tensor((N, K), dtype)):
        with T.Kernel(K // GROUP, T.ceildiv(N, bn), threads=threads) as (bx, by):
            q = T.alloc_shared((bn, GROUP // 8), "int32")
            T.copy(codes[by * bn, bx * (GROUP // 8)], q)
            for r, c in T.Parallel(bn, GROUP):
                if by * bn + r < N:
                    W[by * bn + r, bx * GROUP + c] = number(q[r, spot(c)[0]], spot(c)[1], dtype) * scales[by * bn + r, bx]

    return main


def choose(M: int, N: int, K: int, sms: int) -> dict[str, int]:
    """Tile sizes of ``portable``: few rows take a narrow tile and share out K until seven blocks are on each multiprocessor."""
    bm = 16 if M <= 16 else 32 if M <= 32 else 64
    tiles = -(-N // 64) * -(-M // bm)
    split = 1
    while tiles * split * 2 <= 7 * sms and split < 8 and K // GROUP % (split * 2) == 0:
        split *= 2
    return {"bm": bm, "bn": 64, "stages": 4, "threads": 128, "split_k": split}


@lru_cache(maxsize=256)
def build(M: int, N: int, K: int, dtype: str, sms: int) -> Any:
    """The compiled kernels of one problem as a function ``(A, codes, scales, C)``."""
    import torch

    if M > MANY:
        make = unpack(N, K, dtype)

        def wide(a: "torch.Tensor", codes: "torch.Tensor", scales: "torch.Tensor", c: "torch.Tensor") -> None:
            w = a.new_empty((N, K))
            make(codes, scales, w)
            gemm.gemm(a, w, out=c)

        return wide
    config = choose(M, N, K, sms)
    kernel = portable(M, N, K, dtype, **config)
    split = config["split_k"]
    if split == 1:
        return kernel
    add = gemm.combine(M, N, split, dtype)

    def run(a: "torch.Tensor", codes: "torch.Tensor", scales: "torch.Tensor", c: "torch.Tensor") -> None:
        parts = torch.empty((split, M, N), dtype=torch.float32, device=c.device)
        kernel(a, codes, scales, parts)
        add(parts, c.view(-1)[:1], c.view(-1)[:1].view(1, 1), c)

    return run


def w4a16_gemm(a: "torch.Tensor", codes: "torch.Tensor", scales: "torch.Tensor", *, out: "torch.Tensor | None" = None) -> "torch.Tensor":
    """``a @ dequantised(codes, scales)ᵀ``.

    Args:
        a: [M, K] bfloat16 or float16, contiguous; K a multiple of 128.
        codes: [N, K / 2] uint8, two weights a byte.
        scales: [N, K / 128], of a's dtype.
        out: [M, N], written and returned; made if None.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    checks.tensor("a", a, 2, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    checks.tensor("codes", codes, 2, ("uint8",))
    checks.tensor("scales", scales, 2, (dtype,))
    checks.same_device(a=a, codes=codes, scales=scales, out=out)
    (M, K), N = a.shape, codes.shape[0]
    checks.require(min(M, N) > 0 and K > 0 and K % GROUP == 0, f"K must be a multiple of {GROUP} and M and N positive, not {M}, {N}, {K}")
    checks.require(codes.shape[1] * 2 == K, f"codes must have K / 2 = {K // 2} columns, but they have {codes.shape[1]}")
    want = (N, K // GROUP)
    checks.require(tuple(scales.shape) == want, f"scales must have shape {want}, but they have {tuple(scales.shape)}")
    if out is not None:
        checks.tensor("out", out, 2, (dtype,))
        checks.require(tuple(out.shape) == (M, N), f"out must have shape {(M, N)}, but it has {tuple(out.shape)}")
    result = a.new_empty((M, N)) if out is None else out
    build(M, N, K, dtype, checks.sm_count(a) if a.is_cuda else 1)(a, codes.view(torch.int32), scales, result)
    return result


def quantize(w: "torch.Tensor", dtype: "torch.dtype | None" = None) -> "tuple[torch.Tensor, torch.Tensor]":
    """w [N, K] to codes and scales (of ``dtype``, w's own if None): the largest magnitude of each 128 becomes ±7."""
    import torch

    N, K = w.shape
    groups = w.float().view(N, K // GROUP, GROUP)
    scales = (groups.abs().amax(-1) / 7.0).clamp_min(1e-8).to(dtype or w.dtype)
    q = (groups / scales.float()[..., None]).round().clamp(-8, 7).to(torch.int32) + 8
    # columns are (instructions by two, instruction, half, lane, neighbour)
    words = q.view(N, -1, 4, 2, 2, 4, 2).permute(0, 1, 5, 2, 6, 3, 4).reshape(N, K // 2, 2)
    return (words[..., 0] | (words[..., 1] << 4)).to(torch.uint8), scales


def dequantize(codes: "torch.Tensor", scales: "torch.Tensor") -> "torch.Tensor":
    """The weights [N, K] that codes and scales stand for, in float64."""
    import torch

    N = codes.shape[0]
    q = torch.stack([codes & 15, codes >> 4], -1).view(N, -1, 4, 4, 2, 2, 2).permute(0, 1, 3, 5, 6, 2, 4).reshape(N, -1)
    return (q.double() - 8) * scales.double().repeat_interleave(GROUP, 1)


def reference(a: "torch.Tensor", codes: "torch.Tensor", scales: "torch.Tensor") -> "torch.Tensor":
    """The same in torch, in float64."""
    return a.double() @ dequantize(codes, scales).T

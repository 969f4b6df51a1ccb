"""FP8 GEMM: ``C = (A · scale_a) @ (B · scale_b)ᵀ`` for e4m3 operands, accumulated in float32, C bfloat16 or float16.

a [M, K], b [N, K] float8_e4m3fn, row-major. Two kinds of scales, all float32:

- blocks (as DeepSeek-V3 trains): ``scale_a`` [K / 128, M], one for 128 columns of a row of A, transposed so that a tile's scales are
  contiguous; ``scale_b`` [N / 128, K / 128], one for a square of B (sizes rounded up).
- tensors: ``scale_a`` [1], ``scale_b`` [1].

The tensor cores of Hopper keep about 14 bits of an FP8 sum: 8192 products of one sign lose a seventh of it. So each 128 columns are summed
by wgmma into a fragment of their own and then promoted: multiplied with their scales, if they have some, and added in float32 (two-level
accumulation; DeepSeek-V3 report, https://arxiv.org/abs/2412.19437, section 3.3). The other warpgroup's products run meanwhile; with
``split`` 2 also the other half of a step's own. Otherwise the kernel is built as ``gemm.hopper`` is.

Two numbers (8192³): 1.10 PFLOP → 0.51 ms at 2140 TFLOP/s; a 128 × 128 tile needs 256 tensor cycles a warpgroup and 128 columns, and 64
multiply-adds a thread for its promotion.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import place, release

if TYPE_CHECKING:
    import torch

FP8 = "float8_e4m3fn"
BLOCK = 128


@tilelang.jit
def hopper(
    M: int,
    N: int,
    K: int,
    blocks: bool = True,
    out_dtype: str = "bfloat16",
    sms: int = 132,
    bn: int = 128,
    stages: int = 4,
    group: int = 8,
    cn: int = 64,
    split: int = 1,
) -> Any:
    """The persistent warp-specialised kernel for sm_90a: ``(A, B, scale_a, scale_b, C)``."""
    bm, bk, rows = 128, BLOCK, 64
    steps, tile_rows, columns = T.ceildiv(K, bk), T.ceildiv(M, bm), T.ceildiv(N, bn)
    tiles = tile_rows * columns
    a_scales = (steps, M) if blocks else (1, 1)
    b_scales = (T.ceildiv(N, BLOCK), steps) if blocks else (1, 1)
    width = bn // split  # columns of one product and of its accumulator
    chunk = next(c for c in (128, 64, 32) if width % c == 0 and (BLOCK % bn == 0 or c <= 64))  # they share a scale of B

    @T.macro
    def store(wg, j, acc, stage, C, by, col):
        T.tma_store_wait(1)
        T.sync_threads(8 + wg, 128)
        for r, c in T.Parallel(rows, cn):
            stage[r, c] = T.cast(acc[r, j * cn + c], out_dtype)
        T.fence_proxy_async()
        T.sync_threads(8 + wg, 128)
        T.tma_copy(stage, C[by * bm + wg * rows : by * bm + wg * rows + rows, col + j * cn : col + (j + 1) * cn])

    @T.macro
    def save(wg, acc, stage_a, stage_b, C, by, col):
        """The columns of one accumulator, through two tiles in turn."""
        for j in T.unroll(width // cn // 2, explicit=True):
            store(wg, 2 * j, acc, stage_a, C, by, col)
            store(wg, 2 * j + 1, acc, stage_b, C, by, col)
        if width // cn % 2:
            store(wg, width // cn - 1, acc, stage_a, C, by, col)

    @T.macro
    def issue(wg, a, b, full, part, at, h):
        """One product of ``width`` columns."""
        s = at % stages
        if h == 0:
            T.mbarrier_wait_parity(full[s], (at // stages) & 1)
        T.wgmma_gemm(a[s, wg * rows : wg * rows + rows, :], b[s, h * width : (h + 1) * width, :], part, transpose_B=True, clear_accum=True)

    @T.macro
    def add(part, acc, scale, by_chunk, h):
        if not blocks:
            for r, c in T.Parallel(rows, width):
                acc[r, c] += part[r, c]
        for j in T.unroll(width // chunk if blocks else 0, explicit=True):
            for r, c in T.Parallel(rows, chunk):
                acc[r, j * chunk + c] += part[r, j * chunk + c] * (scale[r] * by_chunk[h * (width // chunk) + j])

    @T.macro
    def promote(wg, a, b, sa, full, free, part, other, acc, high, scale, SB, first, bx):
        """The K loop with block scales: with two products a step, one runs while the other is promoted."""
        T.clear(acc)
        if split == 2:
            T.clear(high)
        for k in T.serial(steps):
            s = (first + k) % stages
            issue(wg, a, b, full, part, first + k, 0)
            if split == 2:
                issue(wg, a, b, full, other, first + k, 1)
            by_chunk = T.alloc_local((bn // chunk,), "float32")
            if blocks:
                for r in T.Parallel(rows):
                    scale[r] = sa[s, wg * rows + r]
                for j in T.unroll(bn // chunk, explicit=True):
                    by_chunk[j] = SB[(bx * bn + j * chunk) // BLOCK, k]
            T.wait_wgmma(split - 1)
            T.warpgroup_fence_operand(part, num_regs=rows * width // 128)  # or the compiler may read them before they are there
            if split == 1:
                release(free, s)
            add(part, acc, scale, by_chunk, 0)
            if split == 2:
                T.wait_wgmma(0)
                T.warpgroup_fence_operand(other, num_regs=rows * width // 128)
                release(free, s)
                add(other, high, scale, by_chunk, 1)

    @T.macro
    def consume(wg, a, b, sa, stage_a, stage_b, full, free, part, other, acc, high, scale, SA, SB, C, block):
        T.inc_max_nreg(232)
        it, by, bx = [T.alloc_var("int32") for _ in range(3)]
        it = 0
        for w in T.serial(T.ceildiv(tiles, sms)):
            if w * sms + block < tiles:
                y, x = place(w * sms + block, tile_rows, columns, group)
                by = y
                bx = x
                promote(wg, a, b, sa, full, free, part, other, acc, high, scale, SB, it, bx)
                if not blocks:
                    for r, c in T.Parallel(rows, width):
                        acc[r, c] *= SA[0, 0] * SB[0, 0]
                    if split == 2:
                        for r, c in T.Parallel(rows, width):
                            high[r, c] *= SA[0, 0] * SB[0, 0]
                it = it + steps
                save(wg, acc, stage_a, stage_b, C, by, bx * bn)
                if split == 2:
                    if width // cn % 2:
                        save(wg, high, stage_b, stage_a, C, by, bx * bn + width)
                    else:
                        save(wg, high, stage_a, stage_b, C, by, bx * bn + width)
        T.tma_store_wait(0)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), FP8),
        B: T.Tensor((N, K), FP8),
        SA: T.Tensor(a_scales, "float32"),
        SB: T.Tensor(b_scales, "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(sms, threads=384) as block:
            a = T.alloc_shared((stages, bm, bk), FP8)
            b = T.alloc_shared((stages, bn, bk), FP8)
            sa = T.alloc_shared((stages, bm), "float32")
            stage0a, stage0b, stage1a, stage1b = [T.alloc_shared((rows, cn), out_dtype) for _ in range(4)]
            acc0, acc1 = [T.alloc_fragment((rows, width), "float32") for _ in range(2)]
            high0, high1 = [T.alloc_fragment((rows, width if split == 2 else 8), "float32") for _ in range(2)]
            part0, part1 = [T.alloc_fragment((rows, width), "float32") for _ in range(2)]
            other0, other1 = [T.alloc_fragment((rows, width if split == 2 else 8), "float32") for _ in range(2)]
            scale0, scale1 = [T.alloc_fragment((rows,), "float32") for _ in range(2)]
            full = T.alloc_barrier([1] * stages)
            free = T.alloc_barrier([8] * stages)
            tx = T.get_thread_binding()
            if tx >= 256:
                T.dec_max_nreg(40)
                if tx < 288:
                    it, by, bx = [T.alloc_var("int32") for _ in range(3)]
                    it = 0
                    for w in T.serial(T.ceildiv(tiles, sms)):
                        if w * sms + block < tiles:
                            y, x = place(w * sms + block, tile_rows, columns, group)
                            by = y
                            bx = x
                            for k in T.serial(steps):
                                s = (it + k) % stages
                                T.mbarrier_wait_parity(free[s], (((it + k) // stages) & 1) ^ 1)
                                T.tma_copy(A[by * bm : (by + 1) * bm, k * bk : (k + 1) * bk], a[s, :, :], barrier=full[s])
                                T.tma_copy(B[bx * bn : (bx + 1) * bn, k * bk : (k + 1) * bk], b[s, :, :], barrier=full[s])
                                if blocks:
                                    T.tma_copy(SA[k : k + 1, by * bm : (by + 1) * bm], sa[s : s + 1, :], barrier=full[s])
                                release(full, s)
                            it = it + steps
            elif tx < 128:
                consume(0, a, b, sa, stage0a, stage0b, full, free, part0, other0, acc0, high0, scale0, SA, SB, C, block)
            else:
                consume(1, a, b, sa, stage1a, stage1b, full, free, part1, other1, acc1, high1, scale1, SA, SB, C, block)

    return main


@tilelang.jit
def portable(M: int, N: int, K: int, blocks: bool = True, out_dtype: str = "bfloat16", bm: int = 64, bn: int = 64, stages: int = 2) -> Any:
    """The same function for every target with FP8 tensor cores (sm_89 and up), with the same arguments."""
    steps = T.ceildiv(K, BLOCK)
    a_scales = (steps, M) if blocks else (1, 1)
    b_scales = (T.ceildiv(N, BLOCK), steps) if blocks else (1, 1)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), FP8),
        B: T.Tensor((N, K), FP8),
        SA: T.Tensor(a_scales, "float32"),
        SB: T.Tensor(b_scales, "float32"),
        C: T.Tensor((M, N), out_dtype),
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a, b = T.alloc_shared((bm, BLOCK), FP8), T.alloc_shared((bn, BLOCK), FP8)
            part, acc = T.alloc_fragment((bm, bn), "float32"), T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for k in T.Pipelined(steps, num_stages=stages):
                T.copy(A[by * bm, k * BLOCK], a)
                T.copy(B[bx * bn, k * BLOCK], b)
                T.gemm(a, b, part, transpose_B=True, clear_accum=True)
                for r, c in T.Parallel(bm, bn):
                    if blocks:
                        acc[r, c] += part[r, c] * (SA[k, T.min(by * bm + r, M - 1)] * SB[bx * bn // BLOCK, k])
                    else:
                        acc[r, c] += part[r, c] * (SA[0, 0] * SB[0, 0])
            T.copy(acc, C[by * bm, bx * bn])

    return main


@lru_cache(maxsize=256)
def build(fast: bool, M: int, N: int, K: int, blocks: bool, out_dtype: str, sms: int) -> Any:
    """The compiled kernel of one problem."""
    if not fast:
        return portable(M, N, K, blocks, out_dtype)
    return hopper(M, N, K, blocks, out_dtype, sms, bn=192 if M * N >= 2048 * 2048 else 128, stages=4, group=16)


def fp8_gemm(
    a: "torch.Tensor", b: "torch.Tensor", scale_a: "torch.Tensor", scale_b: "torch.Tensor", *, out_dtype: str = "bfloat16"
) -> "torch.Tensor":
    """``(a · scale_a) @ (b · scale_b)ᵀ``.

    Args:
        a: [M, K] float8_e4m3fn, contiguous; K a multiple of 16.
        b: [N, K] float8_e4m3fn, contiguous; N a multiple of 8.
        scale_a: [⌈K / 128⌉, M] float32 with M a multiple of 4, or [1].
        scale_b: [⌈N / 128⌉, ⌈K / 128⌉] float32, or [1].
        out_dtype: ``bfloat16`` or ``float16``.

    Returns:
        [M, N].

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    import torch

    checks.tensor("a", a, 2, (FP8,))
    checks.tensor("b", b, 2, (FP8,))
    checks.require(out_dtype in ("bfloat16", "float16"), f"out_dtype must be bfloat16 or float16, but it is {out_dtype!r}")
    checks.same_device(a=a, b=b, scale_a=scale_a, scale_b=scale_b)
    (M, K), (N, K_b) = a.shape, b.shape
    checks.require(K_b == K, f"a and b must have the same K, but they have {K} and {K_b}")
    checks.require(K % 16 == 0 and N % 8 == 0, f"K must be a multiple of 16 and N of 8, but they are {K} and {N}")
    blocks = scale_a.numel() > 1 or scale_b.numel() > 1
    if blocks:
        steps, squares = -(-K // BLOCK), -(-N // BLOCK)
        checks.tensor("scale_a", scale_a, 2, ("float32",))
        checks.tensor("scale_b", scale_b, 2, ("float32",))
        checks.require(tuple(scale_a.shape) == (steps, M), f"scale_a must have shape {(steps, M)}, but it has {tuple(scale_a.shape)}")
        checks.require(tuple(scale_b.shape) == (squares, steps), f"scale_b must have shape {(squares, steps)}, not {tuple(scale_b.shape)}")
        checks.require(M % 4 == 0, f"with block scales M must be a multiple of 4, but it is {M}")
    out = torch.empty((M, N), dtype=getattr(torch, out_dtype), device=a.device)
    fast = checks.hopper(a)
    kernel = build(fast, M, N, K, blocks, out_dtype, checks.sm_count(a) if fast else 0)
    kernel(a, b, scale_a if blocks else scale_a.view(1, 1), scale_b if blocks else scale_b.view(1, 1), out)
    return out


def quantize(x: "torch.Tensor", *, square: bool) -> "tuple[torch.Tensor, torch.Tensor]":
    """x [R, K] to e4m3 with block scales: 1 × 128 (scales [⌈K / 128⌉, R]), or 128 × 128 if ``square`` (scales [⌈R / 128⌉, ⌈K / 128⌉])."""
    import torch

    R, K = x.shape
    high = BLOCK if square else 1
    padded = torch.nn.functional.pad(x.float(), (0, -K % BLOCK, 0, -R % high))
    tiles = padded.view(-1, high, padded.shape[1] // BLOCK, BLOCK)
    scale = tiles.abs().amax((1, 3)).clamp_min(1e-10) / 448.0
    codes = (tiles / scale[:, None, :, None]).view_as(padded)[:R, :K].to(torch.float8_e4m3fn).contiguous()
    return codes, scale.contiguous() if square else scale.T.contiguous()


def reference(a: "torch.Tensor", b: "torch.Tensor", scale_a: "torch.Tensor", scale_b: "torch.Tensor") -> "torch.Tensor":
    """The same in torch, in float64."""
    if scale_a.numel() == 1:
        return a.double() @ b.double().T * scale_a.double() * scale_b.double()
    wide_a = scale_a.T.repeat_interleave(BLOCK, 1)[:, : a.shape[1]].double()
    wide_b = scale_b.repeat_interleave(BLOCK, 0)[: b.shape[0]].repeat_interleave(BLOCK, 1)[:, : b.shape[1]].double()
    return (a.double() * wide_a) @ (b.double() * wide_b).T

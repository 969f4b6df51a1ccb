"""Stream-K GEMM: ``C = A @ Bᵀ`` in which every block gets the same share of the work, also where tiles do not come out even.

A [M, K], B [N, K], C [M, N] bfloat16 or float16, row-major, summed in float32. M and N any; for ``hopper`` K and N multiples of 8.

A tile is ``steps`` units of ``bk`` columns. As many whole tiles as fill the GPU evenly are done as usual; the units of the tiles that are
left are dealt out in one row, an even run to each worker, so that a run begins and ends inside tiles. A piece of a tile goes to a slot of
its worker in ``parts`` (two a worker: slot 0 for a piece that begins inside a tile, slot 1 for one that begins a tile and does not end it),
and ``fix`` adds the pieces of each cut tile, in the order of the workers: the result does not depend on timing.
Source: Osama et al. 2023, https://arxiv.org/abs/2301.03598. Their two-tile hybrid deals out one round more, which makes pieces larger; here
that cost more than it gave: workers at different depths of K share no operands, and the L2 no longer feeds them.

Two numbers (2560 × 1792 × 8192, 140 tiles of 128 × 256): 75 GFLOP → 70 µs at 1070 TFLOP/s, 1.06 rounds of 132 blocks; whole tiles take two.
The 8 tiles left over make 132 parts of 128 KiB: 17 MB written and read through the L2.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import place, release

if TYPE_CHECKING:
    import torch

DTYPES = ("bfloat16", "float16")


def shares(M: int, N: int, K: int, workers: int, bm: int, bn: int, bk: int) -> tuple[int, int, int]:
    """Steps of a tile, rounds of whole tiles, and the units that are dealt out evenly."""
    tiles, steps = -(-M // bm) * -(-N // bn), -(-K // bk)
    rounds = tiles // workers
    return steps, rounds, (tiles - rounds * workers) * steps


@tilelang.jit
def hopper(
    M: int, N: int, K: int, dtype: str = "bfloat16", workers: int = 132, bm: int = 128, bn: int = 256, bk: int = 64, stages: int = 4,
    group: int = 8, cn: int = 64,
) -> Any:  # fmt: skip
    """The persistent warp-specialised kernel for sm_90a: ``(A, B, parts, C)``."""
    rows = bm // 2
    steps, rounds, units = shares(M, N, K, workers, bm, bn, bk)
    tile_rows, columns = T.ceildiv(M, bm), T.ceildiv(N, bn)
    pieces = rounds + (units // workers + steps) // steps + 1

    @T.macro
    def next_piece(i, worker, at, piece):
        """Piece i of the worker: tile, first step, steps (0 where there is none); ``at`` is the next unit of its share."""
        if i < rounds:
            piece[0] = i * workers + worker
            piece[1] = 0
            piece[2] = steps
        else:
            piece[0] = rounds * workers + at[0] // steps
            piece[1] = at[0] % steps
            piece[2] = T.max(T.min(steps - at[0] % steps, (worker + 1) * units // workers - at[0]), 0)
            at[0] = at[0] + piece[2]

    @T.macro
    def store(wg, j, acc, stage, C, row, col):
        T.tma_store_wait(1)
        T.sync_threads(8 + wg, 128)
        for r, c in T.Parallel(rows, cn):
            stage[r, c] = T.cast(acc[r, j * cn + c], dtype)
        T.fence_proxy_async()
        T.sync_threads(8 + wg, 128)
        T.tma_copy(stage, C[row : row + rows, col + j * cn : col + (j + 1) * cn])

    @T.macro
    def consume(wg, a, b, stage_a, stage_b, full, free, acc, parts, C, worker):
        T.inc_max_nreg(232)
        at, piece = T.alloc_local((1,), "int32"), T.alloc_local((3,), "int32")
        it, row, col = [T.alloc_var("int32") for _ in range(3)]
        it = 0
        at[0] = worker * units // workers
        for i in T.serial(pieces):
            next_piece(i, worker, at, piece)
            if piece[2] > 0:
                y, x = place(piece[0], tile_rows, columns, group)
                row = y * bm + wg * rows
                col = x * bn
                for k in T.serial(piece[2]):
                    s = (it + k) % stages
                    T.mbarrier_wait_parity(full[s], ((it + k) // stages) & 1)
                    T.wgmma_gemm(a[s, wg * rows : wg * rows + rows, :], b[s, :, :], acc, transpose_B=True, clear_accum=(k == 0))
                    T.wait_wgmma(1)
                    if k > 0:
                        release(free, (it + k - 1) % stages)
                T.wait_wgmma(0)
                release(free, (it + piece[2] - 1) % stages)
                it = it + piece[2]
                if piece[2] == steps:
                    for j in T.unroll(bn // cn // 2, explicit=True):
                        store(wg, 2 * j, acc, stage_a, C, row, col)
                        store(wg, 2 * j + 1, acc, stage_b, C, row, col)
                else:
                    slot = T.if_then_else(piece[1] > 0, 0, 1)
                    for r, c in T.Parallel(rows, bn):
                        parts[worker, slot, wg * rows + r, c] = acc[r, c]
        T.tma_store_wait(0)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), parts: T.Tensor((workers, 2, bm, bn), "float32"),
        C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(workers, threads=384) as worker:
            a, b = T.alloc_shared((stages, bm, bk), dtype), T.alloc_shared((stages, bn, bk), dtype)
            stage0a, stage0b, stage1a, stage1b = [T.alloc_shared((rows, cn), dtype) for _ in range(4)]
            acc0, acc1 = [T.alloc_fragment((rows, bn), "float32") for _ in range(2)]
            full, free = T.alloc_barrier([1] * stages), T.alloc_barrier([8] * stages)
            tx = T.get_thread_binding()
            if tx >= 256:
                T.dec_max_nreg(40)
                if tx < 288:
                    at, piece = T.alloc_local((1,), "int32"), T.alloc_local((3,), "int32")
                    it, row, col, first = [T.alloc_var("int32") for _ in range(4)]
                    it = 0
                    at[0] = worker * units // workers
                    for i in T.serial(pieces):
                        next_piece(i, worker, at, piece)
                        if piece[2] > 0:
                            y, x = place(piece[0], tile_rows, columns, group)
                            row = y * bm
                            col = x * bn
                            first = piece[1]
                            for k in T.serial(piece[2]):
                                s = (it + k) % stages
                                ka = (first + k) * bk
                                T.mbarrier_wait_parity(free[s], (((it + k) // stages) & 1) ^ 1)
                                T.tma_copy(A[row : row + bm, ka : ka + bk], a[s, :, :], barrier=full[s])
                                T.tma_copy(B[col : col + bn, ka : ka + bk], b[s, :, :], barrier=full[s])
                                release(full, s)
                            it = it + piece[2]
            elif tx < 128:
                consume(0, a, b, stage0a, stage0b, full, free, acc0, parts, C, worker)
            else:
                consume(1, a, b, stage1a, stage1b, full, free, acc1, parts, C, worker)

    return main


@tilelang.jit
def portable(
    M: int, N: int, K: int, dtype: str = "bfloat16", workers: int = 64, bm: int = 64, bn: int = 64, bk: int = 32, group: int = 8
) -> Any:
    """The same for every target with tensor cores, with the same arguments."""
    steps, rounds, units = shares(M, N, K, workers, bm, bn, bk)
    tile_rows, columns = T.ceildiv(M, bm), T.ceildiv(N, bn)
    pieces = rounds + (units // workers + steps) // steps + 1

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), parts: T.Tensor((workers, 2, bm, bn), "float32"),
        C: T.Tensor((M, N), dtype),
    ):  # fmt: skip
        with T.Kernel(workers, threads=128) as worker:
            a, b = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bn, bk), dtype)
            acc = T.alloc_fragment((bm, bn), "float32")
            at, tile, first, count, row, col = [T.alloc_var("int32") for _ in range(6)]
            at = worker * units // workers
            for i in T.serial(pieces):
                if i < rounds:
                    tile = i * workers + worker
                    first = 0
                    count = steps
                else:
                    tile = rounds * workers + at // steps
                    first = at % steps
                    count = T.max(T.min(steps - first, (worker + 1) * units // workers - at), 0)
                    at = at + count
                if count > 0:
                    y, x = place(tile, tile_rows, columns, group)
                    row = y * bm
                    col = x * bn
                    T.clear(acc)
                    for k in T.serial(count):
                        T.copy(A[row, (first + k) * bk], a)
                        T.copy(B[col, (first + k) * bk], b)
                        T.gemm(a, b, acc, transpose_B=True)
                    if count == steps:
                        T.copy(acc, C[row, col])
                    else:
                        for r, c in T.Parallel(bm, bn):
                            parts[worker, T.if_then_else(first > 0, 0, 1), r, c] = acc[r, c]

    return main


@tilelang.jit
def fix(
    M: int, N: int, K: int, dtype: str = "bfloat16", workers: int = 132, bm: int = 128, bn: int = 256, bk: int = 64, group: int = 8,
    threads: int = 128, strip: int = 16,
) -> Any:  # fmt: skip
    """Adds the pieces of the tiles that were cut: ``(parts, C)``; a block takes ``strip`` rows of a tile."""
    steps, rounds, units = shares(M, N, K, workers, bm, bn, bk)
    tile_rows, columns = T.ceildiv(M, bm), T.ceildiv(N, bn)

    @T.prim_func
    def main(parts: T.Tensor((workers, 2, bm, bn), "float32"), C: T.Tensor((M, N), dtype)):
        with T.Kernel(bm // strip, T.max(units // steps, 1), threads=threads) as (part, t):
            acc = T.alloc_fragment((strip, bn), "float32")
            first, last, row, col = [T.alloc_var("int32") for _ in range(4)]
            # the workers that hold the tile's first and last unit
            first = ((t * steps + 1) * workers - 1) // units
            last = ((t + 1) * steps * workers - 1) // units
            if first < last:
                y, x = place(rounds * workers + t, tile_rows, columns, group)
                row = y * bm + part * strip
                col = x * bn
                for r, c in T.Parallel(strip, bn):
                    acc[r, c] = parts[first, 1, part * strip + r, c]
                for w in T.serial(last - first):
                    if (first + 2 + w) * units // workers > (first + 1 + w) * units // workers:  # its run is not empty
                        for r, c in T.Parallel(strip, bn):
                            acc[r, c] += parts[first + 1 + w, 0, part * strip + r, c]
                for r, c in T.Parallel(strip, bn):
                    if row + r < M and col + c < N:
                        C[row + r, col + c] = T.cast(acc[r, c], dtype)

    return main


@lru_cache(maxsize=256)
def build(fast: bool, M: int, N: int, K: int, dtype: str, sms: int) -> Any:
    """The compiled kernels of one problem as a function ``(A, B, C)``."""
    import torch

    bm, bn, bk = (128, 256, 64) if fast else (64, 64, 32)
    workers = sms if fast else 64
    kernel = (hopper if fast else portable)(M, N, K, dtype, workers=workers, bm=bm, bn=bn, bk=bk)
    _, _, units = shares(M, N, K, workers, bm, bn, bk)
    add = fix(M, N, K, dtype, workers, bm, bn, bk) if units else None

    def run(a: "torch.Tensor", b: "torch.Tensor", c: "torch.Tensor") -> None:
        parts = torch.empty((workers, 2, bm, bn), dtype=torch.float32, device=c.device)
        kernel(a, b, parts, c)
        if add is not None:
            add(parts, c)

    return run


def stream_k_gemm(a: "torch.Tensor", b: "torch.Tensor", *, out: "torch.Tensor | None" = None) -> "torch.Tensor":
    """``a @ b.T``.

    Args:
        a: [M, K] bfloat16 or float16, contiguous.
        b: [N, K], of a's dtype.
        out: [M, N], written and returned; made if None.

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    checks.tensor("a", a, 2, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    checks.tensor("b", b, 2, (dtype,))
    checks.same_device(a=a, b=b, out=out)
    (M, K), (N, K_b) = a.shape, b.shape
    checks.require(K_b == K, f"a and b must have the same K, but they have {K} and {K_b}")
    checks.require(min(M, N, K) > 0, f"M, N and K must be positive, but they are {M}, {N}, {K}")
    if out is not None:
        checks.tensor("out", out, 2, (dtype,))
        checks.require(tuple(out.shape) == (M, N), f"out must have shape {(M, N)}, but it has {tuple(out.shape)}")
    result = a.new_empty((M, N)) if out is None else out
    fast = checks.hopper(a) and K % 8 == 0 and N % 8 == 0
    build(fast, M, N, K, dtype, checks.sm_count(a) if fast else 0)(a, b, result)
    return result


def reference(a: "torch.Tensor", b: "torch.Tensor") -> "torch.Tensor":
    """The same in torch, in float64."""
    return a.double() @ b.double().T

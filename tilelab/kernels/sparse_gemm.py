"""2:4 sparse GEMM: ``C = A @ op(B)`` for an A that keeps at most two of every four elements of a row.

bfloat16 and float16, summed in float32.

Layouts (row-major): A [M, K] as ``compress`` packs it: values [M, K / 2] and one code of four bits a group of four (the two positions kept,
lower first), sixteen elements a word: codes [M, K / 16] int16. B [N, K] (``NT``) or [K, N] (``NN``), C [M, N].

- ``squeeze``: the compressor, one thread a word. It keeps the two largest magnitudes of each four (ties: the first), so that it prunes a
  dense matrix and packs a 2:4 one without loss.
- ``hopper``: the persistent warp-specialised kernel of ``gemm`` with sparse wgmma. Codes travel in the order in which the registers of a
  warp want them (``ordered``): a thread's codes for a whole K step are one word of 8 bytes in shared memory, brought by one bulk copy.
- ``portable``: ``T.gemm_sp`` over a pipelined K loop for sm_80 and up. gfx942 is not supported: TileLang has no sparse matrix core
  instruction there.

Two numbers (8192³): 0.55 PFLOP of products that are there → 0.51 ms at 2140 TFLOP/s dense-equivalent; but m64n256k32 reads 18 KiB of
shared memory in its 128 tensor cycles, where 16 KiB can be read, and every tile must be written there first: 226 KiB a 128 × 256 × 128
step → 0.89 ms.
The instruction's register order is the PTX manual's (https://docs.nvidia.com/cuda/parallel-thread-execution, sparse wgmma).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import tilelang
import tilelang.language as T

from tilelab.kernels import checks
from tilelab.kernels.parts import place

if TYPE_CHECKING:
    import torch

DTYPES = ("float16", "bfloat16")
LAYOUTS = ("NT", "NN")
#: rows and columns (of A) whose codes lie together in the order that the Hopper kernel wants
ROWS, DEPTH = 64, 64
#: the code of a group of which nothing is kept: positions 0 and 1
EMPTY = 0x4444


@tilelang.jit
def hopper(
    M: int, N: int, K: int, layout: str = "NT", dtype: str = "float16", sms: int = 132, bm: int = 128, bn: int = 256, bk: int = 64,
    stages: int = 4, cluster: int = 1, group: int = 8, cn: int = 64,
) -> Any:  # fmt: skip
    """The kernel for sm_90a: ``(values, codes in Hopper's order, B, C)``."""
    rows = bm // 2
    row_clusters, columns, steps = T.ceildiv(T.ceildiv(M, bm), cluster), T.ceildiv(N, bn), T.ceildiv(K, bk)
    tiles, workers = row_clusters * columns, sms // cluster
    strips, depth = padded_rows(M) // ROWS, -(-K // DEPTH)
    words = DEPTH // 16 * ROWS
    b_shape, b_tile = ((N, K), (bn, bk)) if layout == "NT" else ((K, N), (bk, bn))
    mask = (1 << cluster) - 1
    loops = T.ceildiv(tiles, workers)

    def code_at(s: Any, r: Any, c: Any) -> Any:
        """Where the code word of row r and 16 columns c of stage s lies: what a thread wants together is together."""
        strip, row, step, col = r // ROWS, r % ROWS, c // 4, c % 4
        slot = (row // 16 * 8 + row % 8) * 2 + col % 2
        return ((s * (bk // DEPTH) + step) * (bm // ROWS) + strip) * words + slot * 4 + col // 2 * 2 + row % 16 // 8

    @T.macro
    def release(free, s):
        lane = T.get_thread_binding() % 32
        if lane < cluster:
            T.mbarrier_arrive(free[s], lane)

    @T.macro
    def product(wg, a, e, b, full, free, acc, first):
        for k in T.serial(steps):
            s = (first + k) % stages
            T.mbarrier_wait_parity(full[s], ((first + k) // stages) & 1)
            T.wgmma_gemm_sp(
                a[s, wg * rows : wg * rows + rows, :], e[s, wg * rows : wg * rows + rows, :], b[s, :, :], acc,
                transpose_B=layout == "NT", clear_accum=(k == 0),
            )  # fmt: skip
            T.wait_wgmma(1)
            if k > 0:
                release(free, (first + k - 1) % stages)
        T.wait_wgmma(0)
        release(free, (first + steps - 1) % stages)

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
    def consume(wg, a, e, b, stage_a, stage_b, full, free, acc, C, worker, rank):
        T.inc_max_nreg(232)
        it, row, col = [T.alloc_var("int32") for _ in range(3)]
        it = 0
        for w in T.serial(loops):
            if w * workers + worker < tiles:
                y, x = place(w * workers + worker, row_clusters, columns, group)
                row = (y * cluster + rank) * bm + wg * rows
                col = x * bn
                product(wg, a, e, b, full, free, acc, it)
                it = it + steps
                for j in T.unroll(bn // cn // 2, explicit=True):
                    store(wg, 2 * j, acc, stage_a, C, row, col)
                    store(wg, 2 * j + 1, acc, stage_b, C, row, col)
        T.tma_store_wait(0)

    @T.macro
    def fill(A, E, B, a, e, b, full, s, k, row, col):
        """One stage of the ring; B's tile goes to every block of the cluster."""
        T.tma_copy(A[row : row + bm, k * bk // 2 : (k + 1) * bk // 2], a[s, :, :], barrier=full[s])
        if layout == "NT" and cluster > 1:
            T.tma_copy(B[col : col + bn, k * bk : (k + 1) * bk], b[s, :, :], barrier=full[s], cluster_mask=mask)
        elif layout == "NT":
            T.tma_copy(B[col : col + bn, k * bk : (k + 1) * bk], b[s, :, :], barrier=full[s])
        elif cluster > 1:
            T.tma_copy(B[k * bk : (k + 1) * bk, col : col + bn], b[s, :, :], barrier=full[s], cluster_mask=mask)
        else:
            T.tma_copy(B[k * bk : (k + 1) * bk, col : col + bn], b[s, :, :], barrier=full[s])
        if T.shuffle_elect(32):
            T.mbarrier_expect_tx(full[s], bm * bk // 8)
            for j in T.unroll(bk // DEPTH, explicit=True):
                step, strip = T.min(k * (bk // DEPTH) + j, depth - 1), T.min(row, M - 1) // bm * (bm // ROWS)
                T.tma_load(T.address_of(e[s, 0, j * 4]), T.address_of(E[step, strip, 0]), full[s], bm * DEPTH // 8, 0)
            T.mbarrier_arrive(full[s])

    @T.prim_func
    def main(
        A: T.Tensor((M, K // 2), dtype),
        E: T.Tensor((depth, strips, words), "int16"),
        B: T.Tensor(b_shape, dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(workers * cluster, threads=384, cluster_dims=cluster) as block:
            a = T.alloc_shared((stages, bm, bk // 2), dtype)
            e = T.alloc_shared((stages, bm, bk // 16), "int16")
            b = T.alloc_shared((stages, *b_tile), dtype)
            stage0a, stage0b, stage1a, stage1b = [T.alloc_shared((rows, cn), dtype) for _ in range(4)]
            acc0, acc1 = [T.alloc_fragment((rows, bn), "float32") for _ in range(2)]
            T.annotate_layout({e: T.Layout((stages, bm, bk // 16), code_at)})
            full = T.alloc_barrier([1] * stages)
            free = T.alloc_cluster_barrier([8 * cluster] * stages)
            tx = T.get_thread_binding()
            rank = T.block_rank_in_cluster()
            worker = block // cluster
            if tx >= 256:
                T.dec_max_nreg(40)
                if tx < 288:
                    it, row, col = [T.alloc_var("int32") for _ in range(3)]
                    it = 0
                    for w in T.serial(loops):
                        if w * workers + worker < tiles:
                            y, x = place(w * workers + worker, row_clusters, columns, group)
                            row = (y * cluster + rank) * bm
                            col = x * bn
                            for k in T.serial(steps):
                                T.mbarrier_wait_parity(free[(it + k) % stages], (((it + k) // stages) & 1) ^ 1)
                                fill(A, E, B, a, e, b, full, (it + k) % stages, k, row, col)
                            it = it + steps
            elif tx < 128:
                consume(0, a, e, b, stage0a, stage0b, full, free, acc0, C, worker, rank)
            else:
                consume(1, a, e, b, stage1a, stage1b, full, free, acc1, C, worker, rank)
            T.cluster_sync()

    return main


def padded_rows(M: int) -> int:
    """M rounded up to whole strips of any tile height that the Hopper kernel takes."""
    return -(-M // 256) * 256


@tilelang.jit
def portable(
    M: int, N: int, K: int, layout: str = "NT", dtype: str = "float16", bm: int = 64, bn: int = 64, bk: int = 64, stages: int = 2
) -> Any:
    """The same for every NVIDIA target from sm_80 on: ``(values, codes, B, C)``, codes as ``compress`` pads them."""
    b_shape, b_tile = ((N, K), (bn, bk)) if layout == "NT" else ((K, N), (bk, bn))
    code_shape = (-(-M // ROWS) * ROWS, -(-K // DEPTH) * (DEPTH // 16))

    @T.prim_func
    def main(A: T.Tensor((M, K // 2), dtype), E: T.Tensor(code_shape, "int16"), B: T.Tensor(b_shape, dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=128) as (bx, by):
            a, b = T.alloc_shared((bm, bk // 2), dtype), T.alloc_shared(b_tile, dtype)
            e = T.alloc_shared((bm, bk // 16), "int16")
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, k * bk // 2], a)
                T.copy(E[by * bm, k * bk // 16], e)
                if layout == "NT":
                    T.copy(B[bx * bn, k * bk], b)
                else:
                    T.copy(B[k * bk, bx * bn], b)
                T.gemm_sp(a, e, b, acc, transpose_B=layout == "NT")
            T.copy(acc, C[by * bm, bx * bn])

    return main


@tilelang.jit
def squeeze(M: int, K: int, dtype: str = "float16", threads: int = 256) -> Any:
    """The compressor: ``(A [M, K], values [M, K / 2], codes [M, K / 16])``, a thread for 16 elements."""
    words = K // 16

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), values: T.Tensor((M, K // 2), dtype), codes: T.Tensor((M, words), "int16")):
        with T.Kernel(T.ceildiv(M * words, threads), threads=threads) as block:
            x, kept = T.alloc_local((16,), dtype), T.alloc_local((8,), dtype)
            code = T.alloc_var("int32", init=0)
            at = block * threads + T.get_thread_binding()
            if at < M * words:
                for i in T.vectorized(16):
                    x[i] = A[at // words, at % words * 16 + i]
                for g in T.unroll(4, explicit=True):
                    m = [T.abs(T.cast(x[g * 4 + i], "float32")) for i in range(4)]
                    # element i is kept where fewer than two of its four beat it; of equals the first wins
                    keep = [sum(T.cast(m[j] > m[i] if j > i else m[j] >= m[i], "int32") for j in range(4) if j != i) < 2 for i in range(4)]
                    kept[g * 2] = T.if_then_else(keep[0], x[g * 4], T.if_then_else(keep[1], x[g * 4 + 1], x[g * 4 + 2]))
                    kept[g * 2 + 1] = T.if_then_else(keep[3], x[g * 4 + 3], T.if_then_else(keep[2], x[g * 4 + 2], x[g * 4 + 1]))
                    first = T.if_then_else(keep[0], 0, T.if_then_else(keep[1], 1, 2))
                    second = T.if_then_else(keep[3], 3, T.if_then_else(keep[2], 2, 1))
                    code = code + (first + second * 4) * (1 << (4 * g))
                for i in T.vectorized(8):
                    values[at // words, at % words * 8 + i] = kept[i]
                codes[at // words, at % words] = T.cast(T.if_then_else(code > 32767, code - 65536, code), "int16")

    return main


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A 2:4 matrix of ``shape`` [M, K]: values [M, K / 2], codes [⌈M/64⌉·64, ⌈K/64⌉·4] int16, and the codes again in Hopper's order."""

    shape: tuple[int, int]
    values: "torch.Tensor"
    codes: "torch.Tensor"
    ordered: "torch.Tensor"

    def dense(self) -> "torch.Tensor":
        """The full matrix, [M, K]."""
        import torch

        M, K = self.shape
        codes = self.codes[:M, : K // 16].to(torch.int32)
        nibbles = (codes[..., None] >> torch.arange(0, 16, 4, device=codes.device)) & 15
        at = torch.stack([nibbles & 3, nibbles >> 2], -1).view(M, K // 4, 2).long()
        return self.values.new_zeros((M, K // 4, 4)).scatter_(2, at, self.values.view(M, K // 4, 2)).view(M, K)


def ordered(codes: "torch.Tensor") -> "torch.Tensor":
    """Codes [rows, words] in the order of the Hopper kernel: [K / 64, strips of 64 rows, 256], rows padded with empty groups."""
    import torch

    rows, words = codes.shape
    padded = torch.nn.functional.pad(codes, (0, 0, 0, padded_rows(rows) - rows), value=EMPTY)
    # rows are (strip, warp, half, row of 8), words are (step, instruction, lane bit)
    parts = padded.view(-1, 4, 2, 8, words // 4, 2, 2)
    return parts.permute(4, 0, 1, 3, 6, 5, 2).reshape(words // 4, -1, ROWS * DEPTH // 16).contiguous()


def compress(a: "torch.Tensor") -> Sparse:
    """Packs ``a`` [M, K] (float16 or bfloat16, contiguous, K a multiple of 16), of which the two largest of every four are kept.

    Raises:
        InputError: the shape, dtype or layout does not fit.
    """
    import torch

    checks.tensor("a", a, 2, DTYPES)
    M, K = a.shape
    checks.require(min(M, K) > 0 and K % 16 == 0, f"a must have rows, and columns that are a multiple of 16, but its shape is {(M, K)}")
    if a.is_cuda:
        values, codes = a.new_empty((M, K // 2)), a.new_empty((M, K // 16), dtype=torch.int16)
        squeeze(M, K, str(a.dtype).removeprefix("torch."))(a, values, codes)
    else:
        values, codes = squeezed(a)
    codes = torch.nn.functional.pad(codes, (0, -codes.shape[1] % (DEPTH // 16), 0, -M % ROWS), value=EMPTY)
    return Sparse((M, K), values, codes, ordered(codes))


def squeezed(a: "torch.Tensor") -> "tuple[torch.Tensor, torch.Tensor]":
    """``squeeze`` in torch: values and codes."""
    import torch

    M, K = a.shape
    groups = a.view(M, K // 4, 4)
    at = groups.abs().float().sort(dim=-1, descending=True, stable=True).indices[..., :2].sort(dim=-1).values
    values = groups.gather(2, at).reshape(M, K // 2)
    nibbles = (at[..., 0] + 4 * at[..., 1]).view(M, K // 16, 4)
    words = (nibbles << torch.arange(0, 16, 4, device=a.device)).sum(-1)
    return values, torch.where(words > 32767, words - 65536, words).to(torch.int16)


@lru_cache(maxsize=256)
def build(fast: bool, M: int, N: int, K: int, layout: str, dtype: str, sms: int) -> Any:
    """The compiled kernel of one problem."""
    if not fast:
        return portable(M, N, K, layout, dtype)
    return hopper(M, N, K, layout, dtype, sms)


def sparse_gemm(a: Sparse, b: "torch.Tensor", *, layout: str = "NT", out: "torch.Tensor | None" = None) -> "torch.Tensor":
    """``a @ op(b)`` for a compressed ``a``.

    Args:
        a: what ``compress`` gave, [M, K].
        b: [N, K] where ``layout`` is ``NT``, [K, N] where it is ``NN``; of a's dtype, contiguous; rows a multiple of 8 elements.
        layout: ``NT`` or ``NN``.
        out: [M, N], written and returned; made if None.

    Raises:
        InputError: a shape, dtype, device or layout does not fit.
    """
    checks.require(layout in LAYOUTS, f"layout must be one of {', '.join(LAYOUTS)}, but it is {layout!r}")
    dtype = str(a.values.dtype).removeprefix("torch.")
    checks.tensor("b", b, 2, (dtype,))
    checks.same_device(a=a.values, b=b, out=out)
    (M, K), (N, K_b) = a.shape, b.shape if layout == "NT" else b.shape[::-1]
    checks.require(K_b == K, f"a and b disagree on K: {K} and {K_b} (layout {layout})")
    checks.require(N > 0 and N % 8 == 0, f"N must be a positive multiple of 8, but it is {N}")
    if out is not None:
        checks.tensor("out", out, 2, (dtype,))
        checks.require(tuple(out.shape) == (M, N), f"out must have shape {(M, N)}, but it has {tuple(out.shape)}")
    result = b.new_empty((M, N)) if out is None else out
    fast = checks.hopper(b)
    kernel = build(fast, M, N, K, layout, dtype, checks.sm_count(b) if fast else 0)
    kernel(a.values, a.ordered if fast else a.codes, b, result)
    return result


def reference(a: Sparse, b: "torch.Tensor", *, layout: str = "NT") -> "torch.Tensor":
    """The same in torch, in float64."""
    return a.dense().double() @ (b.T if layout == "NT" else b).double()

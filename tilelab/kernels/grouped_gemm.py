"""Grouped GEMM for experts: rows of A belong to groups, in order, and each group is multiplied with a weight of its own.

a [rows, K], b [G, N, K] bfloat16 or float16, ends [G] int32: where each group's rows end (``offs`` of ``torch._grouped_mm``); groups may
be empty and of
any length. → c [rows, N], ``c[ends[g-1]:ends[g]] = a[ends[g-1]:ends[g]] @ b[g].T``.

The persistent kernel of ``gemm`` (without clusters), whose tile numbers run through all groups: each role walks along the groups as its
tile number
grows, so no table is made on the host and lengths stay on the device. Within a group tiles go column by column through panels of
``group`` rows: with
few rows a weight is read once. A tile that ends inside another group's rows is stored element by element, with a mask.
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


@tilelang.jit
def hopper(
    total: int, groups: int, N: int, K: int, dtype: str = "bfloat16", sms: int = 132, bn: int = 256, stages: int = 4, group: int = 8,
        cn: int = 64
) -> Any:
    """The persistent warp-specialised kernel for sm_90a: ``(A, B, ends, C)``."""
    bm, bk, rows = 128, 64, 64
    steps, columns = T.ceildiv(K, bk), T.ceildiv(N, bn)

    @T.macro
    def walk(ends, at):
        """On to the group of the role's tile."""
        while at[1] < groups and at[0] >= at[2] + T.ceildiv(at[4] - at[3], bm) * columns:
            at[2] = at[2] + T.ceildiv(at[4] - at[3], bm) * columns
            at[1] = at[1] + 1
            at[3] = at[4]
            if at[1] < groups:
                at[4] = ends[at[1]]

    @T.macro
    def enter(ends, at, t):
        """``at`` is where a role stands: its tile, the group, the tiles before the group, and the group's first row and end."""
        at[0] = t
        at[1] = 0
        at[2] = 0
        at[3] = 0
        at[4] = ends[0]
        walk(ends, at)

    @T.macro
    def store(wg, j, acc, stage, C, row, col, end):
        if row + rows <= end:
            T.tma_store_wait(1)
            T.sync_threads(8 + wg, 128)
            for r, c in T.Parallel(rows, cn):
                stage[r, c] = T.cast(acc[r, j * cn + c], dtype)
            T.fence_proxy_async()
            T.sync_threads(8 + wg, 128)
            T.tma_copy(stage, C[row : row + rows, col : col + cn])
        else:
            for r, c in T.Parallel(rows, cn):
                if row + r < end:
                    C[row + r, col + c] = T.cast(acc[r, j * cn + c], dtype)

    @T.macro
    def product(wg, a, b, full, free, acc, first):
        for k in T.serial(steps):
            s = (first + k) % stages
            T.mbarrier_wait_parity(full[s], ((first + k) // stages) & 1)
            T.wgmma_gemm(a[s, wg * rows : wg * rows + rows, :], b[s, :, :], acc, transpose_B=True, clear_accum=(k == 0))
            T.wait_wgmma(1)
            if k > 0:
                release(free, (first + k - 1) % stages)
        T.wait_wgmma(0)
        release(free, (first + steps - 1) % stages)

    @T.macro
    def consume(wg, a, b, stage_a, stage_b, full, free, acc, ends, C, block):
        T.inc_max_nreg(232)
        it, row, col = [T.alloc_var("int32") for _ in range(3)]
        at = T.alloc_local((5,), "int32")
        it = 0
        enter(ends, at, block)
        while at[1] < groups:
            y, x = place(at[0] - at[2], T.ceildiv(at[4] - at[3], bm), columns, group)
            row = at[3] + y * bm + wg * rows
            col = x * bn
            product(wg, a, b, full, free, acc, it)
            it = it + steps
            for j in T.unroll(bn // cn // 2, explicit=True):
                store(wg, 2 * j, acc, stage_a, C, row, col + 2 * j * cn, at[4])
                store(wg, 2 * j + 1, acc, stage_b, C, row, col + (2 * j + 1) * cn, at[4])
            at[0] = at[0] + sms
            walk(ends, at)
        T.tma_store_wait(0)

    @T.prim_func
    def main(
        A: T.Tensor((total, K), dtype), B: T.Tensor((groups, N, K), dtype), ends: T.Tensor((groups,), "int32"), C: T.Tensor((total, N),
            dtype)
    ):
        with T.Kernel(sms, threads=384) as block:
            a = T.alloc_shared((stages, bm, bk), dtype)
            b = T.alloc_shared((stages, bn, bk), dtype)
            stage0a, stage0b, stage1a, stage1b = [T.alloc_shared((rows, cn), dtype) for _ in range(4)]
            acc0, acc1 = [T.alloc_fragment((rows, bn), "float32") for _ in range(2)]
            full = T.alloc_barrier([1] * stages)
            free = T.alloc_barrier([8] * stages)
            tx = T.get_thread_binding()
            if tx >= 256:
                T.dec_max_nreg(40)
                if tx < 288:
                    it, row, col = [T.alloc_var("int32") for _ in range(3)]
                    at = T.alloc_local((5,), "int32")
                    it = 0
                    enter(ends, at, block)
                    while at[1] < groups:
                        y, x = place(at[0] - at[2], T.ceildiv(at[4] - at[3], bm), columns, group)
                        row = at[3] + y * bm
                        col = x * bn
                        for k in T.serial(steps):
                            s = (it + k) % stages
                            T.mbarrier_wait_parity(free[s], (((it + k) // stages) & 1) ^ 1)
                            T.tma_copy(A[row : row + bm, k * bk : (k + 1) * bk], a[s, :, :], barrier=full[s])
                            T.tma_copy(B[at[1], col : col + bn, k * bk : (k + 1) * bk], b[s, :, :], barrier=full[s])
                            release(full, s)
                        it = it + steps
                        at[0] = at[0] + sms
                        walk(ends, at)
            elif tx < 128:
                consume(0, a, b, stage0a, stage0b, full, free, acc0, ends, C, block)
            else:
                consume(1, a, b, stage1a, stage1b, full, free, acc1, ends, C, block)

    return main


@tilelang.jit
def portable(total: int, groups: int, N: int, K: int, dtype: str = "bfloat16", bm: int = 64, bn: int = 64, bk: int = 32,
    stages: int = 2) -> Any:
    """The same function for every target with tensor cores: a block looks up its group; blocks past the last tile do nothing."""

    @T.prim_func
    def main(
        A: T.Tensor((total, K), dtype), B: T.Tensor((groups, N, K), dtype), ends: T.Tensor((groups,), "int32"), C: T.Tensor((total, N),
            dtype)
    ):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(total, bm) + groups, threads=128) as (bx, tile):
            a, b = T.alloc_shared((bm, bk), dtype), T.alloc_shared((bn, bk), dtype)
            acc = T.alloc_fragment((bm, bn), "float32")
            group, row, end, before, begin = [T.alloc_var("int32") for _ in range(5)]
            group = -1
            row = 0
            end = 0
            before = 0
            begin = 0
            for g in T.serial(groups):
                if tile >= before and tile < before + T.ceildiv(ends[g] - begin, bm):
                    group = g
                    row = begin + (tile - before) * bm
                    end = ends[g]
                before = before + T.ceildiv(ends[g] - begin, bm)
                begin = ends[g]
            if group >= 0:
                T.clear(acc)
                for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                    T.copy(A[row, k * bk], a)
                    T.copy(B[group, bx * bn : bx * bn + bn, k * bk : k * bk + bk], b)
                    T.gemm(a, b, acc, transpose_B=True)
                for r, c in T.Parallel(bm, bn):
                    if row + r < end:
                        C[row + r, bx * bn + c] = T.cast(acc[r, c], dtype)

    return main


@lru_cache(maxsize=256)
def build(fast: bool, total: int, groups: int, N: int, K: int, dtype: str, sms: int) -> Any:
    """The compiled kernel of one problem."""
    return hopper(total, groups, N, K, dtype, sms) if fast else portable(total, groups, N, K, dtype)


def grouped_gemm(a: "torch.Tensor", b: "torch.Tensor", ends: "torch.Tensor") -> "torch.Tensor":
    """Each group's rows of ``a`` times its own weight, transposed.

    Args:
        a: [rows, K] bfloat16 or float16, contiguous, groups one after the other.
        b: [G, N, K], of a's dtype.
        ends: [G] int32, rising, the last one at most ``rows``; rows past it are left as they are (not written).

    Returns:
        [rows, N].

    Raises:
        InputError: a shape, dtype or device does not fit.
    """
    checks.tensor("a", a, 2, DTYPES)
    dtype = str(a.dtype).removeprefix("torch.")
    checks.tensor("b", b, 3, (dtype,))
    checks.tensor("ends", ends, 1, ("int32",))
    checks.same_device(a=a, b=b, ends=ends)
    (total, K), (groups, N, K_b) = a.shape, b.shape
    checks.require(K_b == K, f"a and b must have the same K, but they have {K} and {K_b}")
    checks.require(ends.shape[0] == groups, f"ends must have one entry for each of the {groups} groups, but it has {ends.shape[0]}")
    checks.require(K % 8 == 0 and N % 8 == 0, f"K and N must be multiples of 8, but they are {K} and {N}")
    fast = checks.hopper(a)
    out = a.new_empty((total, N))
    if total:
        build(fast, total, groups, N, K, dtype, checks.sm_count(a) if fast else 0)(a, b, ends, out)
    return out


def reference(a: "torch.Tensor", b: "torch.Tensor", ends: "torch.Tensor") -> "torch.Tensor":
    """The same in torch, in float64, one group at a time."""
    out = a.new_zeros((a.shape[0], b.shape[1])).double()
    begin = 0
    for g, end in enumerate(ends.tolist()):
        out[begin:end] = a[begin:end].double() @ b[g].double().T
        begin = end
    return out

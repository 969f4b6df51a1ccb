"""Matrix products of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from tilelab import ir
from tilelab.ops import SPELLING, arg
from tilelab.sim import arith, dtypes, numbers, sync
from tilelab.sim.access import Access
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.expr import const
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.tileops.space import Space

Scaling: TypeAlias = "Callable[[Frame, Value, Value], tuple[Value, Value]]"


def matrix(comp: Any, region: ir.Region, ctx: Context, what: str, kind: str) -> tuple[Space, Access]:
    """The last two dimensions of ``region`` as a matrix over two axes; dimensions before them are one element."""
    space = Space(comp, ctx, comp.exprs(region.extents[-2:], ctx), what)
    at: tuple[Ex | None, ...] = (*(None,) * (len(region.mins) - 2), *space.vars)
    return space, space.access(region, at, kind)


def gemm(comp: Any, s: ir.Tile, ctx: Context, scaling: Scaling | None = None) -> Op:
    """``c (+)= a @ b`` with either transposed; accumulates in the dtype of ``c``. ``scaling``: what it makes of both operands first."""
    what = SPELLING[s.op]
    a, b, c = (arg(s.op, s.args, n) for n in ("a", "b", "c"))
    ta, tb = (bool(_number(arg(s.op, s.args, n))) for n in ("transpose_a", "transpose_b"))
    sa, ra = matrix(comp, a, ctx, what, "read")
    sb, rb = matrix(comp, b, ctx, what, "read")
    sc, rc = matrix(comp, c, ctx, what, "read")
    _, wc = matrix(comp, c, ctx, what, "write")
    clear = comp.expr(arg(s.op, s.args, "clear_accum"), ctx)
    product = multiplier(a.buffer.dtype, b.buffer.dtype, c.buffer.dtype)
    finish = arith.finisher(c.buffer.dtype)
    left, right, old = Cell(), Cell(), Cell()
    read_a, read_b, read_c = sa.runs(left.keep(ra.read)), sb.runs(right.keep(rb.read)), sc.runs(old.keep(rc.read))
    result = Cell()
    write_c = sc.runs(lambda fr: wc.write(fr, result.value))
    fclear = clear.fn
    watch = numbers.product_watch(ctx, c.buffer.name, what) if dtypes.info(c.buffer.dtype).kind == "f" else None
    done = completion(comp, s, ctx)

    def one(fr: Frame, holders: list[Frame]) -> None:
        """The product of one block; ``holders`` have the parts of ``b``, side by side."""
        read_a(fr)
        x = left.value.swapaxes(-1, -2) if ta else left.value
        parts = []
        for holder in holders:
            read_b(holder)
            parts.append(right.value.swapaxes(-1, -2) if tb else right.value)
        y = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)
        fr.run.flops += 2 * x.shape[-2] * y.shape[-1] * x.shape[-1] * fr.run.blocks_of(fr)
        if scaling is not None:
            x, y = scaling(fr, x, y)
        z = product(x, y)
        fresh = fclear(fr)
        operands: tuple[Value, ...] = (x, y)
        if isinstance(fresh, np.ndarray):
            read_c(fr)
            operands = (x, y, old.value)
            z = np.where(fresh[..., None, None], 0, old.value) + z
        elif not fresh:
            acc = fr.mem[rc.slot]
            if acc.fill is None or acc.fill != 0:
                read_c(fr)
                operands = (x, y, old.value)
                z = np.add(old.value, z, out=z) if z.shape == old.value.shape and z.dtype == old.value.dtype else old.value + z
        result.value = finish(z)
        if watch is not None and fr.run.checks:
            watch(fr, result.value, operands)
        write_c(fr)
        if done is not None:
            done(fr)

    if not s.attrs.get("use_2cta"):
        return Op(lambda fr: one(fr, [fr]))

    def two(fr: Frame) -> None:
        """The first block of a pair issues the product of both: each has its rows of ``a``, and half the columns of ``b``."""
        for block in (holders := pair(fr, ctx, what)):
            one(block, holders)

    return Op(two)


def pair(fr: Frame, ctx: Context, what: str) -> list[Frame]:
    """Frames of both blocks of a pair, asked by the first of them; nothing for the second.

    Raises:
        Unsupported: There is no cluster.
    """
    if fr.cluster is None or fr.rank ^ 1 not in fr.cluster.frames:
        raise Unsupported(f"{what} with use_2cta outside a cluster of two", ctx.loc, "T.Kernel(…, cluster_dims=(2, 1, 1))")
    if fr.rank & 1:
        return []
    other = fr.cluster.frames[fr.rank ^ 1].fork()
    other.mask = None
    return [fr, other]


def completion(comp: Any, s: ir.Tile, ctx: Context) -> Callable[[Frame], None] | None:
    """What tells the barrier that an asynchronous product names that it is done."""
    named = arg(s.op, s.args, "mbar")
    if not isinstance(named, ir.Load):
        return None
    slot, index, _ = sync.barrier_of(comp, named, ctx)
    place = Place(ctx)

    def run(fr: Frame) -> None:
        fr.mem[slot].arrive(sync.at(index, fr), 1, place, fr)
        fr.run.version += 1

    return run


def gemm_sp(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``c (+)= a @ b`` where ``a`` keeps two of every four elements of a row and ``e`` says which (four bits a group)."""
    a, e, b, c = (arg(s.op, s.args, n) for n in ("a", "e", "b", "c"))
    ta, te, tb = (bool(_number(arg(s.op, s.args, n))) for n in ("transpose_a", "transpose_e", "transpose_b"))
    what = SPELLING[s.op]
    cells = [Cell() for _ in range(4)]
    reads = []
    for region, cell in zip((a, e, b, c), cells, strict=True):
        space, access = matrix(comp, region, ctx, what, "read")
        reads.append(space.runs(cell.keep(access.read)))
    sc, wc = matrix(comp, c, ctx, what, "write")
    clear, slot = comp.expr(arg(s.op, s.args, "clear_accum"), ctx).fn, comp.slot_of(c.buffer, ctx)
    product, finish = multiplier(a.buffer.dtype, b.buffer.dtype, c.buffer.dtype), arith.finisher(c.buffer.dtype)
    result = Cell()
    write = sc.runs(lambda fr: wc.write(fr, result.value))
    group = 2 if dtypes.info(a.buffer.dtype).bits == 32 else 4
    word = dtypes.info(e.buffer.dtype).bits

    def run(fr: Frame) -> None:
        for read in reads[:3]:
            read(fr)
        x, m, y = (cell.value for cell in cells[:3])
        x, m, y = (v.swapaxes(-1, -2) if t else v for v, t in ((x, ta), (m, te), (y, tb)))
        z = product(expand_sparse(x, m, group, word), y)
        if not clear(fr) and not (fr.mem[slot].fill is not None and fr.mem[slot].fill == 0):
            reads[3](fr)
            z = cells[3].value + z
        result.value = finish(z)
        write(fr)

    return Op(run)


def expand_sparse(x: Value, meta: Value, group: int, word: int) -> Value:
    """The full rows of a compressed matrix: in each group of ``group`` elements, those kept go where ``meta`` says."""
    m = meta.astype(np.int64) & ((1 << word) - 1)
    nibbles = (m[..., None] >> (4 * np.arange(word // 4))) & 15
    nibbles = nibbles.reshape(*m.shape[:-1], -1)
    kept = group // 2
    lead = np.broadcast_shapes(x.shape[:-1], nibbles.shape[:-1])
    groups = x.shape[-1] // kept
    values = np.broadcast_to(x, (*lead, x.shape[-1])).reshape(*lead, groups, kept)
    codes = np.broadcast_to(nibbles[..., :groups], (*lead, groups))
    at = np.stack([codes & 3, codes >> 2], axis=-1) if group == 4 else (codes >> 3)[..., None]  # 0100 the first, 1110 the second
    full = np.zeros((*lead, groups, group), x.dtype)
    np.put_along_axis(full, at, values, axis=-1)
    return full.reshape(*lead, groups * group)


class Cell:
    """A value handed from one closure to the next."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Value = None

    def keep(self, fn: Callable[[Frame], Value]) -> Callable[[Frame], None]:
        """A closure that stores what ``fn`` gives."""

        def run(fr: Frame) -> None:
            self.value = fn(fr)

        return run


def multiplier(a: str, b: str, c: str) -> Callable[[Value, Value], Value]:
    """The product of two carriers, exact enough for an accumulator of dtype ``c``, in its carrier."""
    kinds = {dtypes.info(d).kind for d in (a, b)}
    want = dtypes.carrier(c)
    if kinds <= {"i", "u", "b"}:
        width = dtypes.info(a).bits + dtypes.info(b).bits

        def whole(x: Value, y: Value) -> Value:
            depth = x.shape[-1]
            work = np.float32 if depth << width < 1 << 25 else np.float64  # every partial sum is exact
            out = np.matmul(x.astype(work), y.astype(work))
            return out.astype(np.int64).astype(want) if want.kind in "iu" else out.astype(want)

        return whole
    work = np.float64 if "float64" in (a, b, c) else np.float32
    cut_a, cut_b = (dtypes.parse(d)[0] == "tfloat32" for d in (a, b))

    def real(x: Value, y: Value) -> Value:
        x = dtypes.truncated(x) if cut_a else x
        y = dtypes.truncated(y) if cut_b else y
        x = x if x.dtype == work else x.astype(work)
        y = y if y.dtype == work else y.astype(work)
        out = np.matmul(x, y)
        return out if out.dtype == want else out.astype(want)

    return real


def _number(e: Any) -> Any:
    return e.value if isinstance(e, ir.Const) else e


TABLE = {"gemm": gemm, "wgmma_gemm": gemm, "tcgen05_gemm": gemm, "gemm_sp": gemm_sp, "wgmma_gemm_sp": gemm_sp, "tcgen05_gemm_sp": gemm_sp}
__all__ = ["TABLE", "Cell", "Scaling", "const", "gemm", "matrix", "multiplier", "pair"]

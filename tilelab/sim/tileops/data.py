"""Moving tiles: copy, fill, transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.finding import finding
from tilelab.ops import SPELLING, arg
from tilelab.sim import dtypes, effects, sync
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.expr import binary, const
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Stop, Unsupported, both
from tilelab.sim.tileops.space import Space, extent_of, per_thread


def copy(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``dst[…] = src[…]``: elements outside the source read as the safe value, elements outside the destination are dropped."""
    if s.attrs.get("is_gather4") or s.attrs.get("is_scatter4"):
        return rows_by_index(comp, s, ctx)
    if s.attrs.get("cluster_mask") is not None or s.attrs.get("dst_block") is not None:
        from tilelab.sim.tileops.cluster_copy import copy_cluster

        return copy_cluster(comp, s, ctx)
    return plain_copy(comp, s, ctx)


def plain_copy(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """A copy by one block."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    if not isinstance(src, ir.Region) or not isinstance(dst, ir.Region):
        raise Unsupported(f"{SPELLING[s.op]} of something that is not a region", s.loc)
    extents, at_src, at_dst = match(comp, src, dst, s, ctx)
    space = Space(comp, ctx, extents, SPELLING[s.op], tile=not per_thread(comp, s))
    pick = space.vars
    read = space.access(src, tuple(None if a is None else pick[a] for a in at_src), "read")
    write = space.access(dst, tuple(None if a is None else pick[a] for a in at_dst), "write")
    value = comp.loaded(read, src.buffer.dtype)
    source: Any = read if value.source is not None else None
    if dtypes.parse(src.buffer.dtype)[0] != dtypes.parse(dst.buffer.dtype)[0]:
        value, source = comp.cast(value, dst.buffer.dtype, space.ctx), None
    fn, put = value.fn, write.write
    if dst.buffer.scope == "global":

        def outwards(fr: Frame) -> None:
            inside = write.inside(fr)  # what is dropped need not be there
            if inside is None:
                put(fr, fn(fr), source)
                return
            old = fr.mask
            fr.mask = both(old, inside)
            x = fn(fr)
            fr.mask = old
            put(fr, x, None)

        return Op(space.runs(outwards))
    if src.buffer.scope == "global":
        return Op(space.runs(lambda fr: put(fr, fn(fr), source)))

    def within(fr: Frame) -> None:
        """Between tiles, what is not initialised stays so, without a word."""
        have = read.initialised(fr)
        if have is None:
            put(fr, fn(fr), source)
            return
        fr.run.checks, checks = False, fr.run.checks
        x = fn(fr)
        fr.run.checks = checks
        put(fr, x, None)
        write.unwrite(fr, have)

    return Op(space.runs(within))


def match(
    comp: Any, src: ir.Region, dst: ir.Region, s: ir.Tile, ctx: Context
) -> tuple[tuple[Ex, ...], tuple[int | None, ...], tuple[int | None, ...]]:
    """Pair the dimensions of two regions: those of extent other than 1, in order; a missing one is broadcast.

    Returns:
        The extents of the space, and for each dimension of source and destination its axis of the space (None: one element).
    """
    a, b = comp.exprs(src.extents, ctx), comp.exprs(dst.extents, ctx)
    na, nb = [extent_of(e) for e in a], [extent_of(e) for e in b]
    wide_a = [d for d, n in enumerate(na) if n != 1]
    wide_b = [d for d, n in enumerate(nb) if n != 1]
    at_a: list[int | None] = [None] * len(a)
    at_b: list[int | None] = [None] * len(b)
    same = len(wide_a) == len(wide_b) and all(_fits(na[i], nb[j]) for i, j in zip(wide_a, wide_b, strict=True))
    if same:
        for axis, (i, j) in enumerate(zip(wide_a, wide_b, strict=True)):
            at_a[i] = at_b[j] = axis
        return tuple(a[i] if na[i] is not None else b[j] for i, j in zip(wide_a, wide_b, strict=True)), tuple(at_a), tuple(at_b)
    # the destination is the larger: align from the right, source dimensions of extent 1 are repeated
    for axis, j in enumerate(wide_b):
        at_b[j] = axis
        i = j - len(b) + len(a)
        if i >= 0 and na[i] != 1:
            if not _fits(na[i], nb[j]):
                raise mismatch(src, dst, na, nb, s)
            at_a[i] = axis
    if any(at_a[i] is None for i in wide_a):
        raise mismatch(src, dst, na, nb, s)
    return tuple(b[j] for j in wide_b), tuple(at_a), tuple(at_b)


def _fits(a: int | None, b: int | None) -> bool:
    return a is None or b is None or a == b


def mismatch(src: ir.Region, dst: ir.Region, na: list[int | None], nb: list[int | None], s: ir.Tile) -> Stop:
    """TL701: the shapes of a copy do not fit."""
    one, two = ("×".join("?" if n is None else str(n) for n in x) for x in (na, nb))
    return Stop(
        finding(
            "TL701", f"{SPELLING[s.op]} from {src.buffer.name} to {dst.buffer.name}: a region of {one} does not fit one of {two}.",
            fix="make both regions the same shape, e.g. by slicing the larger one",
            file=s.loc.file if s.loc else None, line=s.loc.line if s.loc else None,
            evidence={"src": [src.buffer.name, *na], "dst": [dst.buffer.name, *nb]},
        )
    )  # fmt: skip


def fill(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``dst[…] = value``."""
    dst, value = arg(s.op, s.args, "dst"), arg(s.op, s.args, "value")
    if isinstance(value, ir.Str):
        message = f"T.fill of {dst.buffer.name}, which is {dst.buffer.dtype}, is given the text {value.value!r}."
        raise Stop(finding("TL701", message, fix="give a number.", file=s.loc.file if s.loc else None, line=s.loc.line if s.loc else None))
    space = Space(comp, ctx, comp.exprs(dst.extents, ctx), "T.fill", tile=not per_thread(comp, s))
    write = space.access(dst, space.vars, "write").write
    ex = comp.cast(comp.expr(value, space.ctx), dst.buffer.dtype, space.ctx)
    fn = ex.fn
    return Op(space.runs(lambda fr: write(fr, fn(fr))))


def transpose(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``dst[j, i] = src[i, j]``."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    space = Space(comp, ctx, comp.exprs(src.extents, ctx), "T.transpose")
    read = space.access(src, space.vars, "read")
    write = space.access(dst, (*space.vars[:-2], space.vars[-1], space.vars[-2]), "write")
    value = comp.cast(comp.loaded(read, src.buffer.dtype), dst.buffer.dtype, space.ctx)
    fn, put = value.fn, write.write
    source = read if value.source is not None else None

    def run(fr: Frame) -> None:
        put(fr, fn(fr), source)

    return Op(space.runs(run))


def rows_by_index(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``T.tma_gather4`` and ``T.tma_scatter4``: four rows, named by index, of a matrix in global memory."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    gathers = bool(s.attrs.get("is_gather4"))
    kind = "gather4" if gathers else "scatter4"
    names, first = s.attrs["gather4_rows"], s.attrs["gather4_col"]  # of scatters too
    tile = dst if gathers else src
    space = Space(comp, ctx, comp.exprs(tile.extents, ctx), f"T.tma_{kind}")
    rows = [comp.expr(as_expr(r), space.ctx) for r in names]  # type: ignore[union-attr]
    row, column = space.vars
    pick: Ex = rows[-1]
    for i in reversed(range(len(rows) - 1)):
        pick = _choose(binary("eq", "bool", row, const("int32", i), space.ctx.rank), rows[i], pick)
    low = comp.expr(as_expr(first), space.ctx)
    far = (pick, binary("add", "int32", low, column, space.ctx.rank))
    near = tuple(binary("add", e.dtype, e, v, space.ctx.rank) for e, v in zip(comp.exprs(tile.mins, space.ctx), space.vars, strict=True))
    read = comp.access(src.buffer, far if gathers else near, space.ctx, f"T.tma_{kind}", "read")
    write = comp.access(dst.buffer, near if gathers else far, space.ctx, f"T.tma_{kind}", "write")
    value = comp.cast(comp.loaded(read, src.buffer.dtype), dst.buffer.dtype, space.ctx)
    fn = value.fn
    go = space.runs(lambda fr: write.write(fr, fn(fr)))
    barrier = s.attrs.get("barrier")
    if not isinstance(barrier, ir.Load):
        return Op(go)
    slot, index, _ = sync.barrier_of(comp, barrier, ctx)
    bits = dtypes.info(dst.buffer.dtype).bits

    def run(fr: Frame) -> None:
        later = fr.fork()
        n = 4 * int(tile_columns.fn(fr)) * bits // 8
        fr.mem[slot].fly(sync.at(index, fr), n, lambda: go(later))

    tile_columns = space.extents[1]
    return Op(run)


def as_expr(x: Any) -> ir.Expr:
    """An attribute as an expression."""
    if isinstance(x, ir.AttrMap):  # a plain number among attributes that are constants
        x = dict(x.items)["raw"]
    return x if isinstance(x, ir.Expr) else ir.Const(dtype="int32", value=x)


def _choose(c: Ex, a: Ex, b: Ex) -> Ex:
    def fn(fr: Frame) -> Any:
        out: Any = np.where(c.fn(fr), a.fn(fr), b.fn(fr))
        return out.astype(np.int32)

    return Ex(dtype="int32", fn=fn, axes=c.axes | a.axes | b.axes, loads=a.loads or b.loads)


def tma_copy(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """A bulk copy: a load lands when its barrier completes (never before), a store is done at once."""
    dst = arg(s.op, s.args, "dst")
    barrier = s.attrs.get("barrier")
    place = Place(ctx)
    if not isinstance(barrier, ir.Load) or dst.buffer.scope == "global":
        op = plain_copy(comp, s, ctx)

        def store(fr: Frame) -> None:
            if fr.mask is not None and fr.run.checks:
                effects.part_of_a_warp(place, fr, "T.tma_copy")
            op.run(fr)

        return Op(store)
    slot, index, _ = sync.barrier_of(comp, barrier, ctx)
    begin, nbytes = deferred(comp, s, ctx)
    mask = s.attrs.get("cluster_mask")
    several = int(mask.value if isinstance(mask, ir.Const) else mask) if mask is not None else 0  # type: ignore[arg-type]

    def run(fr: Frame) -> None:
        if fr.mask is not None and fr.run.checks:
            effects.part_of_a_warp(place, fr, "T.tma_copy")
        bars = fr.mem[slot]
        i = sync.at(index, fr)
        n = nbytes(fr)
        bars.tx[i] += n
        if not several or fr.cluster is None or not several >> fr.rank & 1:
            bars.fly(i, n, begin(fr, fr))
            return
        named = [r for r in sorted(fr.cluster.frames) if several >> r & 1]
        bars._settle(i)
        for r in named if fr.rank == named[0] else ():  # the lowest rank sends for all
            peer = fr.cluster.frames[r]
            peer.mem[slot].fly(i, n, begin(fr, peer))
        fr.run.version += 1

    return Op(run)


def async_copy(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """An asynchronous copy, a group of its own: it lands at the wait for its group."""
    begin, _ = deferred(comp, s, ctx)
    return Op(lambda fr: fr.sync.setdefault("groups", []).append(begin(fr, fr)))


def halves(comp: Any, s: ir.Tile, ctx: Context) -> tuple[Callable[[Frame], Any], Callable[[Frame, Any], None]]:
    """A copy in two halves: what is read, and the writing of it."""
    issuing, landing, _, _ = _parts(comp, s, ctx)
    return issuing, landing


def deferred(comp: Any, s: ir.Tile, ctx: Context) -> tuple[Callable[[Frame, Frame], Callable[[], None]], Callable[[Frame], int]]:
    """A copy in two halves: it reads when it is issued; what it gives back writes, into the memory of the second frame.

    Until then the destination holds nothing. Also: its size in bytes.
    """
    issuing, landing, forgetting, slot = _parts(comp, s, ctx)
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    extents, *_ = match(comp, src, dst, s, ctx)

    def begin(fr: Frame, to: Frame) -> Callable[[], None]:
        x = issuing(fr)
        later = fr.fork()
        later.mem = to.mem
        forgetting(later)
        buf = to.mem[slot]
        buf.flying += 1

        def finish() -> None:
            landing(later, x)
            buf.flying -= 1

        return finish

    bits = dtypes.info(src.buffer.dtype).bits

    def nbytes(fr: Frame) -> int:
        n = 1
        for e in extents:
            n *= int(e.fn(fr))
        return n * bits // 8

    return begin, nbytes


def _parts(
    comp: Any, s: ir.Tile, ctx: Context
) -> tuple[Callable[[Frame], Any], Callable[[Frame, Any], None], Callable[[Frame], None], int]:
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    extents, at_src, at_dst = match(comp, src, dst, s, ctx)
    space = Space(comp, ctx, extents, SPELLING[s.op])
    read = space.access(src, tuple(None if a is None else space.vars[a] for a in at_src), "read")
    write = space.access(dst, tuple(None if a is None else space.vars[a] for a in at_dst), "write")
    value = comp.cast(comp.loaded(read, src.buffer.dtype), dst.buffer.dtype, space.ctx)
    held: list[Any] = []
    reads = space.runs(lambda fr: held.append(value.fn(fr)))
    writes = space.runs(lambda fr: write.write(fr, held.pop()))

    def issue(fr: Frame) -> Any:
        reads(fr)
        x = held.pop()
        return x.copy() if hasattr(x, "copy") else x

    def land(fr: Frame, x: Any) -> None:
        held.append(x)
        writes(fr)

    return issue, land, space.runs(write.forget), write.slot


TABLE = {"copy": copy, "async_copy": async_copy, "tma_copy": tma_copy, "fill": fill, "transpose": transpose}

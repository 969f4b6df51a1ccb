"""Scans along a dimension, reducers, and the gathers of convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import SPELLING, arg
from tilelab.sim import arith, dtypes
from tilelab.sim.context import Context
from tilelab.sim.expr import binary, const
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.tileops.atomics import updater
from tilelab.sim.tileops.reduce import start
from tilelab.sim.tileops.space import Space


def scan(ufunc: Any) -> Callable[[Any, ir.Tile, Context], Op]:
    """Return the compiler of an inclusive scan."""

    def make(comp: Any, s: ir.Tile, ctx: Context) -> Op:
        src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
        dim, reverse = (_plain(arg(s.op, s.args, n)) for n in ("dim", "reverse"))
        space = Space(comp, ctx, comp.exprs(src.extents, ctx), SPELLING[s.op])
        read, write = space.access(src, space.vars, "read"), space.access(dst, space.vars, "write")
        axis = space.axes[dim]
        finish = arith.finisher(dst.buffer.dtype)
        rounds = arith.rounds(dst.buffer.dtype)

        def run(fr: Frame) -> None:
            x = read.read(fr)
            if x.shape[axis] != fr.size[axis]:
                x = np.broadcast_to(x, (*x.shape[:axis], fr.size[axis], *x.shape[axis + 1 :]))
            x = np.flip(x, axis) if reverse else x
            out = _rounded(ufunc, x, axis, finish) if rounds and ufunc is np.add else finish(ufunc.accumulate(x, axis=axis))
            write.write(fr, np.flip(out, axis).copy() if reverse else out)

        return Op(space.runs(run))

    return make


def _rounded(ufunc: Any, x: Value, axis: int, finish: Any) -> Value:
    """A running sum rounded at every step."""
    x = np.moveaxis(x, axis, 0)
    out = np.empty_like(x)
    total = x[0]
    out[0] = total
    for i in range(1, x.shape[0]):
        total = finish(ufunc(total, x[i]))
        out[i] = total
    return np.moveaxis(out, 0, axis)


# ------------------------------------------------------------------------------------------------------- reducers
_COMBINE = {"sum": "add", "max": "max", "min": "min", "bitand": "and", "bitor": "or", "bitxor": "xor"}


def reducer_init(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """Open an epoch: everything is the identity of the operation, or the starting value given."""
    dst, init = arg(s.op, s.args, "dst"), arg(s.op, s.args, "init")
    space = Space(comp, ctx, comp.exprs(dst.extents, ctx), "T.reducer_init")
    write = space.access(dst, space.vars, "write")
    kind = comp.reducers.get(dst.buffer.data, "sum")
    first = start(kind, dst.buffer.dtype)
    ex = comp.cast(comp.expr(init, space.ctx), dst.buffer.dtype, space.ctx) if init is not None else None
    return Op(space.runs(lambda fr: write.write(fr, ex.fn(fr) if ex is not None else first)))


def reducer_update(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """One contribution for each lane."""
    load = call.args[0]
    if not isinstance(load, ir.Load):
        raise Unsupported("T.reducer_update of something that is not an element", ctx.loc)
    acc = comp.access(load.buffer, comp.exprs(load.indices, ctx), ctx, "T.reducer_update", "atomic")
    value = comp.cast(comp.expr(call.args[1], ctx), load.buffer.dtype, ctx)
    act = updater(acc, _COMBINE[comp.reducers.get(load.buffer.data, "sum")], ctx, wide=True)
    fn = value.fn
    return Ex(dtype="handle", fn=lambda fr: act(fr, fn(fr), False), axes=frozenset(range(ctx.rank)), loads=True)


def finalize(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """Close an epoch of the older form, in place: nothing is left to do here."""
    return Op(lambda fr: None)


def finalize_into(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """Close an epoch: the result goes to the destination."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    space = Space(comp, ctx, comp.exprs(src.extents, ctx), "T.finalize_reducer")
    read, write = space.access(src, space.vars, "read"), space.access(dst, space.vars, "write")
    finish = arith.finisher(dst.buffer.dtype)
    return Op(space.runs(lambda fr: write.write(fr, finish(read.read(fr).copy()))))


# -------------------------------------------------------------------------------------------------- convolutions
def im2col(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """Rows of the column matrix are output pixels, columns are (kernel row, kernel column, channel); outside the image is 0."""
    img, col = arg(s.op, s.args, "img"), arg(s.op, s.args, "col")
    kernel, stride, dilation, pad = (_plain(arg(s.op, s.args, n)) for n in ("kernel", "stride", "dilation", "pad"))
    space = Space(comp, ctx, comp.exprs(col.extents[-2:], ctx), "T.im2col")
    c2 = space.ctx
    rank = c2.rank
    _, h, w, c = (comp.expr(n, c2) for n in img.buffer.shape)
    at: tuple[Ex | None, ...] = (*(None,) * (len(col.mins) - 2), *space.vars)
    write = space.access(col, at, "write")
    rows, cols = space.extents

    def op(name: str, a: Ex, b: Ex | int) -> Ex:
        return binary(name, "int32", a, const("int32", b) if isinstance(b, int) else b, rank)

    m = op("add", op("mul", comp.expr(arg(s.op, s.args, "nhw_step"), c2), rows), space.vars[0])
    k = op("add", op("mul", comp.expr(arg(s.op, s.args, "c_step"), c2), cols), space.vars[1])
    out_h, out_w = (op("add", op("floordiv", op("sub", op("add", n, 2 * pad), dilation * (kernel - 1) + 1), stride), 1) for n in (h, w))
    area = op("mul", out_h, out_w)
    y = op(
        "sub",
        op(
            "add",
            op("mul", op("floordiv", op("floormod", m, area), out_w), stride),
            op("mul", op("floordiv", op("floordiv", k, c), kernel), dilation),
        ),
        pad,
    )
    x = op(
        "sub",
        op("add", op("mul", op("floormod", m, out_w), stride), op("mul", op("floormod", op("floordiv", k, c), kernel), dilation)),
        pad,
    )
    inside = [op("ge", y, 0), op("lt", y, h), op("ge", x, 0), op("lt", x, w)]
    read = comp.access(img.buffer, (op("floordiv", m, area), y, x, op("floormod", k, c)), c2, "T.im2col", "read")
    want = dtypes.carrier(col.buffer.dtype)

    def run(fr: Frame) -> None:
        ok: Value = None
        for cond in inside:
            v = cond.fn(fr)
            ok = v if ok is None else ok & v
        old = fr.mask
        on = np.asarray(ok)
        fr.mask = on if old is None else old & on
        values = read.read(fr)
        fr.mask = old
        write.write(fr, np.where(ok, values, want.type(0)))

    return Op(space.runs(run))


def _plain(e: Any) -> Any:
    return e.value if isinstance(e, ir.Const | ir.Str) else e


CALLS = {"tl.reducer_update": reducer_update}
TABLE = {
    "cumsum": scan(np.add), "cummax": scan(np.fmax), "im2col": im2col, "c2d_im2col": im2col,
    "reducer_init": reducer_init, "finalize_reducer": finalize, "finalize_reducer_v2": finalize_into,
}  # fmt: skip

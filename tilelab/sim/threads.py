"""Operations between the threads of a block at one moment: indices, shuffles, votes, warp reductions, elections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import arith, dtypes
from tilelab.sim.context import Context
from tilelab.sim.lanes import Aff, Ex, Frame, Value

WARP = 32


def count(ctx: Context) -> int:
    """Threads on the thread axes."""
    return int(np.prod([ctx.grid.extents[c] for c in ctx.grid.threads], dtype=np.int64)) if ctx.grid.threads else 1


def flatten(value: Value, ctx: Context, dtype: Any) -> Value:
    """Lay the thread axes out as one: shape (blocks…, threads, parallel loops…)."""
    value = np.asarray(value, dtype)
    if value.ndim == 0:
        value = value.reshape((1,) * ctx.rank)
    shape = list(value.shape)
    nb, nt = len(ctx.grid.blocks), len(ctx.grid.threads)
    for i, c in enumerate(ctx.grid.threads):
        shape[nb + i] = ctx.grid.extents[c]
    out = np.broadcast_to(value, shape)
    return out.reshape((*shape[:nb], count(ctx), *shape[nb + nt :]))


def unflatten(value: Value, ctx: Context) -> Value:
    """Undo :func:`flatten`."""
    nb = len(ctx.grid.blocks)
    sizes = tuple(ctx.grid.extents[c] for c in ctx.grid.threads)
    return value.reshape((*value.shape[:nb], *sizes, *value.shape[nb + 1 :]))


def linear(ctx: Context) -> Value:
    """The linear thread number over the lanes (threads on their axes, all else 1)."""
    shape = [1] * ctx.rank
    for i, c in enumerate(ctx.grid.threads):
        shape[len(ctx.grid.blocks) + i] = ctx.grid.extents[c]
    return np.arange(count(ctx), dtype=np.int32).reshape(shape)


def _axes(ctx: Context, *parts: Ex) -> frozenset[int]:
    return frozenset(ctx.grid.thread_axes).union(*(p.axes for p in parts))


def _result(dtype: str, axes: frozenset[int], fn: Callable[[Frame], Value], loads: bool) -> Ex:
    if axes:
        return Ex(dtype=dtype, fn=fn, axes=axes, loads=loads)
    return Ex(dtype=dtype, fn=lambda fr: arith.as_scalar(dtype, np.asarray(fn(fr)).reshape(-1)[0]), loads=loads)


# --------------------------------------------------------------------------------------------------------- indices
def _index(function: Callable[[Value, list[int]], Value], defaults: list[int]) -> Callable[[Any, ir.Call, Context], Ex]:
    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        given = [comp.expr(a, ctx).const for a in call.args]
        numbers = [int(g) for g in given] + defaults[len(given) :]
        values = np.asarray(function(linear(ctx), numbers)).astype(dtypes.carrier(call.dtype))
        values.flags.writeable = False
        return _result(call.dtype, _axes(ctx), lambda fr: values, False)

    return make


def _elect(t: Value, numbers: list[int]) -> Value:
    return t == 0 if not numbers or numbers[0] == 0 else t % numbers[0] == 0


def _cluster_rank(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """The rank of a block in its cluster (where there is one, blocks run one in a chunk)."""
    return Ex(dtype=call.dtype, fn=lambda fr: fr.rank, aff=Aff(lambda fr: fr.rank), key=("rank",))


# -------------------------------------------------------------------------------------------------------- shuffles
def _source(kind: str, lane: Value, by: Value, width: Value) -> Value:
    base = lane // width * width
    sub = lane - base
    if kind == "xor":
        to = lane ^ by
        return np.where(to < base + width, to, lane)
    if kind == "down":
        return np.where(sub + by < width, lane + by, lane)
    if kind == "up":
        return np.where(sub - by >= 0, lane - by, lane)
    return base + by % width


def _shuffle(kind: str) -> Callable[[Any, ir.Call, Context], Ex]:
    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        _, value, by, *rest = call.args
        v, b = comp.expr(value, ctx), comp.expr(by, ctx)
        w = comp.expr(rest[0], ctx) if rest else None
        want = dtypes.carrier(call.dtype)
        axis = len(ctx.grid.blocks)
        n = count(ctx)

        def fn(fr: Frame) -> Value:
            x = flatten(v.fn(fr), ctx, want)
            delta = flatten(b.fn(fr), ctx, np.int64)
            width = flatten(w.fn(fr), ctx, np.int64) if w is not None else WARP
            shape = [1] * x.ndim
            shape[axis] = n
            t = np.arange(n).reshape(shape)
            src = t // WARP * WARP + _source(kind, t % WARP, delta, width)
            src = np.where(src < n, src, t)
            full = np.broadcast_shapes(x.shape, src.shape)
            if fr.mask is not None and fr.run.checks:
                _from_absent(fr, ctx, np.broadcast_to(src, full), axis)
            return unflatten(np.take_along_axis(np.broadcast_to(x, full), np.broadcast_to(src, full), axis), ctx)

        return _result(call.dtype, _axes(ctx, v, b), fn, v.loads)

    return make


def _from_absent(fr: Frame, ctx: Context, src: Value, axis: int) -> None:
    """Report a shuffle that asks a thread which does not take part in it (TL203)."""
    on = np.broadcast_to(_active(fr, ctx, src), src.shape)
    bad = on & ~np.take_along_axis(on, src, axis)
    if not bad.any():
        return
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    threads = int(bad.any(axis=tuple(a for a in range(bad.ndim) if a != axis)).sum())
    fr.run.findings.report(
        ("absent", ctx.loc and (ctx.loc.file, ctx.loc.line)), "TL203",
        f"thread {at[axis]} asks thread {int(src[at])} for its value, which does not come here, because the condition around this shuffle "
        "differs between the threads of a warp: what it gets is undefined.",
        ctx.loc, fix="do the shuffle outside the condition, and use its result inside", block=ctx.block(fr, at),
        evidence={"reader": at[axis], "asked": int(src[at]), "threads": threads},
    )  # fmt: skip


# ------------------------------------------------------------------------------------------- votes and reductions
def _warps(x: Value, axis: int, fill: Any) -> Value:
    """Split the thread axis into (warps, 32), padded with ``fill``."""
    n = x.shape[axis]
    short = -n % WARP
    if short:
        pad = [(0, 0)] * x.ndim
        pad[axis] = (0, short)
        x = np.pad(x, pad, constant_values=fill)
    return x.reshape((*x.shape[:axis], -1, WARP, *x.shape[axis + 1 :]))


def _spread(x: Value, axis: int, n: int) -> Value:
    """Give every lane of a warp what the warp agreed on (``axis``: warps)."""
    return np.repeat(x, WARP, axis=axis).take(range(n), axis=axis)


def _warp_reduce(ufunc: Any, start: Callable[[Any], Any]) -> Callable[[Any, ir.Call, Context], Ex]:
    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        v = comp.expr(call.args[0], ctx)
        want = dtypes.carrier(call.dtype)
        axis, n, finish = len(ctx.grid.blocks), count(ctx), arith.finisher(call.dtype)

        def fn(fr: Frame) -> Value:
            x = _warps(flatten(v.fn(fr), ctx, want), axis, start(want))
            return unflatten(_spread(finish(ufunc.reduce(x, axis=axis + 1)), axis, n), ctx)

        return _result(call.dtype, _axes(ctx, v), fn, v.loads)

    return make


def _active(fr: Frame, ctx: Context, like: Value) -> Value:
    if fr.mask is None:
        return np.True_
    return flatten(fr.mask, ctx, np.bool_)


def _vote(kind: str, masked: bool, block: bool = False) -> Callable[[Any, ir.Call, Context], Ex]:
    """A vote of a warp (or of the block) over its active threads."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        m = comp.expr(call.args[0], ctx) if masked else None
        args = call.args[1:] if masked else call.args
        p = comp.expr(args[0], ctx) if args else None
        want = dtypes.carrier(call.dtype)
        axis, n = len(ctx.grid.blocks), count(ctx)

        def fn(fr: Frame) -> Value:
            yes = (
                flatten(p.fn(fr), ctx, None) != 0
                if p is not None
                else np.ones((1,) * axis + (n,) + (1,) * (ctx.rank - axis - len(ctx.grid.threads)), np.bool_)
            )
            on = np.broadcast_to(_active(fr, ctx, yes), np.broadcast_shapes(yes.shape, np.shape(_active(fr, ctx, yes))))
            if m is not None:
                shape = [1] * yes.ndim
                shape[axis] = n
                named = (flatten(m.fn(fr), ctx, np.int64) >> (np.arange(n).reshape(shape) % WARP)) & 1
                on = on & (named != 0)
            yes, on = np.broadcast_arrays(yes, on)
            if block:
                out = _agree(kind, yes, on, axis)
                return (
                    np.broadcast_to(out.astype(want), (*out.shape[:axis], *(1,) * len(ctx.grid.threads), *out.shape[axis + 1 :]))
                    if not ctx.grid.threads
                    else unflatten(np.broadcast_to(out.astype(want), (*out.shape[:axis], n, *out.shape[axis + 1 :])), ctx)
                )
            y, o = _warps(yes, axis, False), _warps(on, axis, False)
            out = _agree(kind, y, o, axis + 1)
            return unflatten(_spread(out.squeeze(axis + 1).astype(want), axis, n), ctx)

        return _result(call.dtype, _axes(ctx, *([p] if p is not None else [])), fn, bool(p and p.loads))

    return make


def _agree(kind: str, yes: Value, on: Value, axis: int) -> Value:
    if kind == "any":
        return (yes & on).any(axis=axis, keepdims=True)
    if kind == "all":
        return (yes | ~on).all(axis=axis, keepdims=True)
    if kind == "count":
        return (yes & on).sum(axis=axis, keepdims=True)
    shape = [1] * yes.ndim
    shape[axis] = yes.shape[axis]
    bit = np.uint64(1) << np.arange(yes.shape[axis], dtype=np.uint64).reshape(shape)
    return np.where(yes & on, bit, np.uint64(0)).sum(axis=axis, keepdims=True, dtype=np.uint64)


def _match(kind: str) -> Callable[[Any, ir.Call, Context], Ex]:
    """``match_any``: which lanes hold my value; ``match_all``: all of them, or none."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        v = comp.expr(call.args[1], ctx)
        want = dtypes.carrier(call.dtype)
        axis, n = len(ctx.grid.blocks), count(ctx)

        def fn(fr: Frame) -> Value:
            x = flatten(v.fn(fr), ctx, None)
            on = np.broadcast_to(_active(fr, ctx, x), x.shape)
            x, o = _warps(x, axis, 0), _warps(on, axis, False)
            x, o = np.moveaxis(x, axis + 1, -1), np.moveaxis(o, axis + 1, -1)
            same = (x[..., :, None] == x[..., None, :]) & o[..., None, :]
            bits = (same * (np.uint64(1) << np.arange(WARP, dtype=np.uint64))).sum(axis=-1, dtype=np.uint64)
            if kind == "all":
                everyone = (o * (np.uint64(1) << np.arange(WARP, dtype=np.uint64))).sum(axis=-1, keepdims=True, dtype=np.uint64)
                bits = np.where((bits == everyone).all(axis=-1, keepdims=True), bits, np.uint64(0))
            bits = np.moveaxis(bits, -1, axis + 1)
            flat = bits.reshape((*bits.shape[:axis], -1, *bits.shape[axis + 2 :])).take(range(n), axis=axis)
            return unflatten(flat.astype(want), ctx)

        return _result(call.dtype, _axes(ctx, v), fn, v.loads)

    return make


def lowest(want: Any) -> Any:
    """What a maximum starts from."""
    return -np.inf if want.kind == "f" else np.iinfo(want).min


def highest(want: Any) -> Any:
    """What a minimum starts from."""
    return np.inf if want.kind == "f" else np.iinfo(want).max


CALLS = {
    "tl.get_lane_idx": _index(lambda t, n: t % n[0], [WARP]),
    "tl.get_warp_idx": _index(lambda t, n: t // n[0], [WARP]),
    "tl.get_warp_idx_sync": _index(lambda t, n: t // n[0], [WARP]),
    "tl.get_warp_group_idx": _index(lambda t, n: t // (n[0] * n[1]), [WARP, 4]),
    "tl.tl_shuffle_elect": _index(_elect, []),
    "tl.shfl_xor_sync": _shuffle("xor"),
    "tl.shfl_down_sync": _shuffle("down"),
    "tl.shfl_up_sync": _shuffle("up"),
    "tl.shfl_sync": _shuffle("idx"),
    "tirx.tvm_warp_shuffle": _shuffle("idx"),
    "tirx.tvm_warp_shuffle_up": _shuffle("up"),
    "tirx.tvm_warp_shuffle_down": _shuffle("down"),
    "tirx.tvm_warp_activemask": _vote("ballot", False),
    "tl.block_rank_in_cluster": _cluster_rank,
    "tl.warp_reduce_sum": _warp_reduce(np.add, lambda d: 0),
    "tl.warp_reduce_max": _warp_reduce(np.fmax, lowest),
    "tl.warp_reduce_min": _warp_reduce(np.fmin, highest),
    "tl.warp_reduce_bitand": _warp_reduce(np.bitwise_and, lambda d: -1 if d.kind == "i" else np.iinfo(d).max),
    "tl.warp_reduce_bitor": _warp_reduce(np.bitwise_or, lambda d: 0),
    "tl.any_sync": _vote("any", True),
    "tl.all_sync": _vote("all", True),
    "tl.ballot_sync": _vote("ballot", True),
    "tl.ballot": _vote("ballot", False),
    "tl.activemask": _vote("ballot", False),
    "tl.syncthreads_count": _vote("count", False, block=True),
    "tl.syncthreads_and": _vote("all", False, block=True),
    "tl.syncthreads_or": _vote("any", False, block=True),
    "tl.match_any_sync": _match("any"),
    "tl.match_all_sync": _match("all"),
}

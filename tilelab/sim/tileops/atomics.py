"""Atomics: on regions (tile operations) and on elements (done once by each lane that meets them)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import arg
from tilelab.sim import arith, checks, dtypes
from tilelab.sim.access import Access
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.memory import Buf
from tilelab.sim.tileops.space import Space

UPDATES: Mapping[str, Any] = {
    "add": np.add,
    "max": np.fmax,
    "min": np.fmin,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


def region(kind: str) -> Callable[[Any, ir.Tile, Context], Op]:
    """Return the compiler of ``T.atomic_<kind>`` on a region."""

    def compile_one(comp: Any, s: ir.Tile, ctx: Context) -> Op:
        from tilelab.sim.tileops.data import match

        src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
        what = f"T.atomic_{kind}"
        if isinstance(src, ir.Region):
            extents, at_src, at_dst = match(comp, src, dst, s, ctx)
            space = Space(comp, ctx, extents, what)
            read = space.access(src, tuple(None if a is None else space.vars[a] for a in at_src), "read")
            value = comp.loaded(read, src.buffer.dtype)
            write = space.access(dst, tuple(None if a is None else space.vars[a] for a in at_dst), "atomic")
        else:
            space = Space(comp, ctx, comp.exprs(dst.extents, ctx), what)
            value = comp.expr(src, space.ctx)
            write = space.access(dst, space.vars, "atomic")
        fn = comp.cast(value, dst.buffer.dtype, space.ctx).fn
        act = updater(write, kind, space.ctx)
        return Op(space.runs(lambda fr: act(fr, fn(fr), False)))

    return compile_one


def updater(acc: Access, kind: str, ctx: Context, *, wide: bool = False) -> Callable[[Frame, Value, bool], Value]:
    """Return the function that applies ``kind`` at ``acc`` once for each active lane, and gives what was there before.

    ``wide``: the sum is kept exact until it is read, as reducers do.
    """
    ufunc = UPDATES[kind]
    finish = arith.finisher(acc.buffer.dtype)
    narrow = arith.rounds(acc.buffer.dtype) and not wide
    order_matters = kind == "add" and dtypes.info(acc.buffer.dtype).kind == "f" and not wide
    counted = tuple(a for a in range(acc.rank) if ctx.each or a not in ctx.grid.thread_axes)

    def update(fr: Frame, value: Value, previous: bool) -> Value:
        buf: Buf = fr.mem[acc.slot]
        buf.written = buf.atomics = True
        fr.run.version += 1
        buf.poison_rest()
        box = acc.box(fr, buf.shape)
        if fr.run.checks:
            if buf.partition is not None:
                buf.partition.note(acc, fr, box, buf, "atomic")
            if buf.init is not True and buf.track:
                acc.check_init(fr, buf, box)
            if order_matters:
                _unordered(fr, acc, buf, value, [a for a in acc.free if a in counted and fr.size[a] > 1])
        full = [1] * acc.rank
        for a in counted:
            full[a] = fr.size[a]
        shape = tuple(full)
        index, valid = acc.positions(fr, buf)
        mask = fr.mask
        if valid is not None:
            acc.outside(fr, buf, valid, write=True)
            mask = valid if mask is None else mask & valid
        acc._ready(fr, buf, np.broadcast_to(np.zeros(()), shape) if acc.lanes else value, mask, box)
        index = acc.positions(fr, buf)[0] if acc.lanes else index
        if not previous and not narrow and box is not None:
            value, mask = _fold(fr, acc, value, mask, kind, ufunc, [a for a in acc.free if a in counted and fr.size[a] > 1], shape, buf)
            shape = tuple(1 if a in acc.free else n for a, n in enumerate(shape))
        if not previous and mask is None and box is not None and not narrow and acc._apart(fr, box):
            view = acc.of(fr, box, buf)
            ufunc(view, value, out=view)
            return None
        flat = _flat(index, buf)
        lanes = np.broadcast_to(flat, shape)
        values = np.broadcast_to(np.asarray(value, buf.np), shape)
        on = np.broadcast_to(mask, shape) if mask is not None else None
        at = lanes[on] if on is not None else lanes.reshape(-1)
        new = values[on] if on is not None else values.reshape(-1)
        array = buf.full()
        memory = array.reshape(-1)
        assert np.shares_memory(memory, array) or not memory.size
        before = _apply(memory, at, new, kind, ufunc, finish if narrow else None, previous)
        if not previous:
            return None
        out = np.zeros(shape, buf.np)
        if on is not None:
            out[on] = before
        else:
            out[...] = before.reshape(shape)
        return out

    return update


def _unordered(fr: Frame, acc: Access, buf: Buf, value: Value, axes: list[int]) -> None:
    """TL208: several lanes add floats to one element, in an order that changes from run to run."""
    grid = buf.partition.grid if buf.partition is not None else ()
    axes = sorted({*axes, *(a for a in acc.free if a < len(grid) and grid[a] > 1)})
    if not axes or (
        isinstance(value, np.ndarray) and value.ndim == acc.rank and all(value.shape[a] == 1 for a in axes) and axes[0] >= len(grid)
    ):
        return
    loc = acc.loc
    fr.run.findings.report(
        ("unordered", buf.name, loc and (loc.file, loc.line)), "TL208",
        f"several {'blocks' if axes[0] < len(grid) else 'lanes'} add floats to one element of {buf.name}: the order changes "
        "from run to run, and so does the rounding of the sum.",
        loc, fix="if results must repeat bit for bit, write partial sums and add them in a second kernel",
        evidence={"buffer": buf.name, "dtype": buf.dtype}, **checks.where(acc, fr, ()),
    )  # fmt: skip


def _fold(
    fr: Frame, acc: Access, value: Value, mask: Value, kind: str, ufunc: Any, axes: list[int], shape: tuple[int, ...], buf: Buf
) -> tuple[Value, Value]:
    """Combine the lanes that meet at one element along whole axes, so that each element is updated once."""
    if not axes:
        return value, mask
    value = np.asarray(value, buf.np)
    if value.ndim == 0:
        value = value.reshape((1,) * acc.rank)
    folded = tuple(axes)
    if mask is None and kind == "add" and all(value.shape[a] == 1 for a in axes):
        return value * buf.np.type(np.prod([shape[a] for a in axes])), None
    grown = [max(n, m) for n, m in zip(value.shape, mask.shape if mask is not None else value.shape, strict=True)]
    for a in axes:
        grown[a] = shape[a]
    value = np.broadcast_to(value, grown)
    if mask is not None:
        on = np.broadcast_to(mask, grown)
        value = np.where(on, value, neutral(kind, acc.buffer.dtype))
        mask = on.any(axis=folded, keepdims=True)
    for a in axes:
        value = ufunc.reduce(value, axis=a, keepdims=True)
    return value.astype(buf.np, copy=False), mask


def neutral(kind: str, dtype: str) -> Any:
    """What changes nothing when it is combined."""
    from tilelab.sim.tileops.reduce import start

    return start({"add": "sum", "and": "bitand", "or": "bitor", "xor": "bitxor"}.get(kind, kind), dtype)


def _flat(index: tuple[Value, ...], buf: Buf) -> Value:
    sizes = (*buf.lsize, *buf.shape)
    out: Value = 0
    for i, n in zip(index, sizes, strict=True):
        out = out * n + i
    return np.asarray(out)


def _apply(memory: Value, at: Value, new: Value, kind: str, ufunc: Any, finish: Any, previous: bool) -> Value:
    """Apply the updates in lane order."""
    if not previous and finish is None:
        if kind == "add" and at.size > 64 and memory.size <= 4 * at.size and memory.dtype.kind == "f":
            memory += np.bincount(at, weights=new, minlength=memory.size).astype(memory.dtype)
        else:
            ufunc.at(memory, at, new)
        return None
    order = np.argsort(at, kind="stable")
    sorted_at, sorted_new = at[order], new[order]
    starts = np.flatnonzero(np.r_[True, sorted_at[1:] != sorted_at[:-1]]) if at.size else np.zeros(0, np.intp)
    before = np.empty_like(sorted_new)
    ends = np.r_[starts[1:], at.size] if at.size else starts
    if starts.size == at.size:
        before[...] = memory[sorted_at]
        result = ufunc(before, sorted_new)
        memory[sorted_at] = finish(result) if finish else result
    else:
        for lo, hi in zip(starts, ends, strict=True):
            cell = sorted_at[lo]
            if finish is None:
                chain = ufunc.accumulate(np.r_[memory[cell], sorted_new[lo:hi]].astype(memory.dtype))
                before[lo:hi], memory[cell] = chain[:-1], chain[-1]
            else:
                for i in range(lo, hi):
                    before[i] = memory[cell]
                    memory[cell] = finish(ufunc(memory[cell], sorted_new[i]))
    out = np.empty_like(before)
    out[order] = before
    return out


def pointed(comp: Any, pointer: ir.Expr, ctx: Context, what: str, kind: str) -> Access:
    """The access of the element that ``T.access_ptr`` or an address points to."""
    if isinstance(pointer, ir.Call) and pointer.op in ("tl.access_ptr", "tirx.address_of") and isinstance(pointer.args[0], ir.Load):
        load = pointer.args[0]
        acc: Access = comp.access(load.buffer, comp.exprs(load.indices, ctx), ctx, what, kind)
        acc.atomic = kind.startswith("atomic")
        return acc
    raise Unsupported(f"{what} on an address that is not an element of a buffer", ctx.loc)


def element(kind: str, previous: bool) -> Callable[[Any, ir.Call, Context], Ex]:
    """Return the compiler of an atomic on one element."""

    def compile_one(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        acc = pointed(comp, call.args[0], ctx, f"T.atomic_{kind}", "atomic")
        value = comp.cast(comp.expr(call.args[1], ctx), acc.buffer.dtype, ctx)
        act, fn = updater(acc, kind, ctx), value.fn
        axes = frozenset(a for a in range(ctx.rank) if ctx.each or a not in ctx.grid.thread_axes)
        if not previous:
            return Ex(dtype="handle", fn=lambda fr: act(fr, fn(fr), False), axes=axes, loads=True)
        if not axes:
            dtype = call.dtype
            return Ex(dtype=dtype, fn=lambda fr: arith.as_scalar(dtype, act(fr, fn(fr), True).reshape(-1)[0]), loads=True)
        return Ex(dtype=call.dtype, fn=lambda fr: act(fr, fn(fr), True), axes=axes, loads=True)

    return compile_one


def atomic_load(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.atomic_load``."""
    acc = pointed(comp, call.args[0], ctx, "T.atomic_load", "atomic_load")
    ex: Ex = comp.loaded(acc, call.dtype)
    return Ex(dtype=ex.dtype, fn=ex.fn, axes=ex.axes, loads=True)


def atomic_store(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.atomic_store``."""
    acc = pointed(comp, call.args[0], ctx, "T.atomic_store", "atomic_store")
    fn = comp.cast(comp.expr(call.args[1], ctx), acc.buffer.dtype, ctx).fn
    return Ex(dtype="handle", fn=lambda fr: acc.write(fr, fn(fr)), axes=frozenset(range(ctx.rank)), loads=True)


TABLE = {f"atomic{k}": region(k) for k in ("add", "max", "min")}
CALLS = {
    **{f"tl.atomic_{k}_elem_op": element(k, False) for k in ("add", "max", "min", "or")},
    **{f"tl.atomic_{k}_ret_elem_op": element(k, True) for k in ("add", "max", "min")},
    "tl.atomic_load_elem_op": atomic_load,
    "tl.atomic_store_elem_op": atomic_store,
}

"""Vectors: values with one more axis, the last, for the lanes of a vector dtype; and what moves several elements at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import alignment, arith, dtypes, intrinsics
from tilelab.sim.access import Access
from tilelab.sim.context import Context
from tilelab.sim.expr import ExprCompiler, binary, const
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value
from tilelab.sim.stmt import StmtCompiler
from tilelab.sim.tileops.atomics import pointed, updater
from tilelab.sim.tileops.space import Space, pointee


def lanes(dtype: str) -> int:
    """How many lanes a dtype has."""
    return dtypes.parse(dtype)[1]


def lifted(ex: Ex, rank: int) -> Callable[[Frame], Value]:
    """The values of ``ex`` with the axis of vector lanes (size 1 for a scalar dtype)."""
    if lanes(ex.dtype) > 1:
        return ex.fn
    fn = ex.fn

    def lift(fr: Frame) -> Value:
        x = fn(fr)
        return x[..., None] if isinstance(x, np.ndarray) and x.ndim == rank else x

    return lift


def vector(dtype: str, parts: tuple[Ex, ...], fn: Callable[[Frame], Value], rank: int) -> Ex:
    """The expression of a vector; ``fn`` may give a scalar, which is repeated."""
    n, want = lanes(dtype), dtypes.carrier(dtype)
    axes = frozenset().union(*(p.axes for p in parts)) if parts else frozenset()

    def full(fr: Frame) -> Value:
        x = np.asarray(fn(fr))
        if x.dtype != want:
            x = x.astype(want)
        if x.ndim < rank + 1:
            x = x.reshape((1,) * (rank + 1 - x.ndim) + x.shape)
        return x if x.shape[-1] == n else np.repeat(x, n, axis=-1)

    return Ex(dtype=dtype, fn=full, axes=axes, loads=any(p.loads for p in parts))


# ---------------------------------------------------------------------------------------------------- expressions
def ramp(comp: ExprCompiler, e: ir.Ramp, ctx: Context) -> Ex:
    """``base, base + stride, …``."""
    base, stride = comp.expr(e.base, ctx), comp.expr(e.stride, ctx)
    fb, fs = lifted(base, ctx.rank), lifted(stride, ctx.rank)
    steps = np.arange(e.lanes, dtype=dtypes.carrier(e.dtype))
    return vector(e.dtype, (base, stride), lambda fr: fb(fr) + fs(fr) * steps, ctx.rank)


def broadcast(comp: ExprCompiler, e: ir.Broadcast, ctx: Context) -> Ex:
    """One value in all lanes."""
    value = comp.expr(e.value, ctx)
    return vector(e.dtype, (value,), lifted(value, ctx.rank), ctx.rank)


def shuffle(comp: ExprCompiler, e: ir.Shuffle, ctx: Context) -> Ex:
    """Chosen lanes of vectors laid end to end."""
    parts = comp.exprs(e.vectors, ctx)
    picks = comp.exprs(e.indices, ctx)
    if any(not isinstance(p.const, int) for p in picks):
        raise Unsupported("a lane chosen when it runs", ctx.loc)
    index = [int(p.const) for p in picks]
    fns = [vector(p.dtype, (p,), lifted(p, ctx.rank), ctx.rank).fn for p in parts]
    axes = frozenset().union(*(p.axes for p in parts))

    def fn(fr: Frame) -> Value:
        xs = [f(fr) for f in fns]
        shape = np.broadcast_shapes(*(x.shape[:-1] for x in xs))
        joined = np.concatenate([np.broadcast_to(x, (*shape, x.shape[-1])) for x in xs], axis=-1)
        return joined[..., index]

    if len(index) > 1:
        return Ex(dtype=e.dtype, fn=fn, axes=axes, loads=any(p.loads for p in parts))
    return scalar_result(e.dtype, axes, lambda fr: fn(fr)[..., 0], ctx, any(p.loads for p in parts))


def scalar_result(dtype: str, axes: frozenset[int], fn: Callable[[Frame], Value], ctx: Context, loads: bool = False) -> Ex:
    """An expression of a scalar dtype from a function that gives arrays."""
    if axes and ctx.rank:
        return Ex(dtype=dtype, fn=fn, axes=axes, loads=loads)
    return Ex(dtype=dtype, fn=lambda fr: arith.as_scalar(dtype, np.asarray(fn(fr)).reshape(-1)[0]), loads=loads)


def vector_bin(e: ir.Bin, a: Ex, b: Ex, ctx: Context) -> Ex:
    """Lane by lane."""
    fa, fb = lifted(a, ctx.rank), lifted(b, ctx.rank)
    kind = dtypes.info(a.dtype).kind
    table = arith.COMPARE if e.op in arith.COMPARE else arith.FLOAT if kind == "f" else arith.INT
    function = table.get(e.op) or {"and": np.logical_and, "or": np.logical_or}[e.op]
    finish = arith.finisher(e.dtype) if e.op not in arith.COMPARE else (lambda x: x)
    return vector(e.dtype, (a, b), lambda fr: finish(np.asarray(function(fa(fr), fb(fr)))), ctx.rank)


def vector_call(comp: ExprCompiler, e: ir.Call, ctx: Context) -> Ex:
    """A pure function lane by lane, or a reinterpretation that changes the number of lanes."""
    made = intrinsics.resolve(e)
    if made is None:
        raise Unsupported(f"{e.op} on vectors ({e.dtype})", ctx.loc)
    function, operands = made
    args = comp.exprs(operands, ctx)
    if e.op == "tirx.reinterpret":
        whole = vector(args[0].dtype, (args[0],), lifted(args[0], ctx.rank), ctx.rank).fn
        if lanes(e.dtype) == 1:
            return scalar_result(e.dtype, args[0].axes, lambda fr: function(whole(fr))[..., 0], ctx, args[0].loads)
        return vector(e.dtype, args, lambda fr: function(whole(fr)), ctx.rank)
    fns = [lifted(a, ctx.rank) for a in args]
    kinds = [dtypes.carrier(a.dtype) for a in args]
    finish = arith.finisher(e.dtype)
    return vector(
        e.dtype, args, lambda fr: finish(np.asarray(function(*(np.asarray(f(fr), k) for f, k in zip(fns, kinds, strict=True))))), ctx.rank
    )


# --------------------------------------------------------------------------------------------------------- memory
def run_of(comp: Any, ctx: Context, n: int, what: str) -> Space:
    """One more axis for ``n`` elements in a row, which each thread moves by itself."""
    return Space(comp, ctx, (const("int32", n),), what, tile=False)


def elements(comp: Any, space: Space, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], kind: str) -> Access:
    """The access of ``n`` elements that a vector index, or a run from ``indices`` on, names."""
    out = []
    n = len(indices)
    for d, e in enumerate(indices):
        if isinstance(e, ir.Ramp):
            base, stride = comp.expr(e.base, space.ctx), comp.expr(e.stride, space.ctx)
            out.append(binary("add", base.dtype, base, binary("mul", base.dtype, stride, space.vars[0], space.ctx.rank), space.ctx.rank))
        elif isinstance(e, ir.Broadcast):
            out.append(comp.expr(e.value, space.ctx))
        elif lanes(e.dtype) > 1:
            ex = comp.expr(e, space.outer)
            out.append(Ex(dtype=dtypes.parse(e.dtype)[0], fn=ex.fn, axes=ex.axes | {space.axes[0]}, loads=ex.loads))
        elif d == n - 1 and not any(isinstance(i, ir.Ramp) or lanes(i.dtype) > 1 for i in indices):
            ex = comp.expr(e, space.ctx)
            out.append(binary("add", ex.dtype, ex, space.vars[0], space.ctx.rank))
        else:
            out.append(comp.expr(e, space.ctx))
    acc: Access = comp.access(buffer, tuple(out), space.ctx, space.what, kind)
    return acc


def vector_load(comp: Any, e: ir.Load, ctx: Context) -> Ex:
    """Several elements as one vector."""
    if lanes(e.buffer.dtype) > 1:
        raise Unsupported(f"{e.buffer.name}, a buffer of vectors ({e.buffer.dtype})", ctx.loc)
    return reading(comp, e.buffer, e.indices, lanes(e.dtype), e.dtype, ctx, "")


def reading(comp: Any, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], n: int, dtype: str, ctx: Context, what: str) -> Ex:
    """``n`` elements from ``indices`` on, as a vector."""
    space = run_of(comp, ctx, n, what)
    acc = elements(comp, space, buffer, indices, "read")
    box: list[Value] = []
    go = space.runs(lambda fr: box.append(acc.read(fr)))
    aligned = alignment.watch(comp, buffer, indices, n, ctx, what) if what else None

    def fn(fr: Frame) -> Value:
        if aligned is not None and fr.run.checks:
            aligned(fr)
        go(fr)
        return box.pop().copy()

    return Ex(dtype=dtype, fn=fn, axes=frozenset(a for a in acc.axes if a < ctx.rank), loads=True)


def writing(comp: Any, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], value: Ex, ctx: Context, what: str) -> Op:
    """A vector to the elements from ``indices`` on."""
    space = run_of(comp, ctx, lanes(value.dtype), what)
    acc = elements(comp, space, buffer, indices, "write")
    fn = value.fn
    box: list[Value] = []
    go = space.runs(lambda fr: acc.write(fr, box.pop()))
    aligned = alignment.watch(comp, buffer, indices, lanes(value.dtype), ctx, what) if what else None

    def run(fr: Frame) -> None:
        if aligned is not None and fr.run.checks:
            aligned(fr)
        box.append(fn(fr))
        go(fr)

    return Op(run)


def loader(width: int) -> Callable[[Any, ir.Call, Context], Ex]:
    """``T.ldg32`` … ``T.lds128``: ``width`` bits from an address, as words; where a predicate fails, zeros."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        load = pointee(comp, call.args[0], ctx)
        base = dtypes.parse(load.buffer.dtype)[0]
        n = width // dtypes.info(base).bits
        ex = reading(comp, load.buffer, load.indices, n, f"{base}x{n}" if n > 1 else base, ctx, call.op.removeprefix("tl."))
        pred = comp.expr(call.args[1], ctx) if len(call.args) > 1 else None

        def words(fr: Frame) -> Value:
            p = pred.fn(fr) if pred is not None else True
            old = fr.mask
            if isinstance(p, np.ndarray):
                fr.mask = p if old is None else old & p
            x = ex.fn(fr)
            fr.mask = old
            out = dtypes.reinterpret(x, base, "uint32")
            return out if p is True else np.where(p[..., None] if isinstance(p, np.ndarray) else p, out, np.uint32(0))

        if width > 32:
            return Ex(dtype=call.dtype, fn=words, axes=ex.axes, loads=True)
        return scalar_result(call.dtype, ex.axes, lambda fr: words(fr)[..., 0], ctx, True)

    return make


def storer(width: int) -> Callable[[Any, ir.Call, Context], Op]:
    """``T.stg32`` … ``T.sts128``."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Op:
        load = pointee(comp, call.args[0], ctx)
        base = dtypes.parse(load.buffer.dtype)[0]
        n = width // dtypes.info(base).bits
        words = comp.expr(call.args[1], ctx)
        whole = vector(words.dtype, (words,), lifted(words, ctx.rank), ctx.rank).fn
        source = dtypes.parse(words.dtype)[0]
        value = Ex(
            dtype=f"{base}x{n}" if n > 1 else base,
            fn=lambda fr: dtypes.reinterpret(whole(fr), source, base),
            axes=words.axes,
            loads=words.loads,
        )
        op = writing(comp, load.buffer, load.indices, value, ctx, call.op.removeprefix("tl."))
        if len(call.args) > 2:
            return comp._guarded(comp.expr(call.args[2], ctx), op.run)  # type: ignore[no-any-return]
        return op

    return make


def cached_load(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.__ldg``: a read."""
    what = call.args[0]
    ex: Ex = comp.expr(what if isinstance(what, ir.Load) else pointee(comp, what, ctx), ctx)
    return ex


def half(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.vectorlow``, ``T.vectorhigh`` and ``T.vectorcombine``: halves of vectors, and two of them end to end."""
    parts = comp.exprs(call.args, ctx)
    n = sum(lanes(p.dtype) for p in parts)
    want = lanes(call.dtype)
    first = n - want if call.op == "tirx.vectorhigh" else 0
    picks = tuple(ir.Const(dtype="int32", value=first + i) for i in range(want))
    ex: Ex = shuffle(comp, ir.Shuffle(dtype=call.dtype, vectors=call.args, indices=picks), ctx)
    return ex


def vector_atomic(n: int, previous: bool) -> Callable[[Any, ir.Call, Context], Ex]:
    """``T.atomic_addx2`` and ``x4``: one addition for each of ``n`` elements."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        dst, src = pointee(comp, call.args[0], ctx), pointee(comp, call.args[1], ctx)
        space = run_of(comp, ctx, n, f"T.atomic_addx{n}")
        space.ctx = _each(space.ctx, ctx)
        to = elements(comp, space, dst.buffer, dst.indices, "atomic")
        read = elements(comp, space, src.buffer, src.indices, "read")
        value = comp.cast(comp.loaded(read, src.buffer.dtype), dst.buffer.dtype, space.ctx)
        act = updater(to, "add", space.ctx)
        box: list[Value] = []
        go = space.runs(lambda fr: box.append(act(fr, value.fn(fr), previous)))
        aligned = alignment.watch(comp, dst.buffer, dst.indices, n, ctx, space.what)

        def fn(fr: Frame) -> Value:
            if aligned is not None and fr.run.checks:
                aligned(fr)
            go(fr)
            return box.pop()

        return Ex(dtype=call.dtype, fn=fn, axes=frozenset(range(ctx.rank)), loads=True)

    return make


def _each(inner: Context, outer: Context) -> Context:
    return replace(inner, each=outer.each)


def quantifier(every: bool) -> Callable[[Any, ir.Call, Context], Ex]:
    """``T.any_of`` and ``T.all_of`` over a buffer or a run of its last dimension."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        load = pointee(comp, call.args[0], ctx)
        n = comp.expr(call.args[1], ctx).const
        shape = [comp.expr(e, ctx).const for e in load.buffer.shape]
        whole = n == int(np.prod(shape)) and all(isinstance(i, ir.Const) and i.value == 0 for i in load.indices)
        counts = shape if whole else [*(1,) * (len(shape) - 1), n]
        space = Space(comp, ctx, tuple(const("int32", c) for c in counts), "T.all_of" if every else "T.any_of", tile=False)
        at = tuple(
            binary("add", i.dtype, comp.expr(i, space.ctx), v, space.ctx.rank) for i, v in zip(load.indices, space.vars, strict=True)
        )
        acc = comp.access(load.buffer, at, space.ctx, space.what, "read")
        box: list[Value] = []
        go = space.runs(lambda fr: box.append(acc.read(fr)))
        axes = space.axes

        def fn(fr: Frame) -> Value:
            go(fr)
            x = box.pop() != 0
            return x.all(axis=axes) if every else x.any(axis=axes)

        return scalar_result("bool", frozenset(a for a in acc.axes if a < ctx.rank), fn, ctx, True)

    return make


def cp_async(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.ptx_cp_async``: some elements from one address to another (zeros where a predicate fails); they land at once."""
    dst, src = pointee(comp, call.args[0], ctx), pointee(comp, call.args[1], ctx)
    n = comp.expr(call.args[2], ctx).const
    if not isinstance(n, int):
        raise Unsupported("T.ptx_cp_async of a size known only when it runs", ctx.loc)
    base = dtypes.parse(dst.buffer.dtype)[0]
    value = reading(comp, src.buffer, src.indices, n, f"{base}x{n}" if n > 1 else base, ctx, "T.ptx_cp_async")
    if len(call.args) > 3:
        pred, fn = comp.expr(call.args[3], ctx).fn, value.fn

        def kept(fr: Frame) -> Value:
            p, x = pred(fr), fn(fr)
            return np.where(p[..., None] if isinstance(p, np.ndarray) else p, x, x.dtype.type(0))

        value = replace(value, fn=kept)
    return writing(comp, dst.buffer, dst.indices, value, ctx, "T.ptx_cp_async")


def dp4a(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """Four products of int8, added to an int32."""
    a, b, c = (pointee(comp, x, ctx) for x in call.args[1:4])
    x = reading(comp, a.buffer, a.indices, 4, "int8x4", ctx, "T.dp4a")
    y = reading(comp, b.buffer, b.indices, 4, "int8x4", ctx, "T.dp4a")
    old = comp.expr(c, ctx)
    to = pointed(comp, call.args[3], ctx, "T.dp4a", "write")
    return Op(lambda fr: to.write(fr, (old.fn(fr) + (x.fn(fr).astype(np.int32) * y.fn(fr)).sum(axis=-1, dtype=np.int32)).astype(np.int32)))


class VectorCompiler(StmtCompiler):
    """A compiler that knows vectors."""

    def vector_bin(self, e: ir.Bin, a: Ex, b: Ex, ctx: Context) -> Ex:
        """Arithmetic lane by lane."""
        return vector_bin(e, a, b, ctx)

    def vector_call(self, e: ir.Call, ctx: Context) -> Ex:
        """A call with vectors among its operands."""
        return vector_call(self, e, ctx)

    def vector_load(self, e: ir.Load, ctx: Context) -> Ex:
        """Several elements as one vector."""
        return vector_load(self, e, ctx)

    def vector_store(self, s: ir.Store, value: Ex, ctx: Context) -> Op:
        """A vector into several elements."""
        return writing(self, s.buffer, s.indices, value, ctx, "")


EXPRESSIONS: dict[type, Callable[[Any, Any, Context], Ex]] = {ir.Ramp: ramp, ir.Broadcast: broadcast, ir.Shuffle: shuffle}
CALLS = {
    **{f"tl.ldg{bits}": loader(bits) for bits in (32, 64, 128, 256)},
    **{f"tl.lds{bits}": loader(bits) for bits in (32, 64, 128)},
    **{f"tl.atomic_addx{n}_elem_op": vector_atomic(n, False) for n in (2, 4)},
    **{f"tl.atomic_addx{n}_ret_elem_op": vector_atomic(n, True) for n in (2, 4)},
    **dict.fromkeys(("tirx.vectorlow", "tirx.vectorhigh", "tirx.vectorcombine"), half),
    "tl.__ldg": cached_load, "tl.any_of": quantifier(False), "tl.all_of": quantifier(True),
}  # fmt: skip
EFFECTS = {
    **{f"tl.stg{bits}": storer(bits) for bits in (32, 64, 128, 256)},
    **{f"tl.sts{bits}": storer(bits) for bits in (32, 64, 128)},
    "DP4A": dp4a, "tl.ptx_cp_async": cp_async,
}  # fmt: skip

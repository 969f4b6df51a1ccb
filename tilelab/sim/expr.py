"""Expressions → closures, with their affine forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tilelab import ir
from tilelab.sim import arith, dtypes, intrinsics, numbers
from tilelab.sim.access import Access
from tilelab.sim.context import Context
from tilelab.sim.lanes import (
    Aff,
    Ex,
    Frame,
    Unsupported,
    Value,
    aff_add,
    aff_divide,
    aff_range,
    aff_scale,
    aff_values,
    both,
    expand,
)  # fmt: skip
from tilelab.sim.refused import told


def const(dtype: str, value: Any) -> Ex:
    """A constant."""
    v = arith.scalar(dtype, value)
    is_int = isinstance(v, int) and not isinstance(v, bool)
    return Ex(dtype=dtype, fn=lambda fr: v, aff=Aff(v) if is_int else None, const=v, key=("c", dtype, value))


class ExprCompiler:
    """Compiles expressions. Subclasses hold the scope of variables and buffers."""

    #: Operation → compiler of a call that is more than a function of its operands (atomics, shuffles, …).
    calls: ClassVar[Mapping[str, Callable[[Any, ir.Call, Context], Ex]]] = {}
    #: Node → compiler of an expression that only some programs have.
    more: ClassVar[Mapping[type, Callable[[Any, Any, Context], Ex]]] = {}
    scope: dict[ir.Var, tuple[Ex, int]]  # variable → its expression, and the rank where it was made

    def access(self, buffer: ir.Buffer, indices: tuple[Ex, ...], ctx: Context, what: str = "", kind: str = "read") -> Access:
        """Make an access (the statement compiler knows the slots)."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------- dispatch
    def expr(self, e: ir.Expr, ctx: Context) -> Ex:
        """Compile one expression.

        Raises:
            Unsupported: It holds something that is not simulated yet.
        """
        method = _METHODS.get(type(e)) or self.more.get(type(e))
        if method is None:
            raise Unsupported(f"the expression {type(e).__name__}", ctx.loc)
        return method(self, e, ctx)

    def exprs(self, items: tuple[ir.Expr, ...], ctx: Context) -> tuple[Ex, ...]:
        """Compile each of ``items``."""
        return tuple(self.expr(i, ctx) for i in items)

    def _const(self, e: ir.Const, ctx: Context) -> Ex:
        return const(e.dtype, e.value)

    def _str(self, e: ir.Str, ctx: Context) -> Ex:
        return Ex(dtype="handle", fn=lambda fr: e.value, const=e.value, key=("s", e.value))

    def _var(self, e: ir.Var, ctx: Context) -> Ex:
        if e not in self.scope:
            raise Unsupported(f"the variable {e.name}, which has no value here", ctx.loc)
        ex, rank = self.scope[e]
        if not ctx.each and ex.aff is None and ex.axes & set(ctx.grid.thread_axes):
            inner, name = ex.fn, e.name
            ex = replace(ex, fn=lambda fr: ctx.agreed(fr, inner(fr), name), axes=ex.axes - set(ctx.grid.thread_axes), source=None)
            if not ex.axes:
                held = ex.fn
                return replace(ex, fn=lambda fr: arith.as_scalar(e.dtype, np.asarray(held(fr)).reshape(-1)[0]))
        if not ex.axes or rank == ctx.rank:
            return ex
        want = ctx.rank
        if ex.aff is not None:
            return replace(ex, fn=affine_fn(ex.aff, want, ex.dtype))
        fn = ex.fn
        return replace(ex, fn=lambda fr: expand(fn(fr), rank, want))

    def _bin(self, e: ir.Bin, ctx: Context) -> Ex:
        if e.op in ("and", "or"):
            return self._logic(e, ctx)
        a, b = self.expr(e.a, ctx), self.expr(e.b, ctx)
        if dtypes.parse(e.a.dtype)[1] > 1 or dtypes.parse(e.b.dtype)[1] > 1:
            return self.vector_bin(e, a, b, ctx)
        return binary(e.op, e.dtype, a, b, ctx.rank, ctx)

    def vector_bin(self, e: ir.Bin, a: Ex, b: Ex, ctx: Context) -> Ex:
        """Arithmetic on vectors."""
        raise Unsupported(f"arithmetic on vectors ({e.dtype})", ctx.loc)

    def _logic(self, e: ir.Bin, ctx: Context) -> Ex:
        a, b = self.expr(e.a, ctx), self.expr(e.b, ctx)
        fa, fb, lazy, conj = a.fn, b.fn, b.loads, e.op == "and"

        def fn(fr: Frame) -> Value:
            x = fa(fr)
            if not isinstance(x, np.ndarray):
                return fb(fr) if bool(x) == conj else bool(x)
            if lazy:
                old = fr.mask
                fr.mask = both(old, x if conj else ~x)
                try:
                    y = fb(fr)
                finally:
                    fr.mask = old
            else:
                y = fb(fr)
            if not isinstance(y, np.ndarray):
                return x if bool(y) == conj else bool(y)
            return x & y if conj else x | y

        return Ex(dtype="bool", fn=fn, axes=a.axes | b.axes, loads=a.loads or b.loads, key=_key(e.op, a, b))

    def _not(self, e: ir.Not, ctx: Context) -> Ex:
        a = self.expr(e.a, ctx)
        fa = a.fn

        def fn(fr: Frame) -> Value:
            x = fa(fr)
            return ~x if isinstance(x, np.ndarray) else not x

        return Ex(dtype="bool", fn=fn, axes=a.axes, loads=a.loads, key=_key("not", a))

    def _cast(self, e: ir.Cast, ctx: Context) -> Ex:
        return self.cast(self.expr(e.a, ctx), e.dtype, ctx)

    def cast(self, a: Ex, dtype: str, ctx: Context) -> Ex:
        """``a`` converted to ``dtype``."""
        src, dst = dtypes.parse(a.dtype)[0], dtypes.parse(dtype)[0]
        if a.const is not None and not isinstance(a.const, str) and dtypes.parse(dtype)[1] == 1:
            return const(dtype, a.const)
        if src == dst:
            return replace(a, dtype=dtype)
        fa = a.fn
        both_int = dtypes.info(src).kind in "iu" and dtypes.info(dst).kind in "iu"
        aff = a.aff if both_int and dtypes.info(dst).bits >= 32 else None
        watch = _overflow_watch(src, dst, ctx) if dtypes.parse(dtype)[1] == 1 else None

        def fn(fr: Frame) -> Value:
            x = fa(fr)
            if watch is not None and fr.run.checks:
                watch(fr, x)
            if isinstance(x, np.ndarray):
                return dtypes.cast(x, src, dst)
            return arith.as_scalar(dst, dtypes.cast(np.asarray([x], dtypes.carrier(src)), src, dst)[0])

        if dtypes.parse(dtype)[1] > 1:
            return Ex(dtype=dtype, fn=lambda fr: dtypes.cast(fa(fr), src, dst), axes=a.axes, loads=a.loads)
        if both_int and not a.axes:
            wrap = arith.wrapper(dst)
            return Ex(dtype=dtype, fn=lambda fr: wrap(int(fa(fr))), aff=aff, loads=a.loads, key=_key(("cast", dst), a))
        return Ex(dtype=dtype, fn=fn, axes=a.axes, aff=aff, loads=a.loads, key=_key(("cast", dst), a))

    def _select(self, e: ir.Select, ctx: Context) -> Ex:
        return self.choose(e.dtype, e.cond, e.a, e.b, ctx)

    def choose(self, dtype: str, cond: ir.Expr, yes: ir.Expr, no: ir.Expr, ctx: Context) -> Ex:
        """``yes`` where ``cond`` else ``no``; each is evaluated under its part of the mask."""
        c, a, b = self.expr(cond, ctx), self.expr(yes, ctx), self.expr(no, ctx)
        if dtypes.parse(dtype)[1] > 1:
            return self.vector_choose(dtype, c, a, b, ctx)
        fc, fa, fb, lazy = c.fn, a.fn, b.fn, a.loads or b.loads
        finish = arith.finisher(dtype) if not arith.rounds(dtype) else (lambda x: x)
        want = dtypes.carrier(dtype)

        def fn(fr: Frame) -> Value:
            x: Any = fc(fr)
            if not isinstance(x, np.ndarray):
                return fa(fr) if x else fb(fr)
            if x.all():
                return fa(fr)
            if not lazy:
                return finish(np.where(x, fa(fr), fb(fr)))
            old = fr.mask
            try:
                fr.mask = both(old, x)
                y = fa(fr)
                fr.mask = both(old, ~x)
                z = fb(fr)
            finally:
                fr.mask = old
            out: Any = np.where(x, y, z)
            return out if out.dtype == want else out.astype(want)

        axes = c.axes | a.axes | b.axes
        return Ex(dtype=dtype, fn=fn, axes=axes, loads=c.loads or lazy, key=_key("?", c, a, b))

    def vector_choose(self, dtype: str, c: Ex, a: Ex, b: Ex, ctx: Context) -> Ex:
        """A choice between vectors, lane by lane or as a whole."""
        wide = dtypes.parse(c.dtype)[1] > 1
        fc, fa, fb, rank = c.fn, a.fn, b.fn, ctx.rank

        def fn(fr: Frame) -> Value:
            x = fc(fr)
            if not isinstance(x, np.ndarray):
                return fa(fr) if x else fb(fr)
            return np.where(x if wide or x.ndim > rank else x[..., None], fa(fr), fb(fr))

        return Ex(dtype=dtype, fn=fn, axes=c.axes | a.axes | b.axes, loads=c.loads or a.loads or b.loads)

    def _load(self, e: ir.Load, ctx: Context) -> Ex:
        if dtypes.parse(e.dtype)[1] != dtypes.parse(e.buffer.dtype)[1] or any(dtypes.parse(i.dtype)[1] > 1 for i in e.indices):
            return self.vector_load(e, ctx)
        acc = self.access(e.buffer, self.exprs(e.indices, ctx), ctx)
        return self.loaded(acc, e.dtype)

    def vector_load(self, e: ir.Load, ctx: Context) -> Ex:
        """Several elements as one vector."""
        raise Unsupported(f"a vector read ({e.dtype})", ctx.loc)

    def loaded(self, acc: Access, dtype: str) -> Ex:
        """The expression of a read."""
        if acc.rank and acc.axes:
            return Ex(dtype=dtype, fn=acc.read, axes=acc.axes, loads=True, source=acc)
        read = acc.read

        def fn(fr: Frame) -> Value:
            x = read(fr)
            return arith.as_scalar(dtype, x.reshape(-1)[0] if isinstance(x, np.ndarray) else x)

        return Ex(dtype=dtype, fn=fn, loads=True)

    def _let(self, e: ir.LetExpr, ctx: Context) -> Ex:
        value = self.expr(e.value, ctx)
        self.scope[e.var] = (value, ctx.rank)
        return self.expr(e.body, ctx)

    def _call(self, e: ir.Call, ctx: Context) -> Ex:
        if e.op in self.calls:
            return self.calls[e.op](self, e, ctx)
        if e.op == "tirx.if_then_else":
            return self.choose(e.dtype, e.args[0], e.args[1], e.args[2], ctx)
        if dtypes.parse(e.dtype)[1] > 1 or any(not isinstance(a, ir.Str) and dtypes.parse(a.dtype)[1] > 1 for a in e.args):
            return self.vector_call(e, ctx)
        made = intrinsics.resolve(e)
        if made is None:
            name = e.op
            if name in ("tirx.call_extern", "tirx.call_pure_extern") and e.args and isinstance(e.args[0], ir.Str):
                name = f"the device function {e.args[0].value}"
            raise Unsupported(told(name), ctx.loc)
        return self.pure(e, made[0], self.exprs(made[1], ctx))

    def vector_call(self, e: ir.Call, ctx: Context) -> Ex:
        """A call with vectors among its operands."""
        raise Unsupported(f"{e.op} on vectors ({e.dtype})", ctx.loc)

    def pure(self, e: ir.Call, function: Callable[..., Any], args: tuple[Ex, ...]) -> Ex:
        """A function of its operands."""
        fns = tuple(a.fn for a in args)
        kinds = tuple(dtypes.carrier(a.dtype) for a in args)
        finish = arith.finisher(e.dtype)
        axes = frozenset().union(*(a.axes for a in args))
        loads = any(a.loads for a in args)

        def operand(fr: Frame, i: int) -> Value:
            x = fns[i](fr)
            return x if isinstance(x, np.ndarray | np.generic) else kinds[i].type(x)

        many = range(len(fns))
        if not axes:
            dtype = e.dtype

            def single(fr: Frame) -> Value:
                out = function(*(np.asarray(operand(fr, i)).reshape(1) for i in many))
                return arith.as_scalar(dtype, finish(np.asarray(out).reshape(-1)[0]))

            return Ex(dtype=dtype, fn=single, loads=loads, key=_key(e.op, *args))
        return Ex(
            dtype=e.dtype, fn=lambda fr: finish(function(*(operand(fr, i) for i in many))), axes=axes, loads=loads, key=_key(e.op, *args)
        )


_METHODS: dict[type, Callable[[Any, Any, Context], Ex]] = {
    ir.Const: ExprCompiler._const, ir.Str: ExprCompiler._str, ir.Var: ExprCompiler._var,
    ir.Bin: ExprCompiler._bin, ir.Not: ExprCompiler._not, ir.Cast: ExprCompiler._cast, ir.Select: ExprCompiler._select,
    ir.Load: ExprCompiler._load, ir.LetExpr: ExprCompiler._let,
    ir.Call: ExprCompiler._call,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------ operators
def _key(op: Any, *parts: Ex) -> Any:
    keys = tuple(p.key for p in parts)
    return None if any(k is None for k in keys) else (op, *keys)


def affine_fn(aff: Aff, rank: int, dtype: str, ctx: Context | None = None) -> Callable[[Frame], Value]:
    """A closure that gives the values of an affine form over the lanes of ``rank``; wrapping is told where ``ctx`` is given."""
    want = dtypes.carrier(dtype)
    short = want.itemsize == 4 and want.kind == "i" and ctx is not None

    def fn(fr: Frame) -> Value:
        x = aff_values(aff, fr, rank)
        if short and fr.run.checks:
            lo, hi = aff_range(aff, fr)
            if hi > numbers.INT32 or lo < -numbers.INT32 - 1:
                wide = hi if hi > numbers.INT32 else lo
                numbers.wraps(fr, ctx, wide, (wide + numbers.INT32 + 1) % (1 << 32) - numbers.INT32 - 1)
        return x.astype(want) if isinstance(x, np.ndarray) and x.dtype != want else x

    return fn


def binary(op: str, dtype: str, a: Ex, b: Ex, rank: int, ctx: Context | None = None) -> Ex:
    """``a op b`` on scalars or lanes (no vectors). ``ctx``: where to report an int32 result that wraps."""
    kind = dtypes.info(a.dtype).kind
    axes = a.axes | b.axes
    loads = a.loads or b.loads
    key = _key(op, a, b)
    fa, fb = a.fn, b.fn
    if op in arith.COMPARE:
        return _comparison(op, a, b, axes, loads, key, rank)
    if kind in "iuhb":
        if a.const is not None and b.const is not None and not (op in numbers.DIVISIONS and b.const == 0):
            return replace(const(dtype, arith.SCALAR[op](a.const, b.const)), key=key)
        if op in numbers.DIVISIONS and ctx is not None and not b.const:
            fb, loads = _nonzero(fb, ctx), True  # not to be done by lanes that do not choose it
        aff = _affine(op, a, b)
        if not axes:
            f, wrap = arith.SCALAR[op], arith.wrapper(dtype) if kind != "b" else int
            signed = kind == "i"

            def single(fr: Frame) -> Value:
                x = f(fa(fr), fb(fr))
                y = wrap(x)
                if x != y and signed:
                    numbers.wraps(fr, ctx, x, y)
                return y

            return Ex(dtype=dtype, fn=single, aff=aff or Aff(lambda fr: f(fa(fr), fb(fr))), loads=loads, key=key)
        if aff is not None:
            return Ex(dtype=dtype, fn=affine_fn(aff, rank, dtype, ctx), axes=axes, aff=aff, loads=loads, key=key)
        uf = arith.INT[op]
        want = dtypes.carrier(dtype)

        watched = op == "mul" and kind == "i" and want.itemsize == 4

        def integers(fr: Frame) -> Value:
            y, z = fa(fr), fb(fr)
            x = uf(y, z)
            if watched and fr.run.checks and numbers.largest_product(y, z) > numbers.INT32:
                exact = np.multiply(y, z, dtype=np.int64)
                off = np.abs(exact) > numbers.INT32
                if both(off, fr.mask).any():
                    at = int(np.argmax(off))
                    numbers.wraps(fr, ctx, int(exact.reshape(-1)[at]), int(np.asarray(x).reshape(-1)[at]))
            return x if x.dtype == want else x.astype(want)

        return Ex(dtype=dtype, fn=integers, axes=axes, loads=loads, key=key)
    uf = arith.FLOAT[op]
    raw: Callable[[Frame], Value] = lambda fr: uf(fa(fr), fb(fr))  # noqa: E731
    if isinstance(uf, np.ufunc) and (a.fresh or b.fresh):
        raw = _in_place(uf, a, b, dtypes.carrier(dtype))
    if arith.rounds(dtype):
        finish = arith.finisher(dtype)

        def rounded(fr: Frame) -> Value:
            x = raw(fr)
            mine = isinstance(x, np.ndarray) and x.ndim and x.dtype == np.float32 and x.flags.c_contiguous
            return dtypes.round_to(x, dtype, out=x) if mine else finish(x)

        return Ex(dtype=dtype, fn=rounded, axes=axes, loads=loads, key=key, fresh=True)
    return Ex(dtype=dtype, fn=raw, axes=axes, loads=loads, key=key, fresh=True)


def _in_place(uf: Any, a: Ex, b: Ex, want: Any) -> Callable[[Frame], Value]:
    """``uf`` of two operands, into the array of one that nobody else has, where it is large enough."""
    fa, fb = a.fn, b.fn
    mine = tuple(i for i, e in enumerate((a, b)) if e.fresh)

    def fn(fr: Frame) -> Value:
        operands = (fa(fr), fb(fr))
        for i in mine:
            x, other = operands[i], operands[1 - i]
            if isinstance(x, np.ndarray) and x.dtype == want and (not isinstance(other, np.ndarray) or other.shape == x.shape):
                return uf(*operands, out=x)
        return uf(*operands)

    return fn


def _nonzero(divisor: Callable[[Frame], Value], ctx: Context) -> Callable[[Frame], Value]:
    def fn(fr: Frame) -> Value:
        x = divisor(fr)
        if fr.run.checks:
            numbers.zero_divisor(fr, ctx, x)
        return x

    return fn


def _affine(op: str, a: Ex, b: Ex) -> Aff | None:
    if a.aff is None or b.aff is None:
        return None
    if op == "add":
        return aff_add(a.aff, b.aff)
    if op == "sub":
        return aff_add(a.aff, b.aff, -1)
    if op == "mul":
        if not b.axes:
            return aff_scale(a.aff, b.aff.base)
        if not a.axes:
            return aff_scale(b.aff, a.aff.base)
    if op in ("floordiv", "div") and isinstance(b.const, int) and a.axes:
        return aff_divide(a.aff, b.const)
    return None


def _comparison(op: str, a: Ex, b: Ex, axes: frozenset[int], loads: bool, key: Any, rank: int) -> Ex:
    fa, fb = a.fn, b.fn
    if not axes:
        f = arith.SCALAR[op]
        return Ex(dtype="bool", fn=lambda fr: bool(f(fa(fr), fb(fr))), loads=loads, key=key)
    uf = arith.COMPARE[op]
    if a.aff is None or b.aff is None:
        return Ex(dtype="bool", fn=lambda fr: _mask_of(uf(fa(fr), fb(fr))), axes=axes, loads=loads, key=key)
    difference = aff_add(a.aff, b.aff, -1)
    decide = _DECIDE[op]

    narrow = dtypes.info(a.dtype).bits <= 32

    def fn(fr: Frame) -> Value:
        lo, hi = aff_range(difference, fr)
        if narrow and (hi > numbers.INT32 or lo < -numbers.INT32 - 1):
            return _mask_of(uf(fa(fr), fb(fr)))  # one side may wrap: what the device compares
        known = decide(lo, hi)
        return known if known is not None else uf(aff_values(difference, fr, rank), 0)

    return Ex(dtype="bool", fn=fn, axes=axes, loads=loads, key=key)


def _mask_of(x: Value) -> Value:
    return x if isinstance(x, np.ndarray) else bool(x)


def _lt(lo: int, hi: int) -> bool | None:
    return True if hi < 0 else False if lo >= 0 else None


def _le(lo: int, hi: int) -> bool | None:
    return True if hi <= 0 else False if lo > 0 else None


def _eq(lo: int, hi: int) -> bool | None:
    return True if lo == hi == 0 else False if lo > 0 or hi < 0 else None


def _negate(x: bool | None) -> bool | None:
    return None if x is None else not x


#: Operator → what the range of ``a − b`` decides about ``a op b``.
_DECIDE: dict[str, Callable[[int, int], bool | None]] = {
    "lt": _lt, "le": _le, "eq": _eq, "gt": lambda lo, hi: _negate(_le(lo, hi)), "ge": lambda lo, hi: _negate(_lt(lo, hi)),
    "ne": lambda lo, hi: _negate(_eq(lo, hi)),
}  # fmt: skip


def _overflow_watch(src: str, dst: str, ctx: Context) -> Callable[[Frame, Value], None] | None:
    """The check of a narrowing conversion (TL302); None where nothing can overflow."""
    s, d = dtypes.info(src), dtypes.info(dst)
    if d.kind == "b" or s.kind in "bh" or d.kind == "h":
        return None
    if s.kind in "iu" and d.kind in "iu":
        return None  # integers wrap on purpose
    if s.kind == "f" and d.kind == "f" and (d.bits >= s.bits or dst in ("float32", "float64", "bfloat16")):
        return None
    if s.kind in "iu" and d.bits >= 32:
        return None
    return numbers.overflow_watch(src, dst, ctx)

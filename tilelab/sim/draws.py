"""Random numbers in kernels: each thread has its own generator."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import arith, dtypes, random
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value


def init(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.rng_init``: the states of all threads of all blocks."""
    seed, sequence, offset = (comp.expr(a, ctx).fn for a in call.args[:3])
    name = call.args[3].value if isinstance(call.args[3], ir.Str) else ""
    comp.rng = (comp.slot(), ctx.rank)
    slot = comp.rng[0]

    def run(fr: Frame) -> None:
        shape = tuple(fr.size[: ctx.rank])
        given = (np.broadcast_to(np.asarray(f(fr)), shape) for f in (seed, sequence, offset))
        fr.v[slot] = random.rng_init(name, *given)

    return Op(run)


def _state(comp: Any, ctx: Context) -> int:
    if comp.rng is None:
        raise Unsupported("a random number before T.rng_init", ctx.loc)
    slot, rank = comp.rng
    if rank != ctx.rank:
        raise Unsupported(
            "random numbers inside a T.Parallel whose size is known only when it runs: which thread draws depends on it", ctx.loc,
            "draw in a serial loop of each thread",
        )  # fmt: skip
    return int(slot)


def _drawn(comp: Any, call: ir.Call, ctx: Context, draw: Any) -> Ex:
    slot = _state(comp, ctx)
    dtype = call.dtype

    def fn(fr: Frame) -> Value:
        return draw(fr.v[slot], fr.mask)

    if ctx.rank:
        return Ex(dtype=dtype, fn=fn, axes=frozenset(range(ctx.rank)), loads=True)
    return Ex(dtype=dtype, fn=lambda fr: arith.as_scalar(dtype, np.asarray(fn(fr)).reshape(-1)[0]), loads=True)


def rand(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.rng_rand``."""
    return _drawn(comp, call, ctx, lambda state, mask: state.rand(mask))


def rand_float(comp: Any, call: ir.Call, ctx: Context) -> Ex:
    """``T.rng_rand_float``."""
    dist = call.args[0].value if call.args and isinstance(call.args[0], ir.Str) else "uniform"
    bits = 64 if call.dtype == "float64" else 32
    fine = bool(call.attrs.get(VECTOR))
    return _drawn(comp, call, ctx, lambda state, mask: state.rand_float(bits, dist, mask, vector=fine))


# -------------------------------------------------------------------------------------------- draws in parallel loops
#: Attribute of a draw that the compiler makes for several iterations at once.
VECTOR = "vector"
_DRAWS = frozenset({"tl.rng_rand", "tl.rng_rand_float"})
_VECTOR_BITS = 128


def draws(n: Any) -> bool:
    """Whether a random number is drawn somewhere in ``n``."""
    return any(isinstance(x, ir.Call) and x.op in _DRAWS for x in ir.walk(n))


def shared_out(body: ir.Body, thread_vars: tuple[ir.Var, ...], extents: tuple[int, int, int]) -> ir.Body:
    """Parallel loops in which numbers are drawn, written as the loop that each thread runs over its own iterations.

    Which thread runs which iteration decides what it draws. TileLang gives each thread runs of ``v`` neighbouring
    iterations, ``v`` the elements that one vector access holds, and the runs to the threads in turn.
    """
    out: list[ir.Stmt] = []
    for s in body:
        if isinstance(s, ir.For) and s.kind == "parallel" and draws(s):
            out.append(_per_thread(s, thread_vars, extents) or s)
        elif isinstance(s, ir.For | ir.While | ir.Block | ir.Attribute):
            out.append(replace(s, body=shared_out(s.body, thread_vars, extents)) if draws(s) else s)
        elif isinstance(s, ir.If):
            then, orelse = (shared_out(b, thread_vars, extents) for b in (s.then, s.orelse))
            out.append(replace(s, then=then, orelse=orelse) if draws(s) else s)
        else:
            out.append(s)
    return tuple(out)


def _per_thread(loop: ir.For, thread_vars: tuple[ir.Var, ...], extents: tuple[int, int, int]) -> ir.Stmt | None:
    nest: list[ir.For] = []
    body: ir.Body = (loop,)
    while len(body) == 1 and isinstance(body[0], ir.For) and body[0].kind == "parallel":
        nest.append(body[0])
        body = body[0].body
    sizes = [f.extent.value if isinstance(f.extent, ir.Const) else None for f in nest]
    if any(n is None for n in sizes):
        return None
    total, threads = math.prod(int(n) for n in sizes if n is not None), math.prod(extents)
    if not total:
        return None
    width = _width(nest[-1].var, int(sizes[-1] or 1), body)
    while width > 1 and total % (width * threads):
        width //= 2
    if width > 1:
        body = tuple(_marked(s) for s in body)
    me = _sum(_const(0), thread_vars, extents)
    turn, lane = ir.Var(dtype="int32", name="turn"), ir.Var(dtype="int32", name="lane")
    at = ir.Var(dtype="int32", name="iteration")
    run = _op("add", _op("mul", turn, _const(threads)), me)
    bind: list[ir.Stmt] = [ir.Bind(var=at, value=_op("add", _op("mul", run, _const(width)), lane), loc=loop.loc)]
    rest: ir.Expr = at
    for f, n in zip(reversed(nest), reversed(sizes), strict=True):
        part = rest if f is nest[0] else _op("floormod", rest, _const(int(n or 1)))
        bind.append(ir.Bind(var=f.var, value=_op("add", f.min, part), loc=loop.loc))
        rest = _op("floordiv", rest, _const(int(n or 1)))
    binds = tuple(s for s in body if isinstance(s, ir.Bind))
    steps = []
    for s in (s for s in body if not isinstance(s, ir.Bind)):
        inside: ir.Body = (*binds, s)
        if total % (width * threads):
            inside = (ir.If(cond=ir.Bin(dtype="bool", op="lt", a=at, b=_const(total)), then=inside, loc=loop.loc),)
        steps.append(ir.For(var=lane, min=_const(0), extent=_const(width), kind="serial", body=(*bind, *inside), loc=loop.loc))
    turns = -(-total // (width * threads))
    return ir.For(var=turn, min=_const(0), extent=_const(turns), kind="serial", body=tuple(steps), loc=loop.loc)


def _width(inner: ir.Var, extent: int, body: ir.Body) -> int:
    """How many neighbouring iterations one vector access takes: every access that names ``inner`` must allow it."""
    width = _VECTOR_BITS
    for n in (x for s in body for x in ir.walk(s)):
        if isinstance(n, ir.Load | ir.Store):
            steps = [_step(i, inner) for i in n.indices]
            if steps and steps[-1] == 1 and not any(steps[:-1]):
                width = min(width, _VECTOR_BITS // dtypes.bits(n.buffer.dtype))
            elif any(s != 0 for s in steps) or isinstance(n, ir.Store):
                return 1
        elif isinstance(n, ir.If) and any(v is inner for v in ir.walk(n.cond)):
            c = n.cond
            if not (isinstance(c, ir.Bin) and c.op == "lt" and isinstance(c.b, ir.Const) and _step(c.a, inner) == 1):
                return 1
            width = math.gcd(width, int(c.b.value))
    return math.gcd(width, extent) if width < _VECTOR_BITS else 1


def _step(e: ir.Expr, v: ir.Var) -> int | None:
    """How much ``e`` grows with ``v``; None where that is not a constant."""
    if e is v:
        return 1
    if not any(x is v for x in ir.walk(e)):
        return 0
    if isinstance(e, ir.Cast):
        return _step(e.a, v)
    if isinstance(e, ir.Bin) and e.op in ("add", "sub", "mul"):
        a, b = _step(e.a, v), _step(e.b, v)
        if a is None or b is None:
            return None
        if e.op != "mul":
            return a + b if e.op == "add" else a - b
        for one, other in ((e.a, b), (e.b, a)):
            if isinstance(one, ir.Const):
                return int(one.value) * other
    return None


def _marked(n: Any) -> Any:
    """``n`` with its draws marked as made for several iterations at once."""
    if isinstance(n, ir.Call) and n.op in _DRAWS:
        return replace(n, attrs={**n.attrs, VECTOR: True})
    changed = {}
    for name in n.__dataclass_fields__:
        value = getattr(n, name)
        if isinstance(value, ir.Expr | ir.Stmt) and draws(value):
            changed[name] = _marked(value)
        elif isinstance(value, tuple) and any(isinstance(v, ir.Expr | ir.Stmt) and draws(v) for v in value):
            changed[name] = tuple(_marked(v) if isinstance(v, ir.Expr | ir.Stmt) and draws(v) else v for v in value)
    return replace(n, **changed) if changed else n


def _sum(first: ir.Expr, thread_vars: tuple[ir.Var, ...], extents: tuple[int, int, int]) -> ir.Expr:
    """The linear number of the thread."""
    out, step = first, 1
    for v, n in zip(thread_vars, extents, strict=False):
        out = _op("add", out, _op("mul", v, _const(step)))
        step *= n
    return out


def _const(n: int) -> ir.Const:
    return ir.Const(dtype="int32", value=n)


def _op(op: str, a: ir.Expr, b: ir.Expr) -> ir.Bin:
    return ir.Bin(dtype="int32", op=op, a=a, b=b)


EFFECTS = {"tl.rng_init": init}
CALLS = {"tl.rng_rand": rand, "tl.rng_rand_float": rand_float}

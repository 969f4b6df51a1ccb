"""Random numbers in kernels: each thread has its own generator."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import arith, random
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
            "random numbers inside T.Parallel, where the layout decides which thread draws", ctx.loc, "draw in a serial loop of each thread"
        )
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
    return _drawn(comp, call, ctx, lambda state, mask: state.rand_float(bits, dist, mask))


EFFECTS = {"tl.rng_init": init}
CALLS = {"tl.rng_rand": rand, "tl.rng_rand_float": rand_float}

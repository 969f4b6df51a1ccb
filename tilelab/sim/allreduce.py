"""``T.tvm_thread_allreduce`` in the scope of a ``T.comm_reducer``: one value of each thread, combined over some of the thread axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import arith, dtypes
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Frame, Unsupported
from tilelab.sim.threads import highest, lowest

#: the attribute within which a reduction says how it combines
SCOPE = "reduce_scope"
#: operation of the combiner → (ufunc, what changes nothing)
_KINDS: Mapping[str, tuple[Any, Any]] = {
    "add": (np.add, lambda d: 0), "mul": (np.multiply, lambda d: 1), "max": (np.fmax, lowest), "min": (np.fmin, highest),
}  # fmt: skip


def combiner(target: Any) -> str:
    """Name the operation of a captured ``T.comm_reducer``."""
    return str(dict(target.items).get("op", "")) if isinstance(target, ir.AttrMap) else ""


def allreduce(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """Arguments: how many values, the value, a condition, where the result goes, the thread variables to reduce over."""
    size, value, cond, into, *over = call.args
    kind = comp.combiner
    if not isinstance(size, ir.Const) or int(size.value) != 1 or not isinstance(into, ir.Load):
        raise Unsupported("T.tvm_thread_allreduce of several values at once", ctx.loc)
    if kind not in _KINDS:
        raise Unsupported("T.comm_reducer with an operation other than + * max min", ctx.loc)
    ufunc, start = _KINDS[kind]
    want = dtypes.carrier(into.dtype)
    ex, when = comp.cast(comp.expr(value, ctx), into.dtype, ctx), comp.expr(cond, ctx)
    axes = tuple(sorted({a for v in over for a in comp.expr(v, ctx).axes}))
    sizes = {nb + i: ctx.grid.extents[c] for nb in (len(ctx.grid.blocks),) for i, c in enumerate(ctx.grid.threads)}
    if any(a not in sizes for a in axes):
        raise Unsupported("T.tvm_thread_allreduce over something that is not a thread index", ctx.loc)
    acc = comp.access(into.buffer, comp.exprs(into.indices, ctx), ctx, "T.tvm_thread_allreduce", "write")
    finish = arith.finisher(into.dtype)

    def run(fr: Frame) -> None:
        x = np.asarray(ex.fn(fr), want)
        on = when.fn(fr)
        if fr.mask is not None:
            on = np.logical_and(on, fr.mask)
        if on is not True and not np.all(on):
            x = np.where(on, x, want.type(start(want)))
        if axes:
            x = x.reshape((1,) * ctx.rank) if x.ndim == 0 else x
            x = np.broadcast_to(x, [sizes[a] if a in axes else n for a, n in enumerate(x.shape)])
            x = finish(ufunc.reduce(x, axis=axes, keepdims=True))
        acc.write(fr, x)

    return Op(run)


EFFECTS = {"tirx.tvm_thread_allreduce": allreduce}

"""``T.print`` → :class:`tilelab.trace.PrintRecord`: one record a block, holding typed values; never a flood of lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import dtypes
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Frame, Value
from tilelab.trace import PrintRecord

#: Records kept in one run; more are counted, not kept.
LIMIT = 20_000
#: Threads that print one by one; more of them make one record.
THREADS = 32


def table(comp: Any, loop: ir.For, ctx: Context) -> Op:
    """Compile the printing of a whole buffer."""
    ctx = ctx.at(loop.loc).at(loop.body[0].loc)
    call = loop.body[0].value  # type: ignore[attr-defined]
    message, name, load = call.args[1], call.args[2], call.args[-1]
    slot = comp.slot_of(load.buffer, ctx)
    dtype = load.buffer.dtype
    text = message.value if isinstance(message, ir.Str) else ""
    title = name.value if isinstance(name, ir.Str) else load.buffer.name

    def run(fr: Frame) -> None:
        buf = fr.mem[slot]
        array = buf.full()
        n = buf.lanes
        nb = len(ctx.grid.blocks)
        for lane in _blocks(fr, ctx):
            at = tuple(lane[a] if a < len(lane) and buf.lsize[a] > 1 else 0 for a in range(n))
            _emit(fr, ctx, (*lane, *(0,) * (ctx.rank - nb)), text, title, dtype, array[at].copy(), None)

    return Op(run)


def one(comp: Any, s: ir.Eval, ctx: Context) -> Op:
    """Compile the printing of one expression or of a message."""
    call = s.value
    assert isinstance(call, ir.Call)
    strings = [a.value for a in call.args if isinstance(a, ir.Str)][1:]
    values = [a for a in call.args if not isinstance(a, ir.Str)]
    value = comp.expr(values[-1], ctx) if values else None
    text, name = ([*strings, "", ""])[:2]
    dtype = values[-1].dtype if values else ""
    nb, nt = len(ctx.grid.blocks), len(ctx.grid.threads)

    def run(fr: Frame) -> None:
        x = value.fn(fr) if value is not None else np.zeros(0)
        array = np.asarray(x, dtypes.carrier(dtype) if values else None)
        if value is not None and array.ndim == 0:
            array = array.reshape((1,) * ctx.rank)
        mask = fr.mask
        shape = list(np.broadcast_shapes(array.shape, mask.shape if mask is not None else ())) if values else [1] * ctx.rank
        for lane in _blocks(fr, ctx):
            on = None if mask is None else mask[_at(lane, mask.shape)]
            if on is not None and not on.any():
                continue
            mine = array[_at(lane, array.shape)] if values else array
            if not values:
                _emit(fr, ctx, (*lane, *(0,) * (ctx.rank - nb)), text, name, dtype, mine, None)
                continue
            full = np.broadcast_to(mine, shape[nb:])
            on = np.broadcast_to(on, shape[nb:]) if on is not None else np.ones(shape[nb:], np.bool_)
            _threads(fr, ctx, lane, full, on, nt, text, name, dtype)

    return Op(run)


def _threads(fr: Frame, ctx: Context, lane: tuple[int, ...], full: Value, on: Value, nt: int, text: str, name: str, dtype: str) -> None:
    threads: Any = np.argwhere(on.any(axis=tuple(range(nt, on.ndim))) if on.ndim > nt else on) if nt and full.ndim else []
    varies = bool(nt) and any(n > 1 for n in on.shape[:nt])
    if not varies or len(threads) > THREADS:
        values = full if on.all() else full[on]
        _emit(fr, ctx, (*lane, *(0,) * (ctx.rank - len(lane))), text, name, dtype, np.squeeze(values).copy(), None)
        return
    for t in threads:
        at = tuple(int(i) for i in t)
        values = full[at][on[at]] if full.ndim > nt and not on[at].all() else full[at]
        where = (*lane, *at, *(0,) * (ctx.rank - len(lane) - nt))
        _emit(fr, ctx, where, text, name, dtype, np.squeeze(np.asarray(values)).copy(), ctx.thread(where))


def _blocks(fr: Frame, ctx: Context) -> Any:
    return np.ndindex(*(fr.size[a] for a in range(len(ctx.grid.blocks))))


def _at(lane: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i if n > 1 else 0 for i, n in zip(lane, shape, strict=False))


def _emit(fr: Frame, ctx: Context, lane: tuple[int, ...], text: str, name: str, dtype: str, values: Value, thread: Any) -> None:
    run = fr.run
    if len(run.prints) >= LIMIT:
        run.prints_lost += 1
        return
    loops = {n: (int(fr.v[s]) if np.ndim(fr.v[s]) == 0 else int(fr.v[s].reshape(-1)[0])) for n, s in ctx.loops}
    run.prints.append(
        PrintRecord(
            message=text,
            name=name,
            dtype=dtype,
            values=values,
            loc=ctx.loc,
            block=ctx.block(fr, lane) or (0, 0, 0),
            thread=thread,
            loops=loops,
        )
    )

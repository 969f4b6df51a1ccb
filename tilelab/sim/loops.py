"""Loops → closures: serial ones run their turns, parallel ones become lane axes; and the spaces that races are looked for in."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import dtypes
from tilelab.sim.context import Context
from tilelab.sim.expr import ExprCompiler, affine_fn
from tilelab.sim.flow import Op, Run, breaks, left, narrow, nothing
from tilelab.sim.lanes import Aff, Ex, Frame, Unsupported, Value, aff_add, both, some, value_of
from tilelab.sim.races import Nest, NestPlan
from tilelab.sim.taint import PARALLEL, Taint, carried, private_buffers

#: Turns of a loop between two looks at the limits.
_CHUNK = 1024


class LoopCompiler(ExprCompiler):
    """Compiles loops, and holds what variables and buffers there are. :class:`tilelab.sim.stmt.StmtCompiler` adds the rest."""

    def __init__(self) -> None:
        self.scope: dict[ir.Var, tuple[Ex, int]] = {}
        self.pointers: dict[ir.Expr, ir.Expr] = {}  # variable → the address that it holds
        self.addresses: set[ir.Var] = set()  # pointers made from numbers
        self.slots = 0
        self.buffers: dict[ir.Var, int] = {}  # data pointer → slot
        self.max_rank = 0
        self.taint: Taint | None = None
        self.lanes: dict[ir.Var, int] = {}  # lane axes of buffers that a parallel loop makes private
        self.stored: set[ir.Var] = set()
        self.thread_vars: frozenset[ir.Var] = frozenset()

    # ------------------------------------------------------------------------------------------------ variables
    def slot(self) -> int:
        """A new place for a variable."""
        self.slots += 1
        return self.slots - 1

    def define(self, var: ir.Var, ctx: Context, axes: frozenset[int] = frozenset()) -> int:
        """Give ``var`` a slot that holds its value."""
        s = self.slot()
        is_int = dtypes.info(var.dtype).kind in "iu"
        aff = Aff(lambda fr: fr.v[s]) if is_int and not axes else None
        self.scope[var] = (Ex(dtype=var.dtype, fn=lambda fr: fr.v[s], axes=axes, aff=aff, key=("v", id(var), s)), ctx.rank)
        return s

    def body(self, body: ir.Body, ctx: Context, *, loop: bool = False) -> Op:
        """Compile statements in order (the statement compiler knows how)."""
        raise NotImplementedError

    def waits(self, body: ir.Body) -> bool:
        """A hook: whether anything in ``body`` may wait."""
        return False

    # --------------------------------------------------------------------------------------------------- spaces
    def _single_nest(self, ctx: Context, exprs: tuple[ir.Expr, ...]) -> tuple[NestPlan | None, Context]:
        """A statement that depends on the thread, outside any space, is a parallel space by itself."""
        if ctx.nest is not None or not ctx.grid.threads or self.taint is None or not any(self.taint.expr(e) for e in exprs):
            return None, ctx
        plan = NestPlan(len(ctx.grid.blocks), "threads")
        return plan, replace(ctx, nest=plan)

    def _in_nest(self, plan: NestPlan | None, run: Run) -> Op:
        if plan is None or not plan.close():
            return Op(run)

        def watched(fr: Frame) -> None:
            if not fr.run.checks:
                run(fr)
                return
            outer = fr.nest
            fr.nest = Nest(plan, fr)
            try:
                run(fr)
            finally:
                fr.nest = outer

        return Op(watched)

    # ---------------------------------------------------------------------------------------------------- loops
    def _for(self, s: ir.For, ctx: Context) -> Op:
        if s.kind in PARALLEL:
            return self._parallel(s, ctx)
        lo, extent = self.expr(s.min, ctx), self.expr(s.extent, ctx)
        step = self.expr(s.step, ctx) if s.step is not None else None
        self.check_loop(s, ctx)
        varies = bool(self.taint and self.taint.vars and (self.taint.expr(s.min) or self.taint.expr(s.extent)))
        plan, ctx = self._divergent_nest(ctx, varies and not self.waits((s,)))
        # a first value that differs between blocks keeps the variable affine: what is counted is the distance from it
        relative, frozen = self.freeze(lo.aff) if lo.axes and lo.aff is not None else (None, [])
        slot = self.define(s.var, ctx, lo.axes)
        if relative is not None:
            aff = aff_add(relative, Aff(lambda fr: fr.v[slot]))
            key = ("v", id(s.var), slot)
            self.scope[s.var] = (Ex(dtype=s.var.dtype, fn=affine_fn(aff, ctx.rank, s.var.dtype), axes=lo.axes, aff=aff, key=key), ctx.rank)
        inner = ctx.loop(s.var.name, slot)
        self.splits(ctx, lo, extent)
        leaves = breaks(s.body)
        op = self.body(s.body, inner, loop=leaves)
        if op.run is nothing and op.gen is None:
            return op
        flo, fext, fstep = lo.fn, extent.fn, step.fn if step is not None else lambda fr: 1
        body, gen = op.run, op.gen

        def turns(fr: Frame) -> Generator[None, None, None]:
            """Set the variable (and the mask, where lanes differ) for each turn."""
            first, n, by = flo(fr), fext(fr), fstep(fr)
            if isinstance(n, np.ndarray) and n.size == 1:
                n = int(n.reshape(-1)[0])
            if relative is not None:
                for place, c in frozen:
                    fr.v[place] = value_of(c, fr)
                first = 0
            v, run = fr.v, fr.run
            old, live, skip = fr.mask, fr.live, fr.skip
            if leaves:
                fr.live = fr.skip = None
            try:
                if not isinstance(n, np.ndarray) and not isinstance(first, np.ndarray):
                    for i in range(first, first + n, by):
                        v[slot] = i
                        yield
                        if leaves:
                            fr.mask, fr.skip = old, None
                            if left(fr) and not narrow(fr):
                                break
                    return
                at, top = 0, int(np.max(n)) if np.size(n) else 0
                while at < top:
                    on = both(old, n > at)
                    if leaves and left(fr):
                        fr.mask, fr.skip = on, None
                        if not narrow(fr):
                            break
                        on = fr.mask
                    if not some(on):
                        break
                    fr.mask = None if old is None and isinstance(on, np.ndarray) and on.all() else on
                    v[slot] = first + at
                    yield
                    at += by
            finally:
                fr.mask, fr.live, fr.skip = old, live, skip
                run.steps(min(at, top) if isinstance(n, np.ndarray) else n)  # lanes that are off may hold any extent

        if gen is None:
            if not leaves and not lo.axes and not extent.axes:
                return self._in_nest(plan, self._uniform_loop(flo, fext, fstep, slot, body, s.loc))

            def run(fr: Frame) -> None:
                for _ in turns(fr):
                    body(fr)

            return self._in_nest(plan, run)
        inner_gen = gen
        self.uniform_or_not(ctx, lo, extent)

        def waiting(fr: Frame) -> Generator[Any, None, None]:
            for _ in turns(fr):
                yield from inner_gen(fr)

        return Op(body, waiting)

    @staticmethod
    def _uniform_loop(flo: Any, fext: Any, fstep: Any, slot: int, body: Run, loc: ir.SourceLoc | None) -> Run:
        def run(fr: Frame) -> None:
            v = fr.v
            first = flo(fr)
            turns = range(first, first + fext(fr), fstep(fr))
            steps = fr.run.steps
            if len(turns) > fr.run.budget:
                steps(len(turns), loc)  # it would not end: do not begin
            for at in range(0, len(turns), _CHUNK):
                some = turns[at : at + _CHUNK]
                steps(len(some), loc)
                for i in some:
                    v[slot] = i
                    body(fr)

        return run

    def _divergent_nest(self, ctx: Context, varies: bool) -> tuple[NestPlan | None, Context]:
        """A branch or loop that threads take differently is a parallel space up to its barriers."""
        if not varies or ctx.nest is not None or not ctx.grid.threads:
            return None, ctx
        plan = NestPlan(len(ctx.grid.blocks), "threads")
        return plan, replace(ctx, nest=plan)

    def uniform_or_not(self, ctx: Context, *conditions: Ex) -> None:
        """A hook: control flow around something that waits depends on ``conditions``."""

    def splits(self, ctx: Context, *bounds: Ex) -> None:
        """A hook: the length of a loop depends on ``bounds``."""

    def freeze(self, aff: Aff) -> tuple[Aff, list[tuple[int, Any]]]:
        """An affine form whose scalars are read from slots, and what to put there when it is made."""
        frozen: list[tuple[int, Any]] = []

        def keep(c: Any) -> Any:
            if isinstance(c, int):
                return c
            place = self.slot()
            frozen.append((place, c))
            return lambda fr: fr.v[place]

        return Aff(keep(aff.base), tuple((a, keep(c)) for a, c in aff.terms)), frozen

    def check_loop(self, s: ir.For, ctx: Context) -> None:
        """A hook: what is wrong with a serial loop as it stands."""

    def _parallel(self, s: ir.For, ctx: Context) -> Op:
        if not ctx.parallel:
            chained = [data for data in private_buffers(s) if carried(s, data)]
            if chained and (s.kind == "vectorized" or (self.taint and self.taint.any and not self.taint.shares_out(s))):
                return self._for(replace(s, kind="serial"), ctx)  # each thread runs it, one turn after the other
            if chained:
                name = next(n.buffer.name for n in ir.walk(s) if isinstance(n, ir.Store) and n.buffer.data in chained)
                what = f"{name}, which the iterations of a T.Parallel hand on in each thread: the layout decides which those are"
                raise Unsupported(what, ctx.loc, "sum in a fragment with T.reduce_sum, or in a serial loop of each thread")
        axis = ctx.rank
        self.max_rank = max(self.max_rank, axis + 1)
        outermost = not ctx.parallel
        shared_out = outermost and not (self.taint and self.taint.any and not self.taint.shares_out(s))
        collapse = shared_out and bool(ctx.grid.threads)
        plan: NestPlan | None = None
        if outermost and (ctx.nest is None or collapse):
            plan = NestPlan(axis if shared_out else len(ctx.grid.blocks), "parallel iterations")
            ctx = replace(ctx, nest=plan)
        if shared_out:
            ctx = replace(ctx, each=False)
        lo, extent = self.expr(s.min, ctx), self.expr(s.extent, ctx)
        low = lo if lo.const != 0 else None
        inner = ctx.inner(s.var.name, low, extent)
        private = private_buffers(s) if outermost else {}
        base = axis
        for data, depth in private.items():
            self.lanes[data] = base + depth
        if low is None:
            aff: Aff | None = Aff(0, ((axis, 1),))
        elif lo.aff is not None:
            aff = Aff(lo.aff.base, (*lo.aff.terms, (axis, 1)))
        else:
            aff = None
        self.scope[s.var] = (self._parallel_var(s.var, aff, lo, axis), inner.rank)
        op = self.body(s.body, inner)
        if op.gen is not None:
            raise Unsupported("waiting inside T.Parallel", ctx.loc)
        threads = ctx.grid.thread_axes
        fext, body, uniform = extent.fn, op.run, not extent.axes

        def run(fr: Frame) -> None:
            old, outer = fr.mask, fr.outer
            if collapse:
                fr.outer = old
            n = fext(fr)
            mask = old
            if mask is not None:
                if collapse:
                    mask = mask.any(axis=threads, keepdims=True)
                mask = mask[..., None]
            if not uniform and isinstance(n, np.ndarray):
                top = int(n.max())
                on = np.arange(top).reshape((1,) * axis + (top,)) < n[..., None]
                mask = both(mask, on)
                n = top
            if n <= 0:
                fr.outer = outer
                return
            fr.size[axis] = n
            fr.mask = mask if mask is None or not mask.all() else None
            body(fr)
            fr.size[axis] = 1
            fr.mask, fr.outer = old, outer

        if not private:
            return self._in_nest(plan, run)
        slots = [(self.buffers[data], self.lanes.pop(data)) for data in private if data in self.buffers]

        def with_private(fr: Frame) -> None:
            for slot, lanes in slots:
                widen(fr.mem[slot], lanes)
            run(fr)
            for slot, _ in slots:
                collapse_private(fr.mem[slot], axis)

        return self._in_nest(plan, with_private)

    def _parallel_var(self, var: ir.Var, aff: Aff | None, lo: Ex, axis: int) -> Ex:
        axes = lo.axes | {axis}
        if aff is not None:
            return Ex(dtype=var.dtype, fn=affine_fn(aff, axis + 1, var.dtype), axes=axes, aff=aff, key=("v", id(var)))
        flo, want = lo.fn, dtypes.carrier(var.dtype)

        def fn(fr: Frame) -> Value:
            first = flo(fr)
            steps = np.arange(fr.size[axis], dtype=want).reshape((1,) * axis + (-1,))
            return steps + (first[..., None] if isinstance(first, np.ndarray) else first)

        return Ex(dtype=var.dtype, fn=fn, axes=axes, loads=lo.loads, key=("v", id(var)))

    def _while(self, s: ir.While, ctx: Context) -> Op:
        varies = bool(self.taint and self.taint.expr(s.cond))
        plan, ctx = self._divergent_nest(ctx, varies and not self.waits((s,)))
        cond = self.expr(s.cond, ctx)
        leaves = breaks(s.body)
        op = self.body(s.body, ctx, loop=leaves)
        fc, body, gen = cond.fn, op.run, op.gen
        spins = self.spins(s)

        def turns(fr: Frame) -> Generator[None, None, None]:
            old, live, skip = fr.mask, fr.live, fr.skip
            if leaves:
                fr.live = fr.skip = None
            try:
                while True:
                    c = fc(fr)
                    on = both(fr.mask, c) if isinstance(c, np.ndarray) else fr.mask
                    if not (some(on) if isinstance(c, np.ndarray) else c):
                        return
                    fr.mask = None if isinstance(on, np.ndarray) and on.all() else on
                    fr.run.steps(1, s.loc)
                    yield
                    if leaves:
                        fr.mask, fr.skip = (both(old, on) if isinstance(c, np.ndarray) else old), None
                        if left(fr) and not narrow(fr):
                            return
            finally:
                fr.mask, fr.live, fr.skip = old, live, skip

        def run(fr: Frame) -> None:
            for _ in turns(fr):
                body(fr)

        if gen is None and not spins:
            return self._in_nest(plan, run)
        self.uniform_or_not(ctx, cond)

        def waiting(fr: Frame) -> Generator[Any, None, None]:
            for _ in turns(fr):
                if gen is not None:
                    yield from gen(fr)
                else:
                    body(fr)
                if spins:
                    yield self.spin(fr, s, ctx)

        return Op(run, waiting)

    def spins(self, s: ir.While) -> bool:
        """A hook: whether a while loop waits for another block."""
        return False

    def spin(self, fr: Frame, s: ir.While, ctx: Context) -> Any:
        """A hook: what a spinning loop waits for."""
        raise NotImplementedError


def widen(buf: Any, lanes: int) -> None:
    """Give a per-thread buffer lane axes of size 1 up to ``lanes``, for a parallel loop that makes it private."""
    extra = lanes - buf.lanes
    if buf.root is None:
        buf.full()
    buf.strides = buf.strides[: buf.lanes] + (0,) * extra + buf.strides[buf.lanes :]
    if isinstance(buf.init, np.ndarray):
        buf.init = buf.init.reshape(*buf.lsize, *(1,) * extra, *buf.shape)
    buf.lsize = buf.lsize + (1,) * extra
    buf.lanes = lanes


def collapse_private(buf: Any, lanes: int) -> None:
    """Undo :func:`widen`: what is left is what the last iteration wrote."""
    last = (slice(None),) * lanes + (-1,) * (buf.lanes - lanes)
    array = buf.full()[last]
    init = buf.init[last] if isinstance(buf.init, np.ndarray) else buf.init
    buf.lanes = lanes
    buf.adopt(array if array.flags.c_contiguous else array.copy(), own=False)
    buf.init = init.copy() if isinstance(init, np.ndarray) else init

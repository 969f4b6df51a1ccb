"""Statements → closures. A statement that can wait is a generator as well; all others are plain calls."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tilelab import ir
from tilelab.sim import arith, dtypes, numbers, prints
from tilelab.sim.access import Access
from tilelab.sim.context import Context
from tilelab.sim.expr import ExprCompiler, affine_fn
from tilelab.sim.lanes import Aff, Ex, Frame, Unsupported, Value, both, some, value_of
from tilelab.sim.races import Nest, NestPlan
from tilelab.sim.taint import PARALLEL, Taint, is_local, is_print, printed_table, private_buffers

Run = Callable[[Frame], None]
Gen = Callable[[Frame], Generator[Any, None, None]]


class Op(NamedTuple):
    """A compiled statement. Where ``gen`` is there, ``run`` must not be used."""

    run: Run
    gen: Gen | None = None
    role: Callable[[Frame], Any] | None = None  # which threads a branch by thread concerns


def nothing(fr: Frame) -> None:
    """Do nothing."""


def sequence(ops: Iterable[Op], *, breaks: bool = False) -> Op:
    """Run ``ops`` one after the other; with ``breaks``, lanes that left the loop are masked off in between."""
    ops = tuple(o for o in ops if o.run is not nothing)
    runs = tuple(o.run for o in ops)
    if not any(o.gen for o in ops):
        if breaks:
            return Op(_breaking(runs))
        if len(runs) == 1:
            return Op(runs[0])
        if not runs:
            return Op(nothing)

        def run(fr: Frame) -> None:
            for r in runs:
                r(fr)

        return Op(run)

    def gen(fr: Frame) -> Generator[Any, None, None]:
        for o in ops:
            if o.gen is not None:
                yield from o.gen(fr)
            else:
                o.run(fr)
            if breaks and fr.live is not None and not narrow(fr):
                return

    return Op(runs[0], gen)


def narrow(fr: Frame) -> bool:
    """Mask off lanes that left the loop; whether any lane is left."""
    if fr.live is False:
        return False
    fr.mask = both(fr.mask, fr.live)
    return some(fr.mask)


def _breaking(runs: tuple[Run, ...]) -> Run:
    def run(fr: Frame) -> None:
        for r in runs:
            r(fr)
            if fr.live is not None and not narrow(fr):
                return

    return run


def breaks(body: ir.Body) -> bool:
    """Whether a ``T.loop_break`` in ``body`` leaves the loop around it."""
    for s in body:
        if isinstance(s, ir.Eval) and isinstance(s.value, ir.Call) and s.value.op == "tl.loop_break":
            return True
        if isinstance(s, ir.If) and (breaks(s.then) or breaks(s.orelse)):
            return True
        if isinstance(s, ir.Block | ir.Attribute) and breaks(s.body):
            return True
    return False


class StmtCompiler(ExprCompiler):
    """Compiles the statements of one program. :class:`tilelab.sim.kernel.Compiler` adds launches and tile operations."""

    def __init__(self) -> None:
        self.scope: dict[ir.Var, tuple[Ex, int]] = {}
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

    # ----------------------------------------------------------------------------------------------- statements
    def body(self, body: ir.Body, ctx: Context, *, loop: bool = False) -> Op:
        """Compile statements in order; ``loop`` says that a break among them is ours to handle."""
        ops = [self.stmt(s, ctx) for s in body]
        if any(o.gen is not None and o.role is not None for o in ops):
            ops = self.roles(ops)
        return sequence(ops, breaks=loop or breaks(body))

    def roles(self, ops: list[Op]) -> list[Op]:
        """A hook: neighbouring branches of different threads run at the same time."""
        return ops

    def stmt(self, s: ir.Stmt, ctx: Context) -> Op:
        """Compile one statement."""
        ctx = ctx.at(s.loc)
        table = printed_table(s, self.thread_vars)
        if table is not None:
            return prints.table(self, table, ctx)
        method = _METHODS.get(type(s))
        if method is None:
            raise Unsupported(f"the statement {type(s).__name__}", ctx.loc)
        return method(self, s, ctx)

    def _bind(self, s: ir.Bind, ctx: Context) -> Op:
        ex = self.expr(s.value, ctx)
        if ex.const is not None:
            self.scope[s.var] = (replace(ex, dtype=s.var.dtype) if not isinstance(ex.const, str) else ex, ctx.rank)
            return Op(nothing)
        if ex.aff is not None and ex.axes:
            return self._bind_affine(s, ex, ctx)
        slot = self.define(s.var, ctx, ex.axes)
        fn = ex.fn
        if ex.axes and (ex.source is not None or ex.loads):

            def keep(fr: Frame) -> None:
                x = fn(fr)
                fr.v[slot] = x.copy() if isinstance(x, np.ndarray) and x.base is not None else x

            return Op(keep)

        def run(fr: Frame) -> None:
            fr.v[slot] = fn(fr)

        return Op(run)

    def _bind_affine(self, s: ir.Bind, ex: Ex, ctx: Context) -> Op:
        """An affine value stays affine: its scalars are frozen here, its lanes never made."""
        assert ex.aff is not None
        frozen: list[tuple[int, Any]] = []

        def freeze(c: Any) -> Any:
            if isinstance(c, int):
                return c
            slot = self.slot()
            frozen.append((slot, c))
            return lambda fr: fr.v[slot]

        aff = Aff(freeze(ex.aff.base), tuple((a, freeze(c)) for a, c in ex.aff.terms))
        self.scope[s.var] = (replace(ex, aff=aff, fn=affine_fn(aff, ctx.rank, s.var.dtype), key=("v", id(s.var))), ctx.rank)
        if not frozen:
            return Op(nothing)

        def run(fr: Frame) -> None:
            for slot, c in frozen:
                fr.v[slot] = c(fr)

        return Op(run)

    def _store(self, s: ir.Store, ctx: Context) -> Op:
        plan, ctx = self._single_nest(ctx, (*s.indices, s.value))
        value = self.expr(s.value, ctx)
        if dtypes.parse(s.value.dtype)[1] > 1:
            return self.vector_store(s, value, ctx)
        if dtypes.parse(value.dtype)[0] != dtypes.parse(s.buffer.dtype)[0]:
            value = self.cast(value, s.buffer.dtype, ctx)
        acc = self.access(s.buffer, self.exprs(s.indices, ctx), ctx, kind="write")
        fn, source, write = value.fn, value.source, acc.write
        birth = numbers.birth_watch(self, s, ctx, value)
        if birth is not None:
            plain = fn

            def fn(fr: Frame) -> Value:
                x = plain(fr)
                if fr.run.checks:
                    birth(fr, x)
                return x

        if s.predicate is not None:
            return self._guarded(self.expr(s.predicate, ctx), lambda fr: write(fr, fn(fr), source))
        return self._in_nest(plan, lambda fr: write(fr, fn(fr), source))

    def vector_store(self, s: ir.Store, value: Ex, ctx: Context) -> Op:
        """A store of a vector."""
        raise Unsupported(f"a vector write ({s.value.dtype})", ctx.loc)

    def _guarded(self, cond: Ex, act: Run) -> Op:
        fc = cond.fn

        def run(fr: Frame) -> None:
            c = fc(fr)
            if not isinstance(c, np.ndarray):
                if c:
                    act(fr)
                return
            old = fr.mask
            fr.mask = both(old, c)
            if some(fr.mask):
                act(fr)
            fr.mask = old

        return Op(run)

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
        self.check_repeated(s, ctx)
        varies = bool(self.taint and self.taint.vars and (self.taint.expr(s.min) or self.taint.expr(s.extent)))
        plan, ctx = self._divergent_nest(ctx, varies and not self.waits((s,)))
        slot = self.define(s.var, ctx, lo.axes)
        inner = ctx.loop(s.var.name, slot)
        leaves = breaks(s.body)
        op = self.body(s.body, inner, loop=leaves)
        if op.run is nothing and op.gen is None:
            return op
        flo, fext, fstep = lo.fn, extent.fn, step.fn if step is not None else lambda fr: 1
        body, gen = op.run, op.gen

        def turns(fr: Frame) -> Generator[None, None, None]:
            """Set the variable (and the mask, where lanes differ) for each turn."""
            first, n, by = flo(fr), fext(fr), fstep(fr)
            v, run = fr.v, fr.run
            old, live = fr.mask, fr.live
            if leaves:
                fr.live = None
            try:
                if not isinstance(n, np.ndarray) and not isinstance(first, np.ndarray):
                    for i in range(first, first + n, by):
                        v[slot] = i
                        yield
                        if leaves:
                            fr.mask = old
                            if fr.live is not None and not narrow(fr):
                                break
                    return
                at, top = 0, int(np.max(n)) if np.size(n) else 0
                while at < top:
                    on = both(old, n > at)
                    if leaves and fr.live is not None:
                        if fr.live is False:
                            break
                        on = both(on, fr.live)
                    if not some(on):
                        break
                    fr.mask = None if old is None and isinstance(on, np.ndarray) and on.all() else on
                    v[slot] = first + at
                    yield
                    at += by
            finally:
                fr.mask, fr.live = old, live
                run.steps(top if isinstance(n, np.ndarray) else n)

        if gen is None:
            if not leaves and not lo.axes and not extent.axes:
                return self._in_nest(plan, self._uniform_loop(flo, fext, fstep, slot, body))

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
    def _uniform_loop(flo: Any, fext: Any, fstep: Any, slot: int, body: Run) -> Run:
        def run(fr: Frame) -> None:
            v = fr.v
            first = flo(fr)
            n = fext(fr)
            for i in range(first, first + n, fstep(fr)):
                v[slot] = i
                body(fr)
            fr.run.steps(n)

        return run

    def _divergent_nest(self, ctx: Context, varies: bool) -> tuple[NestPlan | None, Context]:
        """A branch or loop that threads take differently is a parallel space up to its barriers."""
        if not varies or ctx.nest is not None or not ctx.grid.threads:
            return None, ctx
        plan = NestPlan(len(ctx.grid.blocks), "threads")
        return plan, replace(ctx, nest=plan)

    def uniform_or_not(self, ctx: Context, *conditions: Ex) -> None:
        """A hook: control flow around something that waits depends on ``conditions``."""

    def check_repeated(self, s: ir.For, ctx: Context) -> None:
        """A hook: work that every thread repeats (TL601)."""

    def _parallel(self, s: ir.For, ctx: Context) -> Op:
        axis = ctx.rank
        self.max_rank = max(self.max_rank, axis + 1)
        outermost = not ctx.parallel
        shared_out = outermost and not (self.taint and self.taint.any and self.taint.stmts(s.body))
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
            n = fext(fr)
            old = fr.mask
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
                return
            fr.size[axis] = n
            fr.mask = mask if mask is None or not mask.all() else None
            body(fr)
            fr.size[axis] = 1
            fr.mask = old

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
            old, live = fr.mask, fr.live
            if leaves:
                fr.live = None
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
                        fr.mask = both(old, on) if isinstance(c, np.ndarray) else old
                        if fr.live is not None and not narrow(fr):
                            return
            finally:
                fr.mask, fr.live = old, live

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

    # ------------------------------------------------------------------------------------------------- branches
    def _if(self, s: ir.If, ctx: Context) -> Op:
        varies = bool(self.taint and self.taint.vars and self.taint.expr(s.cond))
        cond = self.expr(s.cond, ctx)
        if cond.const is not None:
            return self.body(s.then if cond.const else s.orelse, ctx)
        plan, ctx = self._divergent_nest(ctx, varies and not self.waits((s,)))
        yes, no = self.body(s.then, ctx), self.body(s.orelse, ctx)
        role = _threads_of(cond.fn) if varies and no.run is nothing else None
        if yes.gen is not None or no.gen is not None:
            return self.branch(ctx, cond, yes, no)._replace(role=role)
        fc, then, orelse = cond.fn, yes.run, no.run

        def run(fr: Frame) -> None:
            c = fc(fr)
            if not isinstance(c, np.ndarray):
                (then if c else orelse)(fr)
                return
            old = fr.mask
            on = both(old, c)
            if on.all():
                fr.mask = None
                then(fr)
            else:
                if on.any():
                    fr.mask = on
                    then(fr)
                if orelse is not nothing:
                    on = both(old, ~c)
                    if on.any():
                        fr.mask = on
                        orelse(fr)
            fr.mask = old

        return self._in_nest(plan, run)._replace(role=role)

    def waits(self, body: ir.Body) -> bool:
        """A hook: whether anything in ``body`` may wait."""
        return False

    def branch(self, ctx: Context, cond: Ex, yes: Op, no: Op) -> Op:
        """A hook: a branch in which something waits."""
        raise Unsupported("waiting inside a branch", ctx.loc)

    # --------------------------------------------------------------------------------------------------- others
    def _block(self, s: ir.Block, ctx: Context) -> Op:
        return sequence([*(self.allocate(b, ctx, s.attrs) for b in s.allocs), self.body(s.body, ctx)], breaks=breaks(s.body))

    def allocate(self, buffer: ir.Buffer, ctx: Context, attrs: Any) -> Op:
        """Storage of ``buffer`` begins."""
        raise NotImplementedError

    def _alloc(self, s: ir.Alloc, ctx: Context) -> Op:
        return self.allocate(s.buffer, ctx, s.attrs)

    def _attribute(self, s: ir.Attribute, ctx: Context) -> Op:
        return self.body(s.body, ctx)

    def _assert(self, s: ir.Assert, ctx: Context) -> Op:
        return Op(nothing)

    def _eval(self, s: ir.Eval, ctx: Context) -> Op:
        call = s.value
        if not isinstance(call, ir.Call):
            return Op(nothing)
        name = call.op
        if name == "tirx.call_extern" and call.args and isinstance(call.args[0], ir.Str) and call.args[0].value in EFFECTS:
            name = call.args[0].value
        if name in EFFECTS:
            return EFFECTS[name](self, call, ctx)
        if is_print(s):
            return prints.one(self, s, ctx)
        plan, ctx = self._single_nest(ctx, (call,))
        fn = self.expr(call, ctx).fn

        def run(fr: Frame) -> None:
            fn(fr)

        return self._in_nest(plan, run)


#: Operation → compiler of a call evaluated for its effect; filled by the modules that define them.
EFFECTS: dict[str, Callable[[Any, ir.Call, Context], Op]] = {}

_METHODS: dict[type, Callable[[Any, Any, Context], Op]] = {
    ir.Store: StmtCompiler._store, ir.Eval: StmtCompiler._eval, ir.Bind: StmtCompiler._bind, ir.For: StmtCompiler._for,
    ir.While: StmtCompiler._while, ir.If: StmtCompiler._if, ir.Block: StmtCompiler._block, ir.Alloc: StmtCompiler._alloc,
    ir.Attribute: StmtCompiler._attribute, ir.Assert: StmtCompiler._assert,
}  # fmt: skip


def register(node: type, method: Callable[[Any, Any, Context], Op]) -> None:
    """Add the method that compiles statements of type ``node``."""
    _METHODS[node] = method


def _threads_of(fc: Callable[[Frame], Value]) -> Callable[[Frame], Any]:
    return lambda fr: both(fr.mask, fc(fr)) if isinstance(fc(fr), np.ndarray) else np.asarray(bool(fc(fr)))


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


__all__ = ["EFFECTS", "Access", "Op", "StmtCompiler", "affine_fn", "arith", "is_local", "nothing", "register", "sequence", "value_of"]

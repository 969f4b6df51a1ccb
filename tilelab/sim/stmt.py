"""Statements → closures. A statement that can wait is a generator as well; all others are plain calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tilelab import ir
from tilelab.sim import dtypes, numbers, prints, waste
from tilelab.sim.context import Context
from tilelab.sim.expr import affine_fn
from tilelab.sim.flow import Op, Run, breaks, nothing, sequence
from tilelab.sim.lanes import Ex, Frame, Unsupported, Value, both, some
from tilelab.sim.loops import LoopCompiler
from tilelab.sim.taint import is_print, printed_table


def _first(watch: Callable[[Frame], None], write: Callable[..., None]) -> Callable[..., None]:
    def both_of(fr: Frame, *value: Any) -> None:
        if fr.run.checks:
            watch(fr)
        write(fr, *value)

    return both_of


#: Calls that make an address.
ADDRESSES = frozenset({"tl.access_ptr", "tirx.address_of", "tirx.tvm_access_ptr"})


class StmtCompiler(LoopCompiler):
    """Compiles the statements of one program. :class:`tilelab.sim.kernel.Compiler` adds launches and tile operations."""

    #: Operation → compiler of a call evaluated for its effect.
    effects: ClassVar[Mapping[str, Callable[[Any, ir.Call, Context], Op]]] = {}
    #: Node → compiler of a statement that subclasses add.
    more_stmts: Mapping[type, Callable[[Any, Any, Context], Op]] = {}

    # ----------------------------------------------------------------------------------------------- statements
    def body(self, body: ir.Body, ctx: Context, *, loop: bool = False) -> Op:
        """Compile statements in order; ``loop`` says that a break among them is ours to handle."""
        ops = [self.stmt(s, ctx) for s in body]
        if any(o.gen is not None and o.role is not None for o in ops):
            ops = self.roles(ops, body)
        return sequence(ops, breaks=loop or breaks(body))

    def roles(self, ops: list[Op], body: ir.Body) -> list[Op]:
        """A hook: neighbouring branches of different threads run at the same time."""
        return ops

    def stmt(self, s: ir.Stmt, ctx: Context) -> Op:
        """Compile one statement."""
        ctx = ctx.at(s.loc)
        table = printed_table(s, self.thread_vars)
        if table is not None:
            return prints.table(self, table, ctx)
        method = self.more_stmts.get(type(s)) or _METHODS.get(type(s))
        if method is None:
            raise Unsupported(f"the statement {type(s).__name__}", ctx.loc)
        return method(self, s, ctx)

    def _bind(self, s: ir.Bind, ctx: Context) -> Op:
        if isinstance(s.value, ir.Call) and s.value.op in ADDRESSES:
            self.pointers[s.var] = s.value
            return Op(nothing)
        value = s.value
        if isinstance(value, ir.Call) and value.op == "tirx.reinterpret" and value.dtype == "handle" and len(value.args) == 1:
            self.addresses.add(s.var)
            value = value.args[0]
        ex = self.expr(value, ctx)
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
        aff, frozen = self.freeze(ex.aff)
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

        update = waste.updated_by_all(s, ctx)
        if update is not None:
            write = _first(update, write)
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
            return self.branch(ctx, cond, yes, no)._replace(role=role, loc=ctx.loc)
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

        return self._in_nest(plan, run)._replace(role=role, loc=ctx.loc)

    def branch(self, ctx: Context, cond: Ex, yes: Op, no: Op) -> Op:
        """A hook: a branch in which something waits."""
        raise Unsupported("waiting inside a branch", ctx.loc)

    # --------------------------------------------------------------------------------------------------- others
    def _block(self, s: ir.Block, ctx: Context) -> Op:
        ready = [*(self.allocate(b, ctx, s.attrs) for b in s.allocs), *self.gather(ctx)]
        return sequence([*ready, self.body(s.body, ctx)], breaks=breaks(s.body))

    def gather(self, ctx: Context) -> list[Op]:
        """A hook: what is done when the buffers of a block are there."""
        return []

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
        if name == "tirx.call_extern" and call.args and isinstance(call.args[0], ir.Str) and call.args[0].value in self.effects:
            name = call.args[0].value
        if name in self.effects:
            return self.effects[name](self, call, ctx)
        if is_print(s):
            return prints.one(self, s, ctx)
        plan, ctx = self._single_nest(ctx, (call,))
        fn = self.expr(call, ctx).fn

        def run(fr: Frame) -> None:
            fn(fr)

        return self._in_nest(plan, run)


_METHODS: dict[type, Callable[[Any, Any, Context], Op]] = {
    ir.Store: StmtCompiler._store, ir.Eval: StmtCompiler._eval, ir.Bind: StmtCompiler._bind, ir.For: LoopCompiler._for,
    ir.While: LoopCompiler._while, ir.If: StmtCompiler._if, ir.Block: StmtCompiler._block, ir.Alloc: StmtCompiler._alloc,
    ir.Attribute: StmtCompiler._attribute, ir.Assert: StmtCompiler._assert,
}  # fmt: skip


def _threads_of(fc: Callable[[Frame], Value]) -> Callable[[Frame], Any]:
    return lambda fr: both(fr.mask, fc(fr)) if isinstance(fc(fr), np.ndarray) else np.asarray(bool(fc(fr)))

"""The iteration space of a tile operation: lane axes for its region, as if it were a T.Parallel nest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.sim.access import Access
from tilelab.sim.context import Context
from tilelab.sim.expr import affine_fn, binary
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Aff, Ex, Frame, Unsupported
from tilelab.sim.taint import is_local


class Space:
    """Lane axes of ``extents`` added to a context."""

    def __init__(self, comp: Any, ctx: Context, extents: tuple[Ex, ...], what: str, *, tile: bool = True) -> None:
        self.comp, self.outer, self.extents, self.what = comp, ctx, extents, what
        base = ctx.rank
        self.axes = tuple(range(base, base + len(extents)))
        comp.max_rank = max(comp.max_rank, base + len(extents))
        self.tile = tile  # the threads of the block do it together
        names = tuple((f"i{d}", a, None) for d, a in enumerate(self.axes))
        self.ctx = replace(
            ctx, rank=base + len(extents), parallel=(*ctx.parallel, *names), extents=(*ctx.extents, *extents), nest=None, each=not tile
        )
        self.vars = tuple(
            Ex(
                dtype="int32",
                fn=affine_fn(Aff(0, ((a, 1),)), self.ctx.rank, "int32"),
                axes=frozenset({a}),
                aff=Aff(0, ((a, 1),)),
                key=("axis", a),
            )
            for a in self.axes
        )

    def access(self, region: ir.Region, at: tuple[Ex | None, ...], kind: str) -> Access:
        """The access of ``region`` with the axis ``at`` added to each of its dimensions (None: only its first element)."""
        indices = []
        for low, v in zip(region.mins, at, strict=True):
            ex = self.comp.expr(low, self.ctx)
            indices.append(ex if v is None else binary("add", ex.dtype, ex, v, self.ctx.rank) if ex.const != 0 else v)
        acc: Access = self.comp.access(region.buffer, tuple(indices), self.ctx, self.what, kind)
        return acc

    def runs(self, act: Callable[[Frame], None]) -> Callable[[Frame], None]:
        """``act`` with the axes in place (and the mask taken over all threads)."""
        fns = tuple(e.fn for e in self.extents)
        consts = tuple(e.const for e in self.extents)
        axes, count = self.axes, len(self.axes)
        threads = self.outer.grid.thread_axes if self.tile else ()

        def run(fr: Frame) -> None:
            old, outer = fr.mask, fr.outer
            if threads:
                fr.outer = old
            if old is not None:
                mask = old.any(axis=threads, keepdims=True) if threads else old
                fr.mask = mask.reshape(mask.shape + (1,) * count)
            size = fr.size
            for a, n, fn in zip(axes, consts, fns, strict=True):
                size[a] = n if n is not None else int(fn(fr))
            act(fr)
            for a in axes:
                size[a] = 1
            fr.mask, fr.outer = old, outer

        return run


def pointee(comp: Any, e: ir.Expr, ctx: Context) -> ir.Load:
    """The element that an address points to.

    Raises:
        Unsupported: It is not an element of a buffer.
    """
    e = comp.pointers.get(e, e)
    if isinstance(e, ir.Call) and e.op in ("tl.access_ptr", "tirx.address_of") and isinstance(e.args[0], ir.Load):
        return e.args[0]
    if isinstance(e, ir.Call) and e.op == "tirx.tvm_access_ptr" and isinstance(e.args[1], ir.Var):
        load: ir.Load = comp.flat_element(e.args[1], e.args[2], ctx)
        return load
    raise Unsupported("an address that is not an element of a buffer", ctx.loc)


def per_thread(comp: Any, s: ir.Tile) -> bool:
    """Whether each thread does this operation by itself: it touches per-thread storage, or is made from the thread."""
    if not (comp.taint and comp.taint.any):
        return False
    regions = [a for a in s.args if isinstance(a, ir.Region)]
    return any(is_local(r.buffer) for r in regions) or any(comp.taint.hard(a) for a in s.args)


def extent_of(ex: Ex) -> int | None:
    """The extent where it is known when compiling."""
    return ex.const if isinstance(ex.const, int) else None


def op(run: Callable[[Frame], None]) -> Op:
    """A statement that does not wait."""
    return Op(run)

"""One program compiled: its launches, its buffers, and how each launch runs over chunks of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tilelab import ir
from tilelab.finding import Finding
from tilelab.ops import SPELLING
from tilelab.sim import (
    allreduce,
    clusters,
    draws,
    dtypes,
    effects,
    outputs,
    ownership,
    reducers,
    roles,
    sync,
    thread_loops,
    threads,
    vectors,
    waste,
)
from tilelab.sim.access import Access
from tilelab.sim.context import Context, Grid
from tilelab.sim.expr import affine_fn
from tilelab.sim.flow import Op, nothing
from tilelab.sim.lanes import Aff, Ex, Frame, Unsupported, both
from tilelab.sim.launch import Edge, Launch
from tilelab.sim.memory import Buf, view_of
from tilelab.sim.pointers import pointed
from tilelab.sim.refused import why
from tilelab.sim.taint import Taint, is_local, stored_buffers
from tilelab.sim.tileops import CALLS, EFFECTS, TABLE


class Compiler(vectors.VectorCompiler):
    """Compiles a whole Program."""

    calls: ClassVar = {**threads.CALLS, **clusters.CALLS, **draws.CALLS, **vectors.CALLS, **CALLS}
    effects: ClassVar = {
        **effects.EFFECTS,
        **sync.EFFECTS,
        **clusters.EFFECTS,
        **draws.EFFECTS,
        **vectors.EFFECTS,
        **EFFECTS,
        **allreduce.EFFECTS,
    }
    more: ClassVar = vectors.EXPRESSIONS

    def __init__(self, program: ir.Program) -> None:
        super().__init__()
        self.more_stmts = {
            ir.Launch: Compiler.launch,
            ir.Tile: Compiler._tile,
            ir.Declare: Compiler._declare,
            ir.Block: Compiler._block,
            ir.Attribute: Compiler._attribute,
        }
        self.program = program
        self.specs: list[ir.Buffer] = []
        body = reducers.as_updates(program)
        self.stored = stored_buffers(body)
        self.edges: list[Edge] = []
        self.live: list[tuple[Any, int]] = []  # (extents of a buffer or space, bytes an element), for the size of a chunk
        self.findings: list[Any] = []
        self.launches = 0
        self.block_uniform = True  # where something waits, control flow is the same in all blocks
        self.budgets: dict[str, tuple[Finding, ...]] = {}  # target → what does not fit it
        self.cluster: tuple[int, ...] = (1, 1, 1)  # blocks of a cluster in the launch being compiled
        self.uneven: set[int] = set()  # block axes on which the length of a loop depends
        self.between_blocks = False  # blocks wait for each other
        self.takes_over = False  # blocks ask for the work of those that have not begun
        self.rng: tuple[int, int] | None = None  # slot of the random states, and the rank where they were made
        self.barriers: dict[ir.Var, tuple[int, ...]] = {}  # data pointer → arrivals of each mbarrier
        self.views: dict[ir.Buffer, int] = {}  # another shape or dtype of known storage → its slot
        self.views_of: dict[int, list[Any]] = {}
        self.aliased = _aliased(program)
        self.tiled = outputs.tiled(program)
        self.ranges: dict[ir.Var, tuple[int, int]] = {}  # of the indices of blocks and threads, where they are known
        self.reducers: dict[ir.Var, str] = {}  # data pointer → operation
        self.combiner = ""  # how the reduction over threads that is being compiled combines
        self.safe: dict[ir.Var, Any] = {}  # data pointer → what masked reads give
        self.pools: dict[str, tuple[int, ir.Buffer, ir.Var]] = {}  # dtype → the flat buffer of what addresses reach
        self.pools_written: set[int] = set()
        self.static: list[Any] = []
        self.host = Context(grid=Grid(), rank=0, host=True)
        self.params = [self._param(p) for p in program.params]
        self.op = self.body(body, self.host)

    # -------------------------------------------------------------------------------------------------- buffers
    def _param(self, p: ir.Param) -> tuple[ir.Param, int]:
        if p.buffer is None:
            return p, self.define(p.var, self.host)
        for n in (*p.buffer.shape, *p.buffer.strides, *([p.buffer.elem_offset] if p.buffer.elem_offset is not None else [])):
            for v in ir.walk(n):
                if isinstance(v, ir.Var) and v not in self.scope:
                    self.define(v, self.host)
        return p, self.slot_of(p.buffer, self.host)

    def slot_of(self, buffer: ir.Buffer, ctx: Context) -> int:
        """The slot of a buffer; a new one for a pointer that is not known yet."""
        if buffer.data not in self.buffers:
            self.buffers[buffer.data] = len(self.specs)
            self.specs.append(buffer)
        slot = self.buffers[buffer.data]
        first = self.specs[slot]
        if first is not buffer and not _same_shape(first, buffer):
            return self.alias(slot, buffer, ctx)
        return slot

    def alias(self, slot: int, buffer: ir.Buffer, ctx: Context) -> int:
        """A second view of the storage in ``slot``: its own slot, made whenever that storage is."""
        if buffer not in self.views:
            own = self.views[buffer] = len(self.specs)
            self.specs.append(buffer)
            shape = self.exprs(buffer.shape, ctx)
            strides = self.exprs(buffer.strides, ctx)
            offset = self.expr(buffer.elem_offset, ctx) if buffer.elem_offset is not None else None
            self.views_of.setdefault(slot, []).append((own, buffer, shape, strides, offset))
        return self.views[buffer]

    def flat_element(self, data: ir.Var, offset: ir.Expr, ctx: Context) -> ir.Load:
        """Element ``offset`` of the storage of ``data``, counted in C order, as an element of its buffer."""
        if data not in self.buffers:
            raise Unsupported(f"the address of {data.name}, which is no buffer", ctx.loc)
        buffer = self.specs[self.buffers[data]]
        indices: list[ir.Expr] = []
        rest = offset
        for e in reversed(buffer.shape[1:]):
            indices.insert(0, ir.Bin(dtype=rest.dtype, op="floormod", a=rest, b=e))
            rest = ir.Bin(dtype=rest.dtype, op="floordiv", a=rest, b=e)
        return ir.Load(dtype=buffer.dtype, buffer=buffer, indices=(rest, *indices))

    def make_views(self, fr: Frame, slot: int) -> None:
        """Make the views of the storage that has just been made."""
        for own, buffer, shape, strides, offset in self.views_of.get(slot, ()):
            sizes = tuple(int(e.fn(fr)) for e in shape)
            steps = tuple(int(e.fn(fr)) for e in strides) or None
            fr.mem[own] = view_of(fr.mem[slot], buffer, sizes, steps, int(offset.fn(fr)) if offset is not None else 0)

    def lanes_of(self, buffer: ir.Buffer, ctx: Context) -> int:
        """How many lane axes the storage of ``buffer`` has here."""
        if buffer.scope == "global":
            return 0
        if buffer.data in self.lanes:
            return self.lanes[buffer.data]
        return len(ctx.grid.blocks) + (len(ctx.grid.threads) if is_local(buffer) else 0)

    def access(self, buffer: ir.Buffer, indices: tuple[Ex, ...], ctx: Context, what: str = "", kind: str = "read") -> Access:
        """Make an access and tell the parallel space around it."""
        if len(indices) != len(buffer.shape):
            raise Unsupported(f"{len(indices)} indices into {buffer.name}, which has {len(buffer.shape)} dimensions", ctx.loc)
        if ctx.host and buffer.scope != "global":
            raise Unsupported(f"{buffer.name} outside a kernel", ctx.loc)
        from_address = buffer.data in self.pointers or buffer.data in self.addresses
        if from_address:
            acc: Access = pointed(self, buffer, indices, ctx, what)
        else:
            slot, lanes = self.slot_of(buffer, ctx), self.lanes_of(buffer, ctx)
            acc = Access(buffer, slot, lanes, indices, ctx, what, buffer.data in self.stored)
            acc.safe = self.safe.get(buffer.data, 0)
        if kind == "read" and not what:
            found = ownership.read_by_all(buffer, ctx)
            if found is not None:
                self.static.append(found)
        if ctx.nest is not None and kind in ("read", "write") and not is_local(buffer):
            ctx.nest.accesses.append((acc, kind))
        if buffer.scope == "global" and not from_address:
            self._edge(acc)
        return acc

    def pool_of(self, buffer: ir.Buffer, *, written: bool) -> int:
        """The slot of the flat buffer that shows what addresses reach, in the dtype of ``buffer``."""
        dtype = dtypes.parse(buffer.dtype)[0]
        if dtype not in self.pools:
            data = ir.Var(dtype="handle", name=f"memory_{dtype}")
            flat = ir.Buffer(name=f"memory of {dtype}", dtype=dtype, shape=(ir.Const(dtype="int32", value=0),), scope="global", data=data)
            slot = self.buffers[data] = len(self.specs)
            self.specs.append(flat)
            self.pools[dtype] = (slot, flat, data)
        slot, _, data = self.pools[dtype]
        if written:
            self.stored.add(data)
            self.pools_written.add(slot)
        return slot

    def _edge(self, acc: Access) -> None:
        nb = len(acc.ctx.grid.blocks)
        for d, (aff, _) in enumerate(acc.dims):
            if aff is None:
                continue
            blocks = [(a, c) for a, c in aff.terms if a < nb]
            if len(blocks) == 1 and isinstance(blocks[0][1], int) and blocks[0][1] > 0:
                self.edges.append(Edge(axis=blocks[0][0], access=acc, dim=d))

    def read_attrs(self, attrs: Any) -> None:
        """Take what a block's attributes say about its buffers."""
        for key in ("reducer_info", "reducer_info_v2"):
            for data, about in _items(attrs.get(key)):
                self.reducers[data] = str(dict(_items(about)).get("op", "sum"))
        for data, counts in _items(attrs.get("barrier_init")):
            self.barriers[data] = tuple(int(n.value if isinstance(n, ir.Const) else n) for n in counts)
        for data, value in _items(attrs.get("safe_value_map")):
            self.safe[data] = self.expr(value, self.host).fn(Frame(None, 0, 0, 0)) if isinstance(value, ir.Expr) else value

    def _attribute(self, s: ir.Attribute, ctx: Context) -> Op:
        outer = self.combiner
        if s.key == allreduce.SCOPE:
            self.combiner = allreduce.combiner(s.target)
        op = super()._attribute(s, ctx)
        self.combiner = outer
        return op

    def _block(self, s: ir.Block, ctx: Context) -> Op:
        around = dict(self.safe)
        self.read_attrs(s.attrs)
        op = super()._block(s, ctx)
        self.safe = around  # what masked reads give is said for the block and what is in it
        return op

    def allocate(self, buffer: ir.Buffer, ctx: Context, attrs: Any) -> Op:
        """Fresh, uninitialised storage for ``buffer``, each time this is reached."""
        slot = self.slot_of(buffer, ctx)
        if buffer.scope.endswith("barrier"):
            return self._barriers(buffer, slot, ctx)
        shape = self.exprs(buffer.shape, ctx)
        lanes = self.lanes_of(buffer, ctx)
        fns = tuple(e.fn for e in shape)
        consts = tuple(e.const for e in shape)
        known = tuple(int(c) for c in consts) if all(isinstance(c, int) for c in consts) else None
        if not ctx.host:
            self.live.append(
                (
                    shape,
                    dtypes.carrier(buffer.dtype).itemsize
                    * (max(1, int(np.prod(ctx.grid.extents))) if is_local(buffer) and ctx.grid.threads else 1),
                )
            )
        if buffer.scope == "global":
            return Op(lambda fr: fr.run.alloc_global(fr, slot, buffer, tuple(int(f(fr)) for f in fns)))

        def run(fr: Frame) -> None:
            buf = Buf(buffer.name, buffer.dtype, buffer.scope, known or tuple(int(f(fr)) for f in fns), lanes, buffer.loc)
            if variable:  # TileLang's code starts a variable at 0
                buf.fill_with(0)
            fr.mem[slot] = buf

        variable = buffer.scope == "local.var"
        if buffer.data not in self.aliased:
            return Op(run)

        def pinned(fr: Frame) -> None:
            run(fr)
            fr.mem[slot].pin(tuple(fr.size[:lanes]))
            self.make_views(fr, slot)

        return Op(pinned)

    def _barriers(self, buffer: ir.Buffer, slot: int, ctx: Context) -> Op:
        counts = self.barriers.get(buffer.data)
        if counts is None:
            raise Unsupported(f"the barrier {buffer.name}, whose arrival count is not known", ctx.loc)

        def run(fr: Frame) -> None:
            fr.mem[slot] = sync.Barriers(buffer.name, counts)

        return Op(run)

    # ------------------------------------------------------------------------------------------------- launches
    def launch(self, s: ir.Launch, ctx: Context) -> Op:
        """A kernel launch: compiled over lanes of blocks, run in chunks."""
        s = thread_loops.bound(s)
        grid_ex, thread_ex = self.exprs(s.grid, ctx), self.exprs(s.threads, ctx)
        extents = tuple(e.const if isinstance(e.const, int) else 0 for e in thread_ex)
        if not all(extents):
            raise Unsupported("a number of threads known only when it runs", s.loc)
        extents = (*extents, 1, 1, 1)[:3]
        if draws.draws(s):
            s = replace(s, body=draws.shared_out(s.body, s.thread_vars, (extents[0], extents[1], extents[2])))
        self.thread_vars = frozenset(s.thread_vars)
        varying = tuple(v for v, n in zip(s.thread_vars, extents, strict=False) if n > 1)
        self.taint = Taint(s.body, varying)
        blocks = tuple(c for c in (2, 1, 0) if c < len(grid_ex) and grid_ex[c].const != 1)
        threads = tuple(c for c in (2, 1, 0) if extents[c] > 1) if self.taint.any else ()
        grid = Grid(blocks=blocks, threads=threads, extents=(extents[0], extents[1], extents[2]))
        self.max_rank = max(self.max_rank, grid.rank)
        inner = Context(grid=grid, rank=grid.rank, loc=s.loc)
        known = [(v, e.const) for v, e in zip(s.block_vars, grid_ex, strict=True)] + list(zip(s.thread_vars, extents, strict=False))
        self.ranges = {v: (0, n - 1) for v, n in known if isinstance(n, int) and n > 0}
        self._axis_vars(s.block_vars, grid.block_axis, inner)
        self._axis_vars(s.thread_vars, grid.thread_axis, inner)
        self.block_uniform, self.between_blocks, self.uneven, self.takes_over = True, False, set(), False
        given: Any = s.attrs.get("cluster_dims") or ()
        dims = (*(int(n) for n in given), 1, 1, 1)[:3]
        self.cluster = dims if int(np.prod(dims)) > 1 else (1, 1, 1)
        outer_edges, outer_live = self.edges, self.live
        self.edges, self.live = [], []
        try:
            op = self.body(s.body, inner)
        finally:
            edges, live = self.edges, self.live
            self.edges, self.live = outer_edges, outer_live
        self.launches += 1
        stored = stored_buffers(s.body)
        shared = (
            *(slot for data, slot in self.buffers.items() if data in stored and self.specs[slot].scope == "global"),
            *self.pools_written,
        )
        launch = Launch(self, s, grid, tuple(grid_ex), op, edges, live, shared)
        launch.single = op.gen is not None and (self.between_blocks or not self.block_uniform)
        launch.cluster = self.cluster
        launch.single |= launch.cluster != (1, 1, 1) or self.takes_over
        launch.between, launch.uneven, launch.takes_over = self.between_blocks, self.uneven, self.takes_over
        self.taint = None
        return Op(launch.run)

    def _axis_vars(self, variables: tuple[ir.Var, ...], axis_of: Any, ctx: Context) -> None:
        for c, var in enumerate(variables):
            axis = axis_of(c)
            if axis is None:
                self.scope[var] = (Ex(dtype=var.dtype, fn=lambda fr: 0, aff=Aff(0), const=0, key=("c", var.dtype, 0)), ctx.rank)
            else:
                aff = Aff(0, ((axis, 1),))
                fn = affine_fn(aff, ctx.rank, var.dtype)
                self.scope[var] = (Ex(dtype=var.dtype, fn=fn, axes=frozenset({axis}), aff=aff, key=("axis", axis)), ctx.rank)

    # ----------------------------------------------------------------------------------------- hooks of statements
    def _tile(self, s: ir.Tile, ctx: Context) -> Op:
        if s.op not in TABLE:
            reason = why(f"tl.tileop.{s.op}")
            raise Unsupported(SPELLING.get(s.op, f"T.{s.op}") + (f" ({reason})" if reason else ""), ctx.loc)
        return TABLE[s.op](self, s, ctx)

    def check_loop(self, s: ir.For, ctx: Context) -> None:
        """TL601 and TL802, found when compiling."""
        found = (waste.repeated(s, ctx, self.taint), waste.lost_guard(s, ctx, self.ranges))
        self.static += [f for f in found if f is not None]

    def gather(self, ctx: Context) -> list[Op]:
        """The blocks of a cluster wait here for each other's buffers to be there."""
        return [clusters.start()] if self.cluster != (1, 1, 1) and not ctx.host else []

    def waits(self, body: ir.Body) -> bool:
        """Whether anything in ``body`` may wait."""
        return sync.waits(body)

    def spins(self, s: ir.While) -> bool:
        """Whether a while loop polls what others write."""
        polls = sync.spins(s)
        self.between_blocks |= polls
        return polls

    def spin(self, fr: Frame, s: ir.While, ctx: Context) -> Any:
        """Wait until anything in memory has changed."""
        run, seen = fr.run, fr.run.version
        return sync.Wait(lambda: run.version != seen, lambda: "a value in memory that nobody changes any more", "spin", ctx, fr)

    def uniform_or_not(self, ctx: Context, *conditions: Ex) -> None:
        """Note whether blocks may go different ways around something that waits."""
        self.block_uniform &= not any(a < len(ctx.grid.blocks) for c in conditions for a in c.axes)

    def splits(self, ctx: Context, *bounds: Ex) -> None:
        """Blocks whose loops differ in length are better run apart than masked."""
        self.uneven |= {a for b in bounds for a in b.axes if a < len(ctx.grid.blocks)}

    def roles(self, ops: list[Op], body: ir.Body) -> list[Op]:
        """Runs of neighbouring branches that concern different threads become one statement in which they run together."""
        out: list[Op] = []
        group: list[tuple[Op, ir.Stmt]] = []
        for op, s in [*zip(ops, body, strict=True), (Op(nothing), None)]:
            if op.role is not None and s is not None:
                group.append((op, s))
                continue
            found = tuple(o for o, _ in group)
            if len(found) > 1 and any(o.gen for o in found):
                found = (Op(found[0].run, roles.side_by_side(found, roles.barriers_between([s for _, s in group]))),)
            out.extend(found)
            group = []
            out.append(op)
        return out

    def branch(self, ctx: Context, cond: Ex, yes: Op, no: Op) -> Op:
        """The sides of a branch in which something waits are roles, each a coroutine."""
        self.uniform_or_not(ctx, cond)
        fc = cond.fn

        def side(op: Op, fr: Frame, mask: Any) -> sync.Waiting:
            fr.mask = fr.role = mask
            if op.gen is not None:
                yield from op.gen(fr)
            else:
                op.run(fr)

        def gen(fr: Frame) -> sync.Waiting:
            c = fc(fr)
            if not isinstance(c, np.ndarray):
                op = yes if c else no
                if op.gen is not None:
                    yield from op.gen(fr)
                else:
                    op.run(fr)
                return
            old = fr.mask
            tasks = []
            for op, on in ((yes, both(old, c)), (no, both(old, ~c))):
                if (op.run is nothing and op.gen is None) or not on.any():
                    continue
                tasks.append(side(op, fr.fork(), None if old is None and on.all() else on))
            yield from roles.together(tasks)

        return Op(yes.run, gen)

    def _declare(self, s: ir.Declare, ctx: Context) -> Op:
        self.slot_of(s.buffer, ctx)
        return Op(nothing)


def _same_shape(a: ir.Buffer, b: ir.Buffer) -> bool:
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return False
    return all(
        x is y or (isinstance(x, ir.Const) and isinstance(y, ir.Const) and x.value == y.value)
        for x, y in zip(a.shape, b.shape, strict=True)
    )


def _aliased(program: ir.Program) -> set[ir.Var]:
    """Data pointers that the program sees in more than one shape or dtype."""
    seen: dict[ir.Var, ir.Buffer] = {p.buffer.data: p.buffer for p in program.params if p.buffer is not None}
    out = set()
    for n in ir.walk(program):
        found = [n.buffer] if isinstance(n, ir.Load | ir.Store | ir.Region) else list(n.allocs) if isinstance(n, ir.Block) else []
        for b in found:
            if not _same_shape(seen.setdefault(b.data, b), b):
                out.add(b.data)
    return out


def _items(m: Any) -> Any:
    return m.items if isinstance(m, ir.AttrMap) else ()

"""The recording of chosen blocks: every statement that runs becomes an :class:`tilelab.trace.Event`.

A program is compiled a second time for this, with each statement wrapped, so that ordinary runs pay nothing. A recorded
block is run in a chunk of its own: what its statements do to shared tensors is seen in the order of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.ops import SPELLING
from tilelab.sim import dtypes, origin, sync
from tilelab.sim.context import Context, Grid
from tilelab.sim.flow import Op
from tilelab.sim.kernel import Compiler
from tilelab.sim.lanes import Frame, Stop
from tilelab.sim.launch import Launch
from tilelab.sim.memory import Buf
from tilelab.sim.snapshots import After, Keeper, Snapshot
from tilelab.sim.taint import PARALLEL, printed_table
from tilelab.trace import BufferInfo, Event, SimParams

Block = tuple[int, int, int]

#: Bytes that a record of one step costs, apart from the values in it.
EVENT_BYTES = 600
#: Tensors in global memory up to this many bytes are compared as a whole after each step that writes them.
WHOLE_BYTES = 1 << 16
_TEXT = 160  # characters kept of a statement
#: Calls after which a copy that was under way may have landed.
_LANDINGS = ("barrier", "wait_group", "wait_parity")


# ------------------------------------------------------------------------------------------------- compiling
class Recording(Compiler):
    """A compiler whose statements tell the recorder what they did."""

    def __init__(self, program: ir.Program) -> None:
        self.named: dict[Any, str] = {}  # slot of a buffer → the name it is recorded under
        self.flights = {
            r.buffer.data for s in ir.walk(program) if isinstance(s, ir.Tile) and s.op in ("tma_copy", "async_copy") for r in s.args
            if isinstance(r, ir.Region) and "w" in r.access and r.buffer.scope != "global"
        }  # fmt: skip
        super().__init__(program)

    def stmt(self, s: ir.Stmt, ctx: Context) -> Op:
        """Compile ``s``; where it is a step, the recorder is told when it has run."""
        op = super().stmt(s, ctx)
        if ctx.host or ctx.parallel or not _is_step(s, self.thread_vars):
            return op
        return Site(self, s, ctx.at(s.loc)).wrap(op)

    def name_of(self, slot: int) -> str:
        """The name of the buffer in ``slot``, made unique: two buffers may be called the same."""
        if slot not in self.named:
            name, taken, n = self.specs[slot].name, set(self.named.values()), 1
            while (name if n == 1 else f"{name}_{n}") in taken:
                n += 1
            self.named[slot] = name if n == 1 else f"{name}_{n}"
        return self.named[slot]


def _is_step(s: ir.Stmt, threads: frozenset[ir.Var]) -> bool:
    if isinstance(s, ir.For):
        return s.kind in PARALLEL
    if isinstance(s, ir.If):
        return printed_table(s, threads) is not None
    return isinstance(s, ir.Store | ir.Eval | ir.Bind | ir.Tile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Touched:
    """A buffer that a step may write. ``window`` gives the box of it that is touched, where that is known."""

    data: ir.Var
    sure: bool = True
    window: Callable[[Frame], tuple[slice, ...] | None] | None = None


class Site:
    """One statement of the program, as the recorder sees it."""

    def __init__(self, comp: Recording, s: ir.Stmt, ctx: Context) -> None:
        self.comp, self.s, self.ctx = comp, s, ctx
        self.loc = _lines(s)
        self.text = describe(s, self.loc, comp.program)
        self.touched = tuple(_touched(comp, s, ctx))
        self.read = tuple(dict.fromkeys(n.buffer.data for n in _read(s)))
        self.infinite = any(_infinite(n) for n in ir.walk(s))  # an infinity is written on purpose
        self.bound = s.var if isinstance(s, ir.Bind) and s.var.dtype != "handle" else None
        self.quiet = self.bound is not None and comp.scope[self.bound][0].const is not None  # a name for a constant
        self.barriers = tuple({n.buffer.data for n in ir.walk(s) if isinstance(n, ir.Load) and n.buffer.scope.endswith("barrier")})

    def wrap(self, op: Op) -> Op:
        """Tell the recorder after ``op``, and before it where it has to wait."""
        if self.quiet:
            return op
        inner, waiting = op.run, op.gen

        def run(fr: Frame) -> None:
            if fr.record is None:
                inner(fr)
                return
            recorder: Recorder = fr.run.recorder
            mark = recorder.mark(fr)
            try:
                inner(fr)
            finally:
                recorder.step(self, fr, mark)

        def gen(fr: Frame) -> sync.Waiting:
            assert waiting is not None
            if fr.record is None:
                yield from waiting(fr)
                return
            recorder: Recorder = fr.run.recorder
            mark, waited = recorder.mark(fr), False
            for wait in waiting(fr):
                if not waited:
                    recorder.waits(self, fr, wait.what())
                waited = True
                yield wait
            recorder.step(self, fr, mark)

        return op._replace(run=run, gen=gen if waiting is not None else None)

    def reads(self) -> tuple[str, ...]:
        """The names of the buffers that are read."""
        return tuple(self.comp.name_of(self.comp.buffers[d]) for d in self.read if d in self.comp.buffers)


def _infinite(n: Any) -> bool:
    if isinstance(n, ir.Const):
        return isinstance(n.value, float) and not np.isfinite(n.value)
    return n.op == "tl.infinity" if isinstance(n, ir.Call) else isinstance(n, ir.Tile) and n.op == "fill"


def _leaves(s: ir.Stmt) -> list[ir.Stmt]:
    return [n for n in ir.walk(s) if isinstance(n, ir.Store | ir.Eval | ir.Bind | ir.Tile)]


def _lines(s: ir.Stmt) -> ir.SourceLoc | None:
    """The lines of a step: a parallel loop stands for its whole body, as far as that is in the same file."""
    loc = s.loc
    if loc is None or not isinstance(s, ir.For):
        return loc
    last = max([n.loc.line for n in _leaves(s) if n.loc is not None and n.loc.file == loc.file], default=loc.line)
    return replace(loc, end_line=max(last, loc.end_line))


def describe(s: ir.Stmt, loc: ir.SourceLoc | None, program: ir.Program) -> str:
    """The statement as the user wrote it, or else the operation and its buffers."""
    lines = program.sources.get(loc.file, "").splitlines() if loc is not None else []
    if loc is not None and 0 < loc.line <= len(lines):
        text = lines[loc.line - 1].strip()
        if isinstance(s, ir.For) and loc.end_line == loc.line + 1:
            text = f"{text} {lines[loc.end_line - 1].strip()}"
        if not text.startswith("with "):  # the span of a scope stands for statements that have none of their own
            return text[:_TEXT]
    wrote = ", ".join(dict.fromkeys(b.name for n in _leaves(s) for b, _ in _writes(n)))
    used = ", ".join(dict.fromkeys(n.buffer.name for n in _read(s)))
    what = SPELLING.get(s.op, s.op) if isinstance(s, ir.Tile) else {ir.For: "T.Parallel", ir.Bind: "let", ir.Eval: "call"}.get(type(s), "")
    return f"{what} {used} → {wrote}".strip(" →")


def _writes(n: ir.Stmt) -> Iterable[tuple[ir.Buffer, ir.Expr | ir.Store | None]]:
    """What one statement writes: the buffer, and what says where (None: it is not known)."""
    if isinstance(n, ir.Store):
        yield n.buffer, n
    elif isinstance(n, ir.Tile):
        yield from ((a.buffer, a) for a in n.args if isinstance(a, ir.Region) and "w" in a.access)
    if isinstance(n, ir.Store | ir.Eval | ir.Bind):
        for e in ir.walk(n):
            if isinstance(e, ir.Call) and e.op in ("tl.access_ptr", "tirx.address_of", "tirx.tvm_access_ptr"):
                yield from ((x.buffer, None) for x in ir.walk(e) if isinstance(x, ir.Load))


def _read(s: ir.Stmt) -> list[Any]:
    out = []
    for n in ir.walk(s):
        if (isinstance(n, ir.Region) and "r" in n.access) or (isinstance(n, ir.Load) and not n.buffer.scope.endswith("barrier")):
            out.append(n)
    return out


def _touched(comp: Recording, s: ir.Stmt, ctx: Context) -> Iterable[Touched]:
    loops = tuple(n for n in ir.walk(s) if isinstance(n, ir.For))
    seen = set()
    writes = [(b, where) for n in _leaves(s) for b, where in _writes(n)]
    for b, where in writes:
        if b.data in seen or b.scope.endswith("barrier"):
            continue
        seen.add(b.data)
        once = sum(o.data is b.data for o, _ in writes) == 1
        at = origin.window(comp, ctx, where, loops) if once and where is not None and b.scope == "global" else None
        yield Touched(data=b.data, sure=where is not None, window=at)
    called = [n.op for n in ir.walk(s) if isinstance(n, ir.Call)]
    if comp.flights and any(part in op for op in called for part in _LANDINGS):
        yield from (Touched(data=data, sure=False) for data in comp.flights - seen)


# ------------------------------------------------------------------------------------------------- recording
class Recorder:
    """The events of one run, bounded by ``SimParams.record_bytes``."""

    def __init__(self, program: ir.Program, params: SimParams) -> None:
        self.program, self.limit = program, params.record_bytes
        self.blocks: set[Block] = {(b[0], b[1], b[2]) for b in ((*block, 0, 0) for block in params.record_blocks)}
        self.events: list[Event] = []
        self.keeper = Keeper()
        self.spent = 0  # bytes of events, apart from values
        self.left: dict[Block, int] = {}  # steps that did not fit
        self.buffers: dict[str, BufferInfo] = {}
        self.last: dict[tuple[Block, str], Snapshot] = {}
        self._roles: dict[int, tuple[Any, str]] = {}
        self._bad: dict[Block, set[str]] = {}  # which of NaN and Inf a block has met

    # ------------------------------------------------------------------------------------------ which blocks
    def cuts(self, grid: Grid, axis: int, n: int) -> list[int]:
        """Where to cut the blocks along lane ``axis``, so that recorded ones run alone."""
        at = {b[grid.blocks[axis]] for b in self.blocks}
        return [c for b in at for c in (b, b + 1) if 0 < c < n]

    def enter(self, launch: Launch, fr: Frame, chunk: tuple[tuple[int, int], ...]) -> None:
        """A chunk of blocks begins: if it is a recorded block, its first event shows what came in."""
        at = [0, 0, 0]
        for axis, (lo, hi) in enumerate(chunk):
            if hi - lo != 1:
                return
            at[launch.grid.blocks[axis]] = lo
        block = (at[0], at[1], at[2])
        if block not in self.blocks:
            return
        fr.record = block
        comp: Recording = launch.comp
        after: dict[str, Snapshot] = {}
        for p, slot in comp.params:
            buf = fr.mem[slot] if p.buffer is not None else None
            if p.buffer is not None and buf is not None and buf.init is not None:
                name = comp.name_of(slot)
                self.know(name, buf)
                array = np.asarray(buf.full())
                stays = p.buffer.data not in comp.stored  # never written: no copy is needed
                after[name] = self.keep(block, name, self.keeper.shared(array, buf.dtype) if stays else self.whole(buf, array, None))
        name = f"T.Kernel: block ({', '.join(map(str, block))}) begins"
        evidence = self.first_bad(block, after, lambda buffer, index: [], set())
        index, loc = len(self.events), launch.s.loc
        self.add(Event(index=index, block=block, role="", text=name, loc=loc, loops={}, after=After(after), evidence=evidence))

    # ---------------------------------------------------------------------------------------------- one step
    def mark(self, fr: Frame) -> tuple[int, dict[Any, int]]:
        """What there is before a step: prints and findings."""
        return len(fr.run.prints), {k: len(v) for k, v in fr.run.findings._kept.items()}

    def full(self, block: Block) -> bool:
        """Whether the bound is reached; counts the step that is left out."""
        if self.spent + self.keeper.nbytes < self.limit and block not in self.left:
            return False
        self.left[block] = self.left.get(block, 0) + 1
        return True

    def add(self, event: Event) -> None:
        """Keep one more event."""
        self.events.append(event)
        self.spent += EVENT_BYTES

    def waits(self, site: Site, fr: Frame, what: str) -> None:
        """A step cannot go on yet."""
        if not self.full(fr.record):
            self.add(self.event(site, fr, {}, text=f"{site.text}  waits for {what}"))

    def step(self, site: Site, fr: Frame, mark: tuple[int, dict[Any, int]]) -> None:
        """A statement has run."""
        block: Block = fr.record
        if self.full(block):
            return
        comp, run = site.comp, fr.run
        was = {name: self.last.get((block, name)) for name in site.reads()}
        after: dict[str, Snapshot] = {}
        for touched in site.touched:
            base = comp.buffers.get(touched.data)
            for slot in () if base is None else (base, *(own for own, *_ in comp.views_of.get(base, ()))):
                buf = fr.mem[slot]
                if isinstance(buf, Buf):
                    name = comp.name_of(slot)
                    self.know(name, buf)
                    old = self.last.get((block, name))
                    new = self.look(fr, buf, old, touched, slot == base)
                    if touched.sure or new is not old:
                        after[name] = new
        for data in site.barriers:
            bars = fr.mem[comp.buffers[data]]
            name = comp.name_of(comp.buffers[data])
            self.buffers.setdefault(name, BufferInfo(dtype="mbarrier", scope="shared.barrier", shape=(len(bars.phase),)))
            after[name] = self.keeper.new(np.array(bars.phase, np.int32), "int32", None, self.last.get((block, name)))
        if site.bound is not None:
            self.bind(site, fr, after)
        prints = tuple(range(mark[0], len(run.prints)))
        known = {kind for old in was.values() if old is not None for kind in old.bad()} | ({"Inf"} if site.infinite else set())
        evidence = self.first_bad(block, after, lambda buffer, index: origin.operands(site, fr, self, buffer, index), known)
        for name, new in after.items():
            self.keep(block, name, new)
        event = self.event(site, fr, after, prints=prints, evidence=evidence)
        for key, items in run.findings._kept.items():
            for item in items[mark[1].get(key, 0) :]:
                item["evidence"] = {**item.get("evidence", {}), "step": event.index}
        self.add(event)

    def event(self, site: Site, fr: Frame, after: dict[str, Snapshot], *, text: str = "", prints: Any = (), evidence: Any = None) -> Event:
        """Make the event of a site."""
        loops = {}
        for name, slot in site.ctx.loops:
            v = fr.v[slot]
            loops[name] = int(v) if np.ndim(v) == 0 else int(np.asarray(v).reshape(-1)[0])
        role = self.role(site.ctx, fr)
        threads = "" if fr.mask is None or fr.mask is fr.role else active(site.ctx.grid, fr, fr.mask)
        return Event(
            index=len(self.events), block=fr.record, role=role, text=text or site.text, loc=site.loc, loops=loops, after=After(after),
            reads=site.reads(), threads="" if threads == role else threads, prints=prints, evidence=evidence or {},
        )  # fmt: skip

    def role(self, ctx: Context, fr: Frame) -> str:
        """The threads whose coroutine runs."""
        if fr.role is None:
            return ""
        if id(fr.role) not in self._roles:
            self._roles[id(fr.role)] = (fr.role, active(ctx.grid, fr, fr.role))
        return self._roles[id(fr.role)][1]

    # ------------------------------------------------------------------------------------------------ values
    def know(self, name: str, buf: Buf) -> None:
        """Say what a name is."""
        if name not in self.buffers:
            self.buffers[name] = BufferInfo(dtype=buf.dtype, scope=buf.scope, shape=tuple(map(int, buf.shape)))

    def keep(self, block: Block, name: str, new: Snapshot) -> Snapshot:
        """Remember the latest value of a name."""
        self.last[block, name] = new
        return new

    def look(self, fr: Frame, buf: Buf, old: Snapshot | None, touched: Touched, own: bool) -> Snapshot:
        """The value of a buffer now."""
        if buf.base is not None:
            buf.pull()
        if buf.root is None:
            buf.full()
        if buf.is_global and own and buf.nbytes() > WHOLE_BYTES:
            box = touched.window(fr) if touched.window is not None else None
            if box is not None:
                if old is None:
                    old = self.keeper.constant(buf.shape, buf.dtype)
                init = buf.init if not isinstance(buf.init, np.ndarray) else buf.init[box]
                part = np.asarray(buf.full()[box])
                return self.keeper.patch(old, box, part, buf.dtype, _empty(init, part.shape))
        return self.whole(buf, buf.full(), old)

    def whole(self, buf: Buf, array: Any, old: Snapshot | None) -> Snapshot:
        """A snapshot of all of a buffer as this block sees it."""
        lanes = buf.lanes
        if buf.fill is not None and buf.init is True:
            return self.keeper.constant(buf.shape, buf.dtype, buf.fill)
        array, init = _of_block(array, lanes), buf.init
        if isinstance(init, np.ndarray):
            init = np.broadcast_to(_of_block(init, lanes), array.shape)
        return self.keeper.new(array, buf.dtype, _empty(init, array.shape), old)

    def bind(self, site: Site, fr: Frame, after: dict[str, Snapshot]) -> None:
        """The value of a variable that the step gave a name."""
        var = site.bound
        assert var is not None
        value = np.asarray(site.comp.scope[var][0].fn(fr))
        lanes = len(site.ctx.grid.blocks)
        if value.ndim > lanes:
            value = value[(0,) * lanes]
            value = value[..., 0] if value.size == 1 else value
        value = np.squeeze(value) if value.size == 1 else value
        if value.dtype.kind not in "biuf":
            return
        name = var.name
        self.buffers.setdefault(name, BufferInfo(dtype=var.dtype, scope="let", shape=tuple(value.shape)))
        after[name] = self.keeper.new(value, var.dtype, None, self.last.get((fr.record, name)))

    def first_bad(
        self, block: Block, after: dict[str, Snapshot], operands: Callable[[str, tuple[int, ...]], Any], known: set[str]
    ) -> dict[str, Any]:
        """The first NaN or Inf of the block that is not meant and was in no operand (``known``): which element, and from what."""
        met = self._bad.setdefault(block, set())
        for name, new in after.items():
            for kind in sorted(new.bad() - met - known, reverse=True):  # NaN before Inf
                met.add(kind)
                value = np.ma.getdata(new.get())
                bad = (np.isnan(value) if kind == "NaN" else np.isinf(value)) & ~np.ma.getmaskarray(new.get())
                index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
                number = "NaN" if kind == "NaN" else "Inf" if value[index] > 0 else "-Inf"
                found = {"buffer": name, "index": list(index), "value": number, "count": int(bad.sum())}
                return {"nan": {**found, "operands": operands(name, index)}}
        return {}

    def earlier(self, site: Site, fr: Frame, data: ir.Var) -> Any:
        """A buffer's value before the step that is being recorded, for what made it go wrong."""
        slot = site.comp.buffers[data]
        old = self.last.get((fr.record, site.comp.name_of(slot)))
        return None if old is None else old.get()

    # --------------------------------------------------------------------------------------------------- end
    def done(self) -> dict[str, Any]:
        """The fields of the Trace."""
        said = "; ".join(
            f"{n:,} later steps of block ({', '.join(map(str, b))}) are left out: "
            f"the recording is bounded by {_size(self.limit)} (SimParams.record_bytes)"
            for b, n in sorted(self.left.items())
        )
        about = {"sources": dict(self.program.sources), "kernel": self.program.name}
        return {"events": tuple(self.events), "truncated": said, "buffers": dict(self.buffers), **about}


def _of_block(array: Any, lanes: int) -> Any:
    """One block's part: block axes have size 1 here; axes of threads stay only where threads differ."""
    lsize = array.shape[:lanes]
    if all(n == 1 for n in lsize):
        return array[(0,) * lanes]
    return array[tuple(0 if n == 1 else slice(None) for n in lsize)]


def _empty(init: Any, shape: tuple[int, ...]) -> Any:
    """Which elements nobody has written: None where all are."""
    if init is True:
        return None
    if init is None:
        return np.ones(shape, np.bool_)
    return None if init.all() else ~init


def active(grid: Grid, fr: Frame, mask: Any) -> str:
    """Which threads of the block a mask lets through, in words; empty for all."""
    if not grid.threads or not isinstance(mask, np.ndarray):
        return ""
    axes = grid.thread_axes
    on = mask.any(axis=tuple(a for a in range(mask.ndim) if a not in axes))
    on = np.broadcast_to(on, [fr.size[a] for a in axes]).reshape(-1)
    ids = np.flatnonzero(on)
    if len(ids) == on.size:
        return ""
    if len(ids) == 1:
        return f"thread {ids[0]}"
    if len(ids) and ids[-1] - ids[0] == len(ids) - 1:
        return f"threads {ids[0]}–{ids[-1]}"
    return f"{len(ids)} of {on.size} threads"


def _size(n: int) -> str:
    return f"{n >> 20} MiB" if n >= 1 << 20 else f"{n >> 10} KiB" if n >= 1024 else f"{n} B"


__all__ = ["Recorder", "Recording", "Stop", "dtypes"]

"""Waiting: mbarriers, named barriers, grid barriers, spins, and the scheduler that runs whoever can go on.

A statement that may wait is a generator that yields a :class:`Wait`. The two sides of a branch that threads take
differently are roles: each runs as its own coroutine. A deadlock is when nobody can go on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.finding import finding
from tilelab.sim.checks import Place, first_lane
from tilelab.sim.context import Context
from tilelab.sim.effects import divergent
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Stop, Unsupported, scalar_of

Waiting = Generator["Wait", None, None]


class Wait:
    """Why a coroutine cannot go on."""

    __slots__ = ("block", "kind", "loc", "ready", "thread", "what")

    def __init__(self, ready: Callable[[], bool], what: Callable[[], str], kind: str, ctx: Context | None, fr: Frame | None) -> None:
        self.ready, self.what, self.kind = ready, what, kind
        self.loc = ctx.loc if ctx else None
        lane = first_lane(fr.mask) if fr is not None and fr.mask is not None else ()
        self.block = ctx.block(fr, lane) if ctx is not None and fr is not None else None
        self.thread = ctx.thread(lane) if ctx is not None and ctx.grid.threads else None


class Several(Wait):
    """Waits of several roles of a block."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Wait]) -> None:
        super().__init__(lambda: any(p.ready() for p in parts), lambda: "; ".join(p.what() for p in parts), "roles", None, None)
        self.parts = parts
        self.loc = parts[0].loc


def drive(tasks: Iterable[Waiting]) -> None:
    """Run coroutines until all have ended.

    Raises:
        Stop: None of those left can go on (TL206).
    """
    pending: list[tuple[Waiting, Wait | None]] = [(t, None) for t in tasks]
    while pending:
        left: list[tuple[Waiting, Wait | None]] = []
        moved = False
        for task, wait in pending:
            if wait is not None and not wait.ready():
                left.append((task, wait))
                continue
            moved = True
            try:
                left.append((task, next(task)))
            except StopIteration:
                continue
        pending = left
        if pending and not moved:
            raise Stop(deadlock([w for _, w in pending if w is not None]))


def deadlock(waits: list[Wait]) -> Any:
    """The finding of a deadlock: who waits for what."""
    flat: list[Wait] = []
    for w in waits:
        flat.extend(w.parts if isinstance(w, Several) else [w])
    first = flat[0]
    said: list[str] = []
    for w in flat:
        line = f"line {w.loc.line} waits for {w.what()}" if w.loc else f"somebody waits for {w.what()}"
        if line not in said:
            said.append(line)
    return finding(
        "TL206", f"deadlock: nobody can go on. {'; '.join(said[:4])}{'; …' if len(said) > 4 else ''}.",
        fix="check that each wait has a partner that arrives, with the right count and phase (0 first)",
        file=first.loc.file if first.loc else None, line=first.loc.line if first.loc else None, block=first.block, thread=first.thread,
        evidence={"waits": [_said(w) for w in flat[:32]], "waiting": len(flat)},
    )  # fmt: skip


def _said(w: Wait) -> dict[str, Any]:
    return {"line": w.loc.line if w.loc else None, "for": w.what(), "block": list(w.block) if w.block else None}


# ---------------------------------------------------------------------------------------------------- mbarriers
class Barriers:
    """The mbarriers of one buffer: phase bit, arrivals still to come, bytes still to come, copies in flight."""

    def __init__(self, name: str, counts: tuple[int, ...]) -> None:
        self.name, self.count = name, counts
        self.phase = [0] * len(counts)
        self.pending = list(counts)
        self.tx = [0] * len(counts)
        self.before = [0] * len(counts)  # blocks that have arrived (bit sets)
        self.flying: list[list[tuple[int, Callable[[], None]]]] = [[] for _ in counts]
        self.landing: list[list[Callable[[], None]]] = [[] for _ in counts]  # complete, but nobody has waited for it yet

    def arrive(self, i: int, n: int, place: Place, fr: Frame) -> None:
        """``n`` threads arrive."""
        if n > self.pending[i] and fr.run.checks:
            self._too_many(i, n, place, fr)
        if fr.run.order is not None:
            self.before[i] |= fr.run.order.so_far(fr)
        self.pending[i] = max(0, self.pending[i] - n)
        self._settle(i)

    def _too_many(self, i: int, n: int, place: Place, fr: Frame) -> None:
        loc = place.loc
        fr.run.findings.report(
            ("arrivals", self.name, loc and (loc.file, loc.line)), "TL205",
            f"{n} threads arrive at {self.name}[{i}], which expects {self.count[i]} arrivals a phase, "
            f"and only {self.pending[i]} more in this one.",
            loc, fix=f"make arrive_count of {self.name} the number of threads that arrive, or let fewer threads arrive",
            evidence={"barrier": self.name, "index": i, "arriving": n, "expected": self.count[i], "left": self.pending[i]},
        )  # fmt: skip

    def _settle(self, i: int) -> None:
        """Flip the phase when all have arrived and all expected bytes are there or on their way."""
        if self.pending[i]:
            return
        flying = self.flying[i]
        if self.tx[i] > sum(n for n, _ in flying):
            return
        self.flying[i] = []
        self.tx[i] = 0
        self.landing[i].extend(land for _, land in flying)
        self.phase[i] ^= 1
        self.pending[i] = self.count[i]

    def fly(self, i: int, nbytes: int, land: Callable[[], None]) -> None:
        """A copy is under way; it lands, as late as may be, when somebody has waited for the phase."""
        self.flying[i].append((nbytes, land))
        self._settle(i)

    def describe(self, i: int, parity: int) -> str:
        """What a waiter waits for, and what is missing."""
        missing = []
        if self.pending[i]:
            missing.append(f"{self.pending[i]} of {self.count[i]} arrivals are missing")
        lack = self.tx[i] - sum(n for n, _ in self.flying[i])
        if lack > 0:
            missing.append(f"{lack} expected bytes were never sent")
        return f"{self.name}[{i}] to complete phase {parity} ({', '.join(missing) or 'its phase is ' + str(self.phase[i])})"


def barrier_of(comp: Any, e: ir.Expr, ctx: Context) -> tuple[int, Ex, str]:
    """The slot of a barrier buffer and the index of one barrier in it."""
    if isinstance(e, ir.Call) and e.op in ("tl.access_ptr", "tirx.address_of"):
        e = e.args[0]
    if isinstance(e, ir.Call) and e.op == "tirx.tvm_access_ptr" and isinstance(e.args[1], ir.Var):
        e = comp.flat_element(e.args[1], e.args[2], ctx)
    if not isinstance(e, ir.Load):
        raise Unsupported("a barrier that is not an element of T.alloc_barrier", ctx.loc)
    comp.block_uniform &= not any(a < len(ctx.grid.blocks) for i in comp.exprs(e.indices, ctx) for a in i.axes)
    return comp.slot_of(e.buffer, ctx), comp.expr(e.indices[-1], ctx), e.buffer.name


def at(ex: Ex, fr: Frame) -> int:
    """The value of a scalar for the role that runs: that of its first active lane."""
    x = ex.fn(fr)
    one = scalar_of(x)
    if one is not None:
        return one
    if fr.mask is None:
        return int(x.reshape(-1)[0])
    full = np.broadcast_shapes(x.shape, fr.mask.shape)
    return int(np.broadcast_to(x, full)[first_lane(np.broadcast_to(fr.mask, full))])


def arriving(ctx: Context, fr: Frame) -> int:
    """How many threads of the block execute this."""
    total = int(np.prod(ctx.grid.extents))
    if fr.mask is None or not ctx.grid.threads:
        return total
    threads = ctx.grid.thread_axes
    other = tuple(a for a in range(fr.mask.ndim) if a not in threads)
    on = fr.mask.any(axis=other)
    grown = [fr.size[a] for a in threads]
    return int(np.broadcast_to(on, grown).sum())


def arrive(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.barrier_arrive`` (with the bytes to expect, where given)."""
    slot, index, _ = barrier_of(comp, call.args[0], ctx)
    tx = comp.expr(call.args[1], ctx) if len(call.args) > 1 else None
    place = Place(ctx)

    def run(fr: Frame) -> None:
        bars: Barriers = fr.mem[slot]
        i = at(index, fr)
        n = arriving(ctx, fr)
        if tx is not None:
            bars.tx[i] += at(tx, fr) * n
        bars.arrive(i, n, place, fr)
        fr.run.version += 1

    # Whoever waits for this may go on at once: if it overwrites what this role still reads, it is seen to do so.
    return Op(run, after=lambda fr: Wait(lambda: True, lambda: "nothing", "pause", ctx, fr))


def arrive_once(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.tcgen05_mma_arrive``: one arrival, when the products before it are done."""
    slot, index, _ = barrier_of(comp, call.args[0], ctx)
    place = Place(ctx)

    def run(fr: Frame) -> None:
        fr.mem[slot].arrive(at(index, fr), 1, place, fr)
        fr.run.version += 1

    return Op(run)


def expect_tx(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.mbarrier_expect_tx``."""
    slot, index, _ = barrier_of(comp, call.args[0], ctx)
    tx = comp.expr(call.args[1], ctx)

    def run(fr: Frame) -> None:
        fr.mem[slot].tx[at(index, fr)] += at(tx, fr) * arriving(ctx, fr)

    return Op(run)


def wait_parity(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.barrier_wait``: blocks while the phase equals the parity."""
    slot, index, _ = barrier_of(comp, call.args[0], ctx)
    parity = comp.expr(call.args[1], ctx)
    comp.block_uniform &= not any(a < len(ctx.grid.blocks) for a in parity.axes)

    def gen(fr: Frame) -> Waiting:
        bars: Barriers = fr.mem[slot]
        i, p = at(index, fr), at(parity, fr) & 1
        if bars.phase[i] == p:
            yield Wait(lambda: bars.phase[i] != p, lambda: bars.describe(i, p), "mbarrier", ctx, fr)
        if fr.run.order is not None:
            fr.run.order.join(fr, bars.before[i])
        due, bars.landing[i] = bars.landing[i], []
        for land in due:
            land()

    return Op(lambda fr: None, gen)


# ------------------------------------------------------------------------------------------------- named barriers
class Named:
    """A named barrier of a block: how many threads have arrived, and how often it opened."""

    def __init__(self) -> None:
        self.arrived = 0
        self.opened = 0
        self.before = 0  # blocks that have arrived (a bit set)

    def arrive(self, n: int, want: int) -> None:
        """``n`` threads arrive; the barrier opens at ``want``."""
        self.arrived += n
        if self.arrived >= want:
            self.arrived -= want
            self.opened += 1


def storage_sync(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.sync_threads``: of the block, or of those who name the barrier."""
    place = Place(ctx)
    threads = ctx.grid.thread_axes
    if len(call.args) < 2:

        def run(fr: Frame) -> None:
            if fr.nest is not None:
                fr.nest.barrier()
            if fr.mask is not None and threads and fr.run.checks:
                divergent(place, fr, threads)

        return Op(run)
    name = comp.expr(call.args[1], ctx)
    want = comp.expr(call.args[2], ctx) if len(call.args) > 2 else None
    total = int(np.prod(ctx.grid.extents))

    def gen(fr: Frame) -> Waiting:
        key, n = at(name, fr), at(want, fr) if want is not None else total
        bar: Named = fr.sync.setdefault(("named", key), Named())
        before = bar.opened
        bar.arrive(arriving(ctx, fr), n)
        if fr.nest is not None:
            fr.nest.barrier()
        if bar.opened == before:
            yield Wait(
                lambda: bar.opened > before, lambda: f"named barrier {key} ({bar.arrived} of {n} threads have arrived)", "named", ctx, fr
            )

    return Op(lambda fr: None, gen)


def named_arrive(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.named_barrier_arrive``."""
    name, want = comp.expr(call.args[0], ctx), comp.expr(call.args[1], ctx)

    def run(fr: Frame) -> None:
        fr.sync.setdefault(("named", at(name, fr)), Named()).arrive(arriving(ctx, fr), at(want, fr))

    return Op(run)


def sync_grid(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.sync_grid``: every block of the launch."""
    comp.between_blocks = True

    def gen(fr: Frame) -> Waiting:
        bar: Named = fr.run.grid_barrier
        before, n = bar.opened, fr.run.grid_blocks
        bar.arrive(fr.run.blocks_of(fr), n)
        if bar.opened == before:
            yield Wait(
                lambda: bar.opened > before, lambda: f"the other blocks at T.sync_grid ({bar.arrived} of {n} are there)", "grid", ctx, fr
            )
        if fr.run.grid_seen < bar.opened:
            fr.run.grid_seen = bar.opened
            fr.run.order_all()

    return Op(lambda fr: None, gen)


# --------------------------------------------------------------------------------------------------------- groups
def wait_group(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.ptx_wait_group(n)``: all but the ``n`` newest groups of asynchronous copies have landed."""
    keep = comp.expr(call.args[0], ctx)

    def run(fr: Frame) -> None:
        groups: list[Callable[[], None]] = fr.sync.setdefault("groups", [])
        n = at(keep, fr)
        while len(groups) > n:
            groups.pop(0)()

    return Op(run)


BLOCKING = frozenset({"tl.mbarrier_wait_parity", "tl.sync_grid", "tirx.ptx_wait_barrier", "tl.cluster_sync", "tl.cluster_wait"})


def spins(s: ir.While) -> bool:
    """Whether a while loop polls memory that others write, and changes nothing that it tests."""
    polled = {n.buffer.data for n in ir.walk(s.cond) if isinstance(n, ir.Load) and n.buffer.scope in ("global", "shared", "shared.dyn")}
    if not polled:
        return False
    written = {n.buffer.data for n in ir.walk(s.body) if isinstance(n, ir.Store)}
    return not polled & written


def waits(body: ir.Body) -> bool:
    """Whether anything in ``body`` may wait."""
    for n in ir.walk(body):
        if isinstance(n, ir.Tile) and n.op == "copy" and n.attrs.get("cluster_mask") is not None:
            return True
        if isinstance(n, ir.Call) and (n.op in BLOCKING or (n.op == "tirx.tvm_storage_sync" and len(n.args) > 1)):
            return True
        if isinstance(n, ir.While) and spins(n):
            return True
    return False


EFFECTS = {
    "tirx.ptx_arrive_barrier": arrive, "tirx.ptx_arrive_barrier_expect_tx": arrive,
    "tl.ptx_cp_async_barrier_noinc": arrive,
    "tl.tcgen05_mma_arrive": arrive_once,
    "tl.mbarrier_expect_tx": expect_tx, "tl.mbarrier_wait_parity": wait_parity, "tirx.ptx_wait_barrier": wait_parity,
    "tirx.tvm_storage_sync": storage_sync, "tl.named_barrier_arrive": named_arrive, "tl.sync_grid": sync_grid,
    "tirx.ptx_wait_group": wait_group, "tl.ptx_wait_group": wait_group,
}  # fmt: skip

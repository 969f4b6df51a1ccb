"""Blocks of one cluster: who is who, what they wait for together, and blocks that a running one takes over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import arith
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame, Unsupported
from tilelab.sim.sync import Named, Wait, Waiting, arriving, at, barrier_of
from tilelab.sim.tileops.space import pointee


class Cluster:
    """The blocks of one cluster: their frames by rank, and the barrier that they share."""

    def __init__(self) -> None:
        self.frames: dict[int, Frame] = {}
        self.barrier = Named()
        self.posts: dict[Any, Any] = {}  # what one block loads for several


def start() -> Op:
    """Let the other blocks come this far."""

    def gen(fr: Frame) -> Waiting:
        yield Wait(lambda: True, lambda: "the other blocks to start", "start", None, None)

    return Op(lambda fr: None, gen)


def clusters(frames: list[Frame], grid: Any, dims: tuple[int, ...]) -> Iterable[list[Frame]]:
    """Group single-block frames by cluster, and tell each its rank and its neighbours."""
    found: dict[tuple[int, ...], Cluster] = {}
    for fr in frames:
        at = [0, 0, 0]
        for axis, c in enumerate(grid.blocks):
            at[c] = fr.start[axis]
        group = found.setdefault(tuple(i // n for i, n in zip(at, dims, strict=True)), Cluster())
        x, y, z = (i % n for i, n in zip(at, dims, strict=True))
        fr.rank = x + dims[0] * (y + dims[1] * z)
        fr.cluster = group
        group.frames[fr.rank] = fr
    return ([g.frames[r] for r in sorted(g.frames)] for g in found.values())


def arrive_remote(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """Arrive at the barrier of another block of the cluster; each thread names its block."""
    slot, index, _ = barrier_of(comp, call.args[0], ctx)
    to = comp.expr(call.args[1], ctx)
    place = Place(ctx)
    threads = ctx.grid.thread_axes

    def run(fr: Frame) -> None:
        i = at(index, fr)
        ranks = np.asarray(to.fn(fr))
        if ranks.ndim and threads:
            shape = [fr.size[a] if a in threads else 1 for a in range(ctx.rank)]
            on = np.ones(shape, np.bool_)
            if fr.mask is not None:
                on &= fr.mask.any(axis=tuple(a for a in range(ctx.rank) if a not in threads), keepdims=True)
            counts = np.bincount(np.broadcast_to(ranks, shape)[on])
        else:
            counts = np.bincount([int(ranks.reshape(-1)[0])] * arriving(ctx, fr))
        for rank, n in enumerate(counts.tolist()):
            if n:
                peer = fr if fr.cluster is None else fr.cluster.frames.get(rank)
                if peer is None:
                    raise Unsupported(f"block {rank} of a cluster of {len(fr.cluster.frames)}", ctx.loc)
                peer.mem[slot].arrive(i, n, place, fr)
        fr.run.version += 1

    return Op(run)


def cluster_sync(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.cluster_sync``, ``T.cluster_arrive`` and ``T.cluster_wait``: every block of the cluster."""
    arrives, waits_too = call.op != "tl.cluster_wait", call.op in ("tl.cluster_sync", "tl.cluster_wait")

    def run(fr: Frame) -> None:
        if fr.cluster is not None and arrives:
            if fr.run.order is not None:
                fr.cluster.barrier.before |= fr.run.order.so_far(fr)
            fr.sync["cluster"] = fr.cluster.barrier.opened
            fr.cluster.barrier.arrive(1, len(fr.cluster.frames))

    def gen(fr: Frame) -> Waiting:
        run(fr)
        if fr.cluster is None:
            return
        bar, before = fr.cluster.barrier, fr.sync.get("cluster", fr.cluster.barrier.opened)
        if bar.opened == before:
            said = lambda: f"the other blocks of the cluster ({bar.arrived} of {len(fr.cluster.frames)} are there)"  # noqa: E731
            yield Wait(lambda: bar.opened > before, said, "cluster", ctx, fr)
        if fr.run.order is not None:
            fr.run.order.join(fr, bar.before)

    return Op(run, gen if waits_too else None)


# ------------------------------------------------------------------------------------------- cluster launch control
class Pending:
    """Blocks of a launch that are still to run; the second half of them may be taken over by those that run."""

    def __init__(self, parts: Iterable[Any], first: Callable[[Any], tuple[int, int, int]]) -> None:
        self.parts = deque(parts)
        self.first = first
        self.kept = (len(self.parts) + 1) // 2

    def next(self) -> Any:
        """The next part to run."""
        self.kept = max(0, self.kept - 1)
        return self.parts.popleft()

    def cancel(self) -> tuple[int, int, int] | None:
        """Take the last part away from those to run; the coordinates of its first block, or None."""
        return self.first(self.parts.pop()) if len(self.parts) > self.kept else None


def try_cancel(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.clc_try_cancel``: the answer, 16 bytes, lands when somebody waits for the barrier."""
    comp.takes_over = True
    load = pointee(comp, call.args[0], ctx)
    slot = comp.slot_of(load.buffer, ctx)
    element = comp.exprs(load.indices, ctx)
    bars, index, _ = barrier_of(comp, call.args[1], ctx)
    multicast = call.op.endswith("multicast")

    def run(fr: Frame) -> None:
        answer = fr.run.pending.cancel() if fr.run.pending is not None else None
        where = tuple(at(e, fr) for e in element)
        i = at(index, fr)
        peers = fr.cluster.frames.values() if multicast and fr.cluster is not None else (fr,)
        for peer in peers:

            def land(peer: Frame = peer) -> None:
                peer.sync["answer", slot, where] = answer
                peer.mem[slot].init = True

            peer.mem[bars].fly(i, 16, land)
        fr.run.version += 1

    return Op(run)


def answer(part: int | None) -> Callable[[Any, ir.Call, Context], Ex]:
    """``T.clc_is_canceled`` and ``T.clc_get_first_ctaid_*``: what the answer says."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Ex:
        load = pointee(comp, call.args[0], ctx)
        slot, element = comp.slot_of(load.buffer, ctx), comp.exprs(load.indices, ctx)
        dtype = call.dtype

        def fn(fr: Frame) -> Any:
            said = fr.sync.get(("answer", slot, tuple(at(e, fr) for e in element)))
            return arith.scalar(dtype, int(said is not None) if part is None else said[part] if said is not None else 0)

        return Ex(dtype=dtype, fn=fn, loads=True)

    return make


CALLS = {
    "tl.clc_is_canceled": answer(None), **{f"tl.clc_get_first_ctaid_{c}": answer(i) for i, c in enumerate("xyz")},
}  # fmt: skip
EFFECTS = {
    "tl.ptx_arrive_cluster_barrier": arrive_remote,
    **dict.fromkeys(("tl.cluster_sync", "tl.cluster_arrive", "tl.cluster_arrive_relaxed", "tl.cluster_wait"), cluster_sync),
    **dict.fromkeys(("tl.clc_try_cancel", "tl.clc_try_cancel_multicast"), try_cancel),
}

"""Copies between blocks of a cluster: into another block's shared memory, and one load for several blocks."""

from __future__ import annotations

from typing import Any

from tilelab import ir
from tilelab.ops import arg
from tilelab.sim import sync
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Frame, Unsupported
from tilelab.sim.tileops import data

_WHAT = "T.copy_cluster"


def copy_cluster(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """``T.copy_cluster``."""
    src, dst = arg(s.op, s.args, "src"), arg(s.op, s.args, "dst")
    if not isinstance(src, ir.Region) or not isinstance(dst, ir.Region):
        raise Unsupported(f"{_WHAT} of something that is not a region", s.loc)
    return to_block(comp, s, ctx) if s.attrs.get("dst_block") is not None else to_many(comp, s, ctx)


def to_block(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """Into the shared memory of block ``dst_block``: at once, or, with a barrier, when that block has waited for its own."""
    begin, nbytes = data.deferred(comp, s, ctx)
    to = comp.expr(data.as_expr(s.attrs["dst_block"]), ctx)
    named = s.attrs.get("barrier")
    barrier = sync.barrier_of(comp, named, ctx) if isinstance(named, ir.Load) else None
    place = Place(ctx)

    def run(fr: Frame) -> None:
        rank = sync.at(to, fr)
        peer = fr.cluster.frames.get(rank) if fr.cluster is not None else fr if rank == 0 else None
        if peer is None:
            size = len(fr.cluster.frames) if fr.cluster is not None else 1
            raise Unsupported(
                f"{_WHAT} to block {rank} of a cluster of {size}", ctx.loc, "name a block of the cluster (cluster_dims of T.Kernel)"
            )
        land = begin(fr, peer)
        fr.run.version += 1
        if barrier is None:
            land()
            return
        i = sync.at(barrier[1], fr)
        bars = peer.mem[barrier[0]]
        bars.tx[i] += nbytes(fr)
        bars.flying[i].append((nbytes(fr), land))
        bars.arrive(i, 1, place, fr)

    return Op(run)


def to_many(comp: Any, s: ir.Tile, ctx: Context) -> Op:
    """With ``cluster_mask``: the block of lowest rank loads for all that the mask names, who wait for it; others load their own."""
    alone = data.plain_copy(comp, s, ctx)
    issue, land = data.halves(comp, s, ctx)
    given = s.attrs["cluster_mask"]
    mask = int(given.value if isinstance(given, ir.Const) else given)  # type: ignore[arg-type]
    first = (mask & -mask).bit_length() - 1

    def gen(fr: Frame) -> sync.Waiting:
        if fr.cluster is None or not mask >> fr.rank & 1:
            alone.run(fr)
            return
        turn = fr.sync["sent", s] = fr.sync.get(("sent", s), -1) + 1
        posts = fr.cluster.posts
        if fr.rank == first:
            posts[s, turn] = issue(fr)
            fr.run.version += 1
        elif (s, turn) not in posts:
            yield sync.Wait(lambda: (s, turn) in posts, lambda: f"block {first} of the cluster, which loads for all", "multicast", ctx, fr)
        land(fr, posts[s, turn])

    return Op(lambda fr: None, gen)

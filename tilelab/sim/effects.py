"""Calls evaluated for their effect: hints that mean nothing here, barriers, breaks, assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.flow import Op, nothing
from tilelab.sim.lanes import Frame, both


def hint(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """Something about scheduling, registers or caches: no meaning at tile level."""
    return Op(nothing)


def leaver(field: str) -> Callable[[Any, ir.Call, Context], Op]:
    """Return the compiler of a break, a continue or a return: the active lanes leave."""

    def make(comp: Any, call: ir.Call, ctx: Context) -> Op:
        def run(fr: Frame) -> None:
            stay = getattr(fr, field)
            if fr.mask is None:
                setattr(fr, field, False)
            elif stay is not False:
                setattr(fr, field, ~fr.mask if stay is None else stay & ~fr.mask)

        return Op(run)

    return make


def divergent(place: Place, fr: Frame, threads: tuple[int, ...]) -> None:
    """Report a barrier that only some threads of a block reach."""
    ctx = place.ctx
    mask = fr.mask
    some, every = mask.any(axis=threads, keepdims=True), mask.all(axis=threads, keepdims=True)
    shape = list(mask.shape)
    for a in threads:
        shape[a] = fr.size[a]
    bad = some & ~every
    if not bad.any():
        return
    key = ("divergent", ctx.loc and (ctx.loc.file, ctx.loc.line))
    if fr.run.findings.seen(key):
        return
    missing = np.broadcast_to(bad & ~mask, shape)
    lane = checks.first_lane(missing)
    waiting = int((np.broadcast_to(mask, shape) & bad).any(axis=tuple(a for a in range(mask.ndim) if a not in threads)).sum())
    total = int(np.prod([fr.size[a] for a in threads]))
    fr.run.findings.add(
        key, "TL203",
        f"only {waiting} of the {total} threads of the block reach this barrier, because the condition around it differs between threads: "
        "the rest never come, and on a device the block hangs or goes on wrongly.",
        ctx.loc, fix="move T.sync_threads() out of the condition, so that every thread of the block reaches it",
        evidence={"reached": waiting, "threads": total}, **checks.where(place, fr, lane),
    )  # fmt: skip


def part_of_a_warp(place: Place, fr: Frame, what: str) -> None:
    """Report an operation that elects one thread of a warp, where only a part of the warp comes (TL203)."""
    ctx = place.ctx
    threads = ctx.grid.thread_axes
    if not threads:
        return
    on = fr.mask.any(axis=tuple(a for a in range(fr.mask.ndim) if a not in threads))
    active = np.broadcast_to(on, [fr.size[a] for a in threads]).reshape(-1)
    short = -active.size % 32
    warps = np.pad(active, (0, short), constant_values=False).reshape(-1, 32)
    full = np.pad(np.ones(active.size, np.bool_), (0, short)).reshape(-1, 32)
    bad = warps.any(axis=1) & (warps != full).any(axis=1)
    if not bad.any():
        return
    warp = int(np.argmax(bad))
    key = ("elects", ctx.loc and (ctx.loc.file, ctx.loc.line))
    fr.run.findings.report(
        key, "TL203",
        f"{what} elects one thread of a warp by itself, but only {int(warps[warp].sum())} of the {int(full[warp].sum())} threads of "
        f"warp {warp} come here: the election waits for the others for ever.",
        ctx.loc, fix="let the whole warp reach it: condition on the warp (thread // 32 == 0), not on one thread",
        evidence={"warp": warp, "threads": int(warps[warp].sum())}, **checks.where(place, fr, ()),
    )  # fmt: skip


def warp_barrier(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.sync_warp`` orders the lanes of a warp."""

    def run(fr: Frame) -> None:
        if fr.nest is not None:
            fr.nest.warp_barrier()

    return Op(run)


def device_assert(comp: Any, call: ir.Call, ctx: Context) -> Op:
    """``T.device_assert``: TL902 where the condition does not hold."""
    cond = comp.expr(call.args[0], ctx)
    text = call.args[1].value.split("\n  at ")[0].strip() if len(call.args) > 1 and isinstance(call.args[1], ir.Str) else ""
    place = Place(ctx)
    key = ("assert", ctx.loc and (ctx.loc.file, ctx.loc.line))

    def run(fr: Frame) -> None:
        c = cond.fn(fr)
        bad = np.asarray(~c if isinstance(c, np.ndarray) else not c)
        bad = both(bad if bad.ndim else bad.reshape((1,) * ctx.rank), fr.mask)
        if not bad.any() or not fr.run.checks or fr.run.findings.seen(key):
            return
        lane = checks.first_lane(bad)
        said = f": {text}" if text else ""
        fr.run.findings.add(
            key, "TL902", f"the device assertion does not hold{said}.", ctx.loc, fix="see which values make the condition false",
            evidence={"message": text, "lanes": int(bad.sum())}, **checks.where(place, fr, lane),
        )  # fmt: skip

    return Op(run)


#: Calls that are hints to the compiler or the hardware, and mean nothing here.
HINTS = (
    "tl.annotate_producer_reg_dealloc", "tl.annotate_consumer_reg_alloc", "tl.no_set_max_nreg", "tl.set_max_nreg", "tl.fence_proxy_async",
    "tl.tma_store_arrive", "tl.tma_store_wait", "tl.warpgroup_arrive", "tl.warpgroup_commit_batch", "tl.warpgroup_wait", "tl.wait_wgmma",
    "tl.warpgroup_fence_operand", "tl.pdl_sync", "tl.pdl_trigger", "tl.ptx_fence_barrier_init", "tirx.ptx_commit_group",
    "tl.ptx_commit_group",
    "tl.tcgen05_before_thread_sync", "tl.tcgen05_after_thread_sync", "tl.deallocate_tmem", "tirx.assume", "tl.assume",
    "tirx.ptx_fence_barrier_init",
)  # fmt: skip
EFFECTS = {
    **dict.fromkeys(HINTS, hint), "tl.loop_break": leaver("live"), "tirx.break_loop": leaver("live"),
    "tirx.continue_loop": leaver("skip"), "tirx.thread_return": leaver("gone"),
    "tl.sync_warp": warp_barrier, "tl.device_assert": device_assert,
    "tl.device_assert_with_msg": device_assert,
}  # fmt: skip

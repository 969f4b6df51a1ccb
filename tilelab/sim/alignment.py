"""Vector accesses that do not begin at a multiple of their size (TL105): the device stops there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import checks, dtypes
from tilelab.sim.checks import Place
from tilelab.sim.context import Context
from tilelab.sim.lanes import Frame, both


def watch(
    comp: Any, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], lanes: int, ctx: Context, what: str
) -> Callable[[Frame], None] | None:
    """The check of ``what``, which moves ``lanes`` elements from ``indices`` on; None where every address will do."""
    width = dtypes.info(buffer.dtype).bits
    if lanes == 1 or any(isinstance(i, ir.Ramp | ir.Broadcast) for i in indices):
        return None
    at, sizes, steps = (comp.exprs(items, ctx) for items in (indices, buffer.shape, buffer.strides))
    place = Place(ctx)
    key = ("aligned", buffer.name, ctx.loc and (ctx.loc.file, ctx.loc.line))

    def check(fr: Frame) -> None:
        offset: Any = 0
        step: Any = 1
        for d in reversed(range(len(at))):
            offset = offset + np.asarray(at[d].fn(fr), np.int64) * (steps[d].fn(fr) if steps else step)
            step = step * sizes[d].fn(fr)
        bad = np.asarray(offset) * width % (lanes * width) != 0
        bad = both(bad.reshape((1,) * ctx.rank) if not bad.ndim else bad, fr.mask)
        if not bad.any() or fr.run.findings.seen(key):
            return
        lane = checks.first_lane(bad)
        index = [int(np.broadcast_to(np.asarray(e.fn(fr)), bad.shape)[lane]) for e in at]
        fr.run.findings.add(
            key, "TL105",
            f"{what} moves {lanes * width // 8} bytes from {checks.element(buffer.name, index)} on, which is not at a multiple of that: "
            "the device stops with a misaligned address.",
            ctx.loc, fix=f"begin at a multiple of {lanes} elements, or move fewer at once",
            evidence={"buffer": buffer.name, "index": index, "bytes": lanes * width // 8}, **checks.where(place, fr, lane),
        )  # fmt: skip

    return check

"""Work repeated by every thread (TL601), seen from the program's shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim.context import Context
from tilelab.sim.taint import Taint, is_local

#: Iterations from which repeating them is worth a word.
WORTH = 8


def repeated(s: ir.For, ctx: Context, taint: Taint | None) -> dict[str, Any] | None:
    """The finding for a plain loop whose elements every thread writes by itself; None if it is not one."""
    if ctx.host or ctx.parallel or taint is None or taint.stmts(s.body) or ctx.nest is not None:
        return None
    if not isinstance(s.extent, ir.Const) or s.extent.value < WORTH:
        return None
    threads = int(np.prod(ctx.grid.extents))
    if threads == 1 or any(
        isinstance(n, ir.Tile) or (isinstance(n, ir.For) and n.kind in ("parallel", "vectorized")) for n in ir.walk(s.body)
    ):
        return None
    if any(isinstance(n, ir.Load) and n.buffer.scope == "local.fragment" for n in ir.walk(s.body)):
        return None  # who owns the elements is the question there
    for n in ir.walk(s.body):
        if isinstance(n, ir.Store) and not is_local(n.buffer) and any(v is s.var for i in n.indices for v in ir.walk(i)):
            loc = n.loc or s.loc
            return {
                "key": ("waste", loc and (loc.file, loc.line)),
                "code": "TL601",
                "message": f"all {threads} threads of the block run this loop: each of its {s.extent.value} elements of "
                f"{n.buffer.name} is written {threads} times.",
                "loc": s.loc,
                "fix": f"for {s.var.name} in T.Parallel({s.extent.value}), which shares the iterations out among the threads",
                "evidence": {"threads": threads, "iterations": s.extent.value, "buffer": n.buffer.name, "repeated": threads},
            }
    return None

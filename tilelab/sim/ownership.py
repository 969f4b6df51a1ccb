"""Fragments read by threads that do not own the element (TL401)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.layout import Layout
from tilelab.sim.context import Context


def read_by_all(buffer: ir.Buffer, ctx: Context) -> dict[str, Any] | None:
    """The finding for an element of a fragment that code outside any T.Parallel reads; None where that is fine.

    Such code is run by each thread for itself, but a fragment is spread over the threads of the block. One element is
    held by every thread; more are not, unless the layout says so (see :func:`settle`).
    """
    if buffer.scope != "local.fragment" or ctx.parallel or not ctx.each or ctx.host:
        return None
    sizes = [e.value for e in buffer.shape if isinstance(e, ir.Const)]
    threads = int(np.prod(ctx.grid.extents))
    if threads == 1 or (len(sizes) == len(buffer.shape) and int(np.prod(sizes)) == 1):
        return None
    loc = ctx.loc
    return {
        "key": ("owner", buffer.name, loc and (loc.file, loc.line)),
        "code": "TL401",
        "message": f"every one of the {threads} threads reads elements of the fragment {buffer.name} here, but a fragment is spread over "
        "the threads: each of them holds only its own elements, and gets a wrong value for all others.",
        "loc": loc,
        "fix": f"read it inside T.Parallel, so that the owner does it, or T.copy({buffer.name}) to a shared buffer first",
        "evidence": {"buffer": buffer.name, "threads": threads, "shape": sizes},
    }


def settle(found: dict[str, Any], layouts: Mapping[str, Layout]) -> dict[str, Any] | None:
    """Sharpen the finding with the inferred layout: None if every thread owns every element."""
    layout = layouts.get(found["evidence"]["buffer"])
    if layout is None:
        return found
    owners = layout.threads_of().reshape(int(np.prod(layout.shape)), -1)
    threads = found["evidence"]["threads"]
    held = np.array([np.unique(o).size for o in owners])
    if (held >= threads).all():
        return None
    element = int(np.argmin(held))
    index = [int(i) for i in np.unravel_index(element, layout.shape)]
    owner = sorted({int(t) for t in owners[element]})
    evidence = {
        **found["evidence"],
        "index": index,
        "owners": owner[:16],
        "elements_per_thread": int(np.bincount(owners.reshape(-1)).max()),
    }
    where = f"{layout.name}[{', '.join(map(str, index))}]"
    return {
        **found,
        "message": f"{found['message']} {where}, for one, is held by thread {owner[0]}{' and others' if len(owner) > 1 else ' alone'}.",
        "evidence": evidence,
    }

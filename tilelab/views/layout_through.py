"""A fragment through shared memory: where each thread finds its elements, and what that costs at the banks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilelab import ir
from tilelab.analysis import banks
from tilelab.layout import Layout, substitute
from tilelab.views.schema import LayoutThrough

Pair = tuple[str, str]


def moved(program: ir.Program) -> set[Pair]:
    """Return (fragment, shared buffer) for each two that one statement of ``program`` copies between."""
    found: set[Pair] = set()
    for n in ir.walk(program):
        if (isinstance(n, ir.Tile) and n.op == "copy") or (isinstance(n, ir.For) and n.kind == "parallel"):
            touched = {x.buffer.name: x.buffer.scope for x in ir.walk(n) if isinstance(x, ir.Region | ir.Load | ir.Store)}
            for a, scope in touched.items():
                found |= {(a, b) for b, other in touched.items() if scope == "local.fragment" and other.startswith("shared")}
    return found


def pairs_of(layouts: Sequence[Layout], wanted: set[Pair]) -> list[LayoutThrough]:
    """Return the pairs of ``wanted`` that are a fragment and a shared layout of its shape (of one version, where there are several)."""
    out: list[LayoutThrough] = []
    for i, one in enumerate(layouts):
        for j, other in enumerate(layouts):
            fits = one.kind == "fragment" and other.kind == "shared" and other.bits >= 8 and (one.name, other.name) in wanted
            plane = (other if other.shape == one.shape else _first_version(other, one.shape)) if fits else None
            if plane is not None and not (one.check() or other.check()):
                out.append({"fragment": i, "shared": j, "passes": _passes(one, plane)})
    return out


def _first_version(shared: Layout, shape: tuple[int, ...]) -> Layout | None:
    if shared.shape[1:] != shape:
        return None
    zero = ir.Const(dtype="int32", value=0)
    env = {shared.params[0]: zero}
    index = tuple(substitute(e, env) for e in shared.map.index)
    one = replace(shared.map, params=shared.params[1:], shape=shared.map.shape[1:], index=index)
    return replace(shared, shape=shape, map=one)


def _passes(fragment: Layout, shared: Layout) -> list[int]:
    """For each register: the passes over the banks when a warp's threads access its elements, the most of any warp."""
    at = fragment.through(shared)
    out = []
    for register in range(min(at.shape[1], 256)):
        most = 0
        for first in range(0, at.shape[0], banks.WARP):
            lanes = at[first : first + banks.WARP, register]
            lanes = lanes[lanes >= 0]
            if lanes.size:
                places = (shared.offset_bytes or 0) + lanes * shared.bits // 8
                most = max(most, int(banks.wavefronts(places[None, :], 4)[0]))
        out.append(most)
    return out

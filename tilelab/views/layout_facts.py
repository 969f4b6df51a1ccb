"""What can be said about a layout by looking at its numbers: its name, its copies, its swizzle."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tilelab.layout import Ints, Layout
from tilelab.layout_make import ATOMS, atom
from tilelab.views.schema import Fact

WARP = 32


def facts(layout: Layout) -> list[Fact]:
    """Return the facts worth a line under the title, in order."""
    broken = bool(layout.check())
    if layout.map.thread is not None:
        copies = replicas(layout)
        out = [_fact("not_one_to_one" if broken else "one_to_one") if copies == 1 or broken else _fact("replicated", count=copies)]
        name = made_of(layout)
        return [*out, _fact("made_of", atom=name)] if name else out
    return [_fact("not_one_to_one" if broken else "one_to_one"), arrangement(layout)]


def _fact(key: str, **fill: Any) -> Fact:
    return {"key": key, "fill": fill}


def replicas(layout: Layout) -> int:
    """Return how many threads hold each element (the fewest, where that differs)."""
    thread = layout.threads_of()
    if thread.shape[-1] == 1:
        return 1
    ordered = np.sort(thread, axis=-1)
    return int((np.diff(ordered, axis=-1) != 0).sum(axis=-1).min()) + 1


# ---------------------------------------------------------------------------------------------------- names
def made_of(layout: Layout) -> str:
    """Return the tensor-core operand that this fragment is tiled with, or nothing.

    Within every tile the lanes must be the operand's, and its elements must follow each other in the registers in its order.
    """
    if layout.map.thread is None or len(layout.shape) < 2 or layout.threads % WARP:
        return ""
    lead = (0,) * (len(layout.shape) - 2)
    lanes, registers = layout.threads_of()[lead][..., 0] % WARP, layout.registers()[lead][..., 0]
    # an operand A looks like two D side by side: accumulators are of 32 bits, operands of 16
    operands = ("D", "A", "B") if layout.bits == 32 else ("A", "B", "D")
    for operand in operands:
        name = f"mma.m16n8k16.{operand}"
        if _tiles(name, lanes, registers):
            return _known_as(name, layout)
    return ""


def _tiles(name: str, lanes: Ints, registers: Ints) -> bool:
    lane, order = _atom_maps(name)
    rows, columns = lane.shape
    if lanes.shape[0] % rows or lanes.shape[1] % columns:
        return False
    if not np.array_equal(lanes, np.tile(lane, (lanes.shape[0] // rows, lanes.shape[1] // columns))):
        return False
    first = registers[:rows, :columns]
    rank = np.zeros_like(first)
    for one in range(WARP):
        held = lane == one
        rank[held] = np.argsort(np.argsort(first[held]))
    return np.array_equal(rank, order)


@cache
def _atom_maps(name: str) -> tuple[Ints, Ints]:
    """The lanes and the register order of an operand of one warp."""
    a = atom(name)
    return a.threads_of()[..., 0], a.registers()[..., 0]


def _known_as(name: str, layout: Layout) -> str:
    """Operands A and D of wgmma look like those of mma within a warp; the rows of four neighbouring warps tell them apart."""
    twin = name.replace("mma.m16n8k16", "wgmma.m64n8k16")
    if twin not in ATOMS or twin == name or layout.threads % 128 or layout.shape[-2] % 64:
        return name
    lead = (0,) * (len(layout.shape) - 2)
    warps = layout.threads_of()[lead][:64:16, 0, 0] // WARP
    return f"{name} / {twin}" if np.array_equal(warps, warps[0] + np.arange(4)) and warps[0] % 4 == 0 else name


def arrangement(layout: Layout) -> Fact:
    """Return what a shared layout is: row-major, column-major, padded, blocked, swizzled in 128, 64 or 32 bytes, or irregular."""
    address = layout.addresses()
    span = int(address.max()) + 1
    rows_first = np.arange(layout.size).reshape(layout.shape)
    if np.array_equal(address, rows_first):
        return _fact("row_major")
    if np.array_equal(address, np.arange(layout.size).reshape(layout.shape[::-1]).transpose()):
        return _fact("column_major")
    if _separable(address):
        return _fact("padded", count=span - layout.size) if span > layout.size else _fact("blocked")
    at = layout.byte_addresses()
    for bits, swizzle in ((1, 32), (2, 64), (3, 128)):
        undone = at ^ (((at >> 7) & ((1 << bits) - 1)) << 4)
        if _separable(undone):
            return _fact("swizzle", bytes=swizzle)
    return _fact("irregular")


def _separable(a: Ints) -> bool:
    """Whether ``a`` is a sum of one function for each axis that splits into digits of powers of two or whole axes."""
    total: Any = np.int64(0)
    for axis, n in enumerate(a.shape):
        line = a[tuple(slice(None) if k == axis else 0 for k in range(a.ndim))] - a.flat[0]
        total = total + line.reshape([n if k == axis else 1 for k in range(a.ndim)])
    return bool(np.array_equal(total + a.flat[0], a))

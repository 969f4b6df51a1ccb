"""What the first wave of blocks reads of global memory: distinct bytes, so that blocks which share tiles (by L2) count them once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.analysis.accesses import Access, Binding, accesses
from tilelab.analysis.expr import const_int, dtype_bits
from tilelab.analysis.occupancy import occupancy
from tilelab.analysis.shared import shared_use
from tilelab.errors import InputError
from tilelab.layout import evaluate
from tilelab.machine import gpu

Ints = NDArray[np.int64]
_MOST_POINTS = 1 << 22
_MOST_ELEMENTS = 1 << 28
_SWIZZLE = "threadblock_swizzle_pattern"


def wave_bytes(program: ir.Program, target: str, known: Mapping[ir.Var, int] | None = None) -> int | None:
    """Return the distinct bytes read by the blocks of the first launch that are resident at once on ``target``, or None if unknown.

    ``known`` says what symbolic sizes (``T.dynamic``) are.
    """
    known = known or {}
    launch = next((n for n in ir.walk(program) if isinstance(n, ir.Launch)), None)
    if launch is None:
        return None
    try:
        extents, threads = ([int(evaluate(e, known)) for e in es] for es in (launch.grid, launch.threads))
    except InputError:
        return None
    if min(extents, default=0) < 1:
        return None
    try:
        smem = next((u.bytes for u in shared_use(program) if u.launch is launch), 0)
        resident = occupancy(target, threads=int(np.prod(threads)), smem_bytes=smem).blocks_per_sm * gpu(target).sms
    except InputError:
        return None
    first = np.arange(min(resident, int(np.prod(extents))), dtype=np.int64)
    values: dict[ir.Var, Any] = {**known, **dict(zip(launch.block_vars, _blocks(first, extents, _pattern(launch)), strict=False))}
    touched: dict[ir.Var, NDArray[np.bool_]] = {}
    sizes: dict[ir.Var, int] = {}
    for a in accesses(program):
        if a.mode == "r" and a.buffer.scope == "global" and a.launch is launch:
            if not _touch(a, values, touched):
                return None
            sizes[a.buffer.data] = dtype_bits(a.buffer.dtype)
    return sum(int(mask.sum()) * sizes[data] // 8 for data, mask in touched.items())


def _touch(a: Access, blocks: Mapping[ir.Var, Any], touched: dict[ir.Var, NDArray[np.bool_]]) -> bool:
    """Mark the elements that an access reads; False where that cannot be told."""
    values = dict(blocks)
    try:
        shape = [int(evaluate(e, values)) for e in a.buffer.shape]
    except (InputError, TypeError):
        return False
    extents = [const_int(e) for e in a.extents] or [1] * len(a.mins)
    if None in extents or np.prod(shape) > _MOST_ELEMENTS:
        return False
    try:
        for f in a.frames:
            if isinstance(f, ir.For):
                low, count = (np.asarray(evaluate(e, values)) for e in (f.min, f.extent))
                turns = np.arange(int(count.max()), dtype=np.int64)
                values = {v: np.asarray(x)[..., None] for v, x in values.items()}
                values[f.var] = low[..., None] + turns
            elif isinstance(f, Binding):
                try:
                    values[f.var] = np.asarray(evaluate(f.value, values))
                except InputError:
                    continue
        mins = np.broadcast_arrays(*(np.asarray(evaluate(m, values)) for m in a.mins))
    except InputError:
        return False
    if mins[0].size > _MOST_POINTS:
        return False
    mask = touched.setdefault(a.buffer.data, np.zeros(shape, bool))
    corners = np.unique(np.stack([m.reshape(-1) for m in mins], axis=1), axis=0)
    if all(e == 1 for e in extents):
        inside = np.all((corners >= 0) & (corners < np.asarray(mask.shape)), axis=1)
        mask[tuple(corners[inside].T)] = True
        return True
    for corner in corners:
        mask[tuple(slice(max(int(m), 0), max(int(m) + (e or 1), 0)) for m, e in zip(corner, extents, strict=True))] = True
    return True


def _pattern(launch: ir.Launch) -> Callable[[Ints, list[int]], tuple[Ints, Ints]] | None:
    """The rasterisation of ``T.use_swizzle``, if the launch has one."""
    for n in ir.walk(launch.body):
        if isinstance(n, ir.Attribute) and n.key == _SWIZZLE and isinstance(n.value, ir.Call):
            name, *rest = n.value.args
            width = const_int(rest[0]) if rest else None
            if isinstance(name, ir.Str) and name.value in _RASTERS and width:
                axis = _RASTERS[name.value]
                return lambda linear, grid: _raster(linear, grid, width, axis)
    return None


def _blocks(linear: Ints, grid: list[int], pattern: Callable[[Ints, list[int]], tuple[Ints, Ints]] | None) -> list[Ints]:
    """Coordinates (x, y, z) of blocks in the order in which they start: x fastest."""
    x, y = (*grid, 1)[:2]
    if pattern is None:
        return [linear % x, linear // x % y, linear // (x * y)]
    column, row = pattern(linear % (x * y), [x, y])
    return [column, row, linear // (x * y)]


#: name → whether panels are of rows (0) or of columns (1)
_RASTERS = {"rasterization2DRow": 0, "rasterization2DColumn": 1}


def _raster(linear: Ints, grid: list[int], width: int, axis: int) -> tuple[Ints, Ints]:
    """Panels of ``width`` rows (columns) are walked one after the other, back and forth along the other axis."""
    across = grid[axis]
    panel, within = linear // (width * across), linear % (width * across)
    panels = -(-grid[0] * grid[1] // (width * across))
    stride = np.where(panel + 1 < panels, width, grid[0] * grid[1] // across - panel * width)
    along = np.where(panel % 2 == 1, across - 1 - within // stride, within // stride)
    deep = within % stride + panel * width
    return (along, deep) if axis == 0 else (deep, along)

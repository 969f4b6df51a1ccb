"""Memory requests of a lowered program, counted without running it: passes over shared memory's banks, and sectors of global memory.

Every access is evaluated for all lanes, all turns of the loops around it and (global memory) a sample of the blocks. Accesses
inside TMA, wgmma, reductions and atomics do not show in the program and are left out; cp.async and ldmatrix are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.analysis.banks import wavefronts
from tilelab.analysis.expr import dtype_bits
from tilelab.errors import InputError
from tilelab.layout import evaluate

Array = NDArray[Any]
WARP = 32
SECTOR_BYTES = 32
_AXES = 12  # the blocks, up to ten loops, and the threads last
_MOST_POINTS = 1 << 24
_MOST_BLOCKS = 32  # blocks of which the sectors are counted; what they ask for stands for all


class Unpredictable(Exception):
    """There are too many accesses to enumerate."""


@dataclass(slots=True, kw_only=True)
class Requests:
    """What all accesses to one memory add up to; ``narrowest`` are the fewest bytes that a lane moves at a time (None: no access)."""

    count: float = 0
    passes: float = 0
    least: float = 0
    narrowest: int | None = None

    def add(self, times: float, passes: Array, least: Array, width: int) -> None:
        """Add requests that each happen ``times`` times."""
        self.count += times * passes.size
        self.passes += times * float(passes.sum())
        self.least += times * float(least.sum())
        self.narrowest = min(width, self.narrowest or width)


def request_figures(program: ir.Program) -> dict[str, float]:
    """Return the figures ``wavefronts``, ``excess_wavefronts``, ``sectors``, ``excess_sectors`` and the narrowest accesses."""
    out: dict[str, float] = {}
    launches = [n for n in ir.walk(program) if isinstance(n, ir.Launch)]
    for names, scope in ((("wavefronts", "excess_wavefronts", "shared_vector_bytes"), "shared"),
                         (("sectors", "excess_sectors", "global_vector_bytes"), "global")):  # fmt: skip
        total = Requests()
        try:
            for launch in launches:
                _Counter(program, scope, total).launch(launch)
        except Unpredictable:
            continue
        out |= {names[0]: round(total.passes), names[1]: round(total.passes - total.least)}
        if total.narrowest is not None:
            out[names[2]] = total.narrowest
    return out


def shared_requests(addresses: Array, width: int, active: Array | None = None) -> tuple[Array, Array]:
    """Return the passes of warp-wide requests, and the fewest for that width.

    Args:
        addresses: Byte addresses, shape ``(requests, 32)``.
        width: Bytes a lane.
        active: Which lanes take part; None for all.
    """
    n, lanes = addresses.shape
    phases = min(max(1, width // 4), lanes)
    least = np.full(n, phases)
    if active is None or active.all():
        return wavefronts(addresses, width), least
    grouped, on = addresses.reshape(n, phases, -1), active.reshape(n, phases, -1)
    first = np.take_along_axis(grouped, np.argmax(on, axis=2)[..., None], axis=2)
    idle: Array = np.sum(~np.asarray(on.any(axis=2)), axis=1)  # what is asked of them below is one pass a phase
    some: Array = np.asarray(on.any(axis=2))
    filled = np.where(on, grouped, np.where(some[..., None], first, 0)).reshape(n, lanes)
    return wavefronts(filled, width) - idle, least - idle


def global_requests(addresses: Array, width: int, active: Array | None = None) -> tuple[Array, Array]:
    """Return the sectors of warp-wide requests, and the fewest that hold the bytes they use; arguments as above."""
    first, last = addresses // SECTOR_BYTES, (addresses + width - 1) // SECTOR_BYTES
    on: Array = np.ones(addresses.shape, bool) if active is None else active
    sectors = np.concatenate([np.where(on, first, -1), np.where(on, last, -1)], axis=1)
    used = _distinct(np.where(on, addresses, -1)) * width
    return _distinct(sectors), -(-used // SECTOR_BYTES)


def _distinct(rows: Array) -> Array:
    """How many different values that are not negative each row has."""
    ordered = np.sort(rows, axis=1)
    fresh = np.ones(ordered.shape, bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return np.asarray((fresh & (ordered >= 0)).sum(axis=1))


def storing_thread(program: ir.Program, param: str, index: tuple[int, ...], block: tuple[int, int, int]) -> int | None:
    """Return which thread of ``block`` stores element ``index`` of a parameter last, or None where no plain store does."""
    target = next((p.buffer for p in program.params if p.name == param and p.buffer is not None), None)
    if target is None or len(target.shape) != len(index):
        return None
    flat = 0
    for at, extent in zip(index, target.shape, strict=True):
        flat = flat * (_whole(extent) or 0) + at
    finder = _Finder(program, target.data, flat, block)
    try:
        for n in ir.walk(program):
            if isinstance(n, ir.Launch):
                finder.launch(n)
    except Unpredictable:
        pass
    return finder.thread


# ------------------------------------------------------------------------------------------------ the walk
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """Where a statement stands: variables as arrays (each along an axis of its own), which points run it, extents by axis."""

    values: Mapping[ir.Var, Any]
    mask: Array
    extents: tuple[int, ...]

    def enter(self, var: ir.Var, low: Any, count: Any) -> _Scope:
        n, at = int(np.max(count)), len(self.extents)
        if at >= _AXES - 1:
            raise Unpredictable
        turns = np.arange(n).reshape((n,) + (1,) * (_AXES - at - 1))
        mask = self.mask & (turns < count) if np.ndim(count) else self.mask
        return replace(self, values={**self.values, var: low + turns}, mask=mask, extents=(*self.extents, n))


class _Counter:
    """Adds up the requests of one launch to one memory."""

    def __init__(self, program: ir.Program, scope: str, total: Requests) -> None:
        self.scope = scope
        self.total = total
        self.scopes: dict[ir.Var, str] = {p.buffer.data: p.buffer.scope for p in program.params if p.buffer is not None}
        self.times = 1.0

    def launch(self, n: ir.Launch) -> None:
        grid, shape = ([_whole(e) for e in es] for es in (n.grid, n.threads))
        if None in grid or None in shape or not grid or not shape:
            raise Unpredictable
        blocks, threads = (int(np.prod([e or 0 for e in es])) for es in (grid, shape))
        if blocks <= 0 or threads <= 0:
            return
        chosen = self.blocks(blocks, [e or 1 for e in grid])
        self.times = 1.0 if self.scope == "shared" else blocks / len(chosen)
        lanes = np.arange(-(-threads // WARP) * WARP)
        values: dict[ir.Var, Any] = {}
        for variables, extents, flat, axis in ((n.block_vars, grid, chosen, 0), (n.thread_vars, shape, lanes, _AXES - 1)):
            for var, extent in zip(variables, extents, strict=False):
                at = [1] * _AXES
                at[axis] = flat.size
                values[var] = (flat % (extent or 1)).reshape(at)
                flat = flat // (extent or 1)
        at = [1] * _AXES
        at[-1] = lanes.size
        self.lanes = lanes.size
        self.body(n.body, _Scope(values=values, mask=(lanes < threads).reshape(at), extents=(chosen.size,)))

    def blocks(self, count: int, grid: list[int]) -> Array:
        """Numbers of the blocks that are looked at: shared memory is a block's own, so one is enough there."""
        if self.scope == "shared":
            return np.zeros(1, np.int64)
        return np.unique(np.linspace(0, count - 1, min(count, _MOST_BLOCKS)).astype(np.int64))

    def body(self, body: ir.Body, scope: _Scope) -> None:
        for s in body:
            if isinstance(s, ir.Bind):
                if isinstance(s.value, ir.Call) and s.var.dtype == "handle":
                    self._alias(s.var, s.value)
                self.expressions((s.value,), scope)
                value = _value(s.value, scope)
                if value is not None:
                    scope = replace(scope, values={**scope.values, s.var: value})
            elif isinstance(s, ir.For):
                low, count = _value(s.min, scope), _value(s.extent, scope)
                if low is None or count is None or (s.step is not None and _whole(s.step) != 1):
                    low, count = np.int64(0), np.int64(1)  # as often as nobody knows: once
                if np.max(count) > 0:
                    self.body(s.body, scope.enter(s.var, low, count))
            elif isinstance(s, ir.If):
                self.expressions((s.cond,), scope)
                cond = _value(s.cond, scope)
                yes, no = (scope.mask, scope.mask) if cond is None else (scope.mask & (cond != 0), scope.mask & (cond == 0))
                self.body(s.then, replace(scope, mask=yes))
                self.body(s.orelse, replace(scope, mask=no))
            elif isinstance(s, ir.Store):
                self.store(s, scope)
            elif isinstance(s, ir.Alloc | ir.Declare):
                self.scopes[s.buffer.data] = s.buffer.scope
            elif hasattr(s, "body"):
                self.body(s.body, scope)
            else:
                self.expressions(ir.children(s), scope)

    def _alias(self, var: ir.Var, value: ir.Call) -> None:
        for a in value.args:
            if isinstance(a, ir.Var) and a in self.scopes:
                self.scopes[var] = self.scopes[a]

    def expressions(self, items: Any, scope: _Scope) -> None:
        for e in items:
            if isinstance(e, ir.Call) and e.op in ("tl.ptx_cp_async", "tirx.ptx_cp_async"):
                self.cp_async(e, scope)
            elif isinstance(e, ir.Call) and e.op.endswith("ptx_ldmatrix"):
                self.ldmatrix(e, scope)
            elif isinstance(e, ir.Load):
                self.element(e.buffer, e.indices, scope)
                self.expressions(e.indices, scope)
            elif isinstance(e, ir.Call) and e.op == "tirx.address_of":
                continue  # an address, not an access
            elif isinstance(e, ir.Expr):
                self.expressions(ir.children(e), scope)

    # -------------------------------------------------------------------------------------------- accesses
    def store(self, s: ir.Store, scope: _Scope) -> None:
        """A store, and the loads of its value."""
        self.element(s.buffer, s.indices, scope)
        self.expressions((s.value, *s.indices), scope)

    def element(self, buffer: ir.Buffer, indices: tuple[ir.Expr, ...], scope: _Scope) -> None:
        """One element a lane, or as many side by side as a Ramp of stride 1 has."""
        if not buffer.scope.startswith(self.scope):
            return
        found = _offset(buffer, indices, scope)
        if found is not None:
            size = dtype_bits(buffer.dtype)
            self.request(found[0] * size // 8, max(1, size * found[1] // 8), scope)

    def cp_async(self, call: ir.Call, scope: _Scope) -> None:
        """Both sides of ``cp.async``; its size is in elements."""
        count = _whole(call.args[2]) if len(call.args) > 2 else None
        for pointer in call.args[:2]:
            at = self._pointer(pointer, scope)
            if at is not None and count is not None:
                self.request(at[0], max(1, count * at[1] // 8), scope)

    def ldmatrix(self, call: ir.Call, scope: _Scope) -> None:
        """Eight rows of 16 bytes for each of one, two or four matrices: as many lanes give an address."""
        matrices, at = _whole(call.args[1]), self._pointer(call.args[2], scope)
        if at is None or matrices not in (1, 2, 4):
            return
        shape = [1] * _AXES
        shape[-1] = self.lanes
        takes = (np.arange(self.lanes) % WARP < 8 * matrices).reshape(shape)
        self.request(at[0], 16, replace(scope, mask=scope.mask & takes))

    def _pointer(self, e: ir.Expr, scope: _Scope) -> tuple[Any, int] | None:
        """The byte address and the element's bits of a pointer into the memory that is counted."""
        if not isinstance(e, ir.Call) or not e.op.endswith(("tvm_access_ptr", "access_ptr", "address_of")) or not e.args:
            return None
        if isinstance(e.args[0], ir.Load):
            load = e.args[0]
            if not load.buffer.scope.startswith(self.scope) or len(load.indices) != 1:
                return None
            dtype, offset = load.buffer.dtype, _value(load.indices[0], scope)
        else:
            data = e.args[1]
            if not isinstance(data, ir.Var) or not (data.scope or self.scopes.get(data, "global")).startswith(self.scope):
                return None
            dtype, offset = e.args[0].dtype, _value(e.args[2], scope)
        bits = dtype_bits(dtype)
        return None if offset is None else (offset * bits // 8, bits)

    def request(self, address: Any, width: int, scope: _Scope) -> None:
        """Count one access for every warp and every turn of the loops that it depends on."""
        shape = np.broadcast_shapes(np.shape(address), scope.mask.shape, (1,) * (_AXES - 1) + (self.lanes,))
        points = int(np.prod(shape))
        if points > _MOST_POINTS:
            raise Unpredictable
        turns = float(np.prod(scope.extents, dtype=float)) * self.lanes / points
        at = np.broadcast_to(address, shape).reshape(-1, WARP)
        on = np.broadcast_to(scope.mask, shape).reshape(-1, WARP)
        if not on.all():
            runs = on.any(axis=1)
            at, on = at[runs], on[runs]
        for piece, part in _pieces(width):
            passes, least = (shared_requests if self.scope == "shared" else global_requests)(at + piece, part, on)
            self.total.add(self.times * turns, passes, least, part)


class _Finder(_Counter):
    """Looks for the thread that stores one element."""

    def __init__(self, program: ir.Program, data: ir.Var, element: int, block: tuple[int, int, int]) -> None:
        super().__init__(program, "global", Requests())
        self.data, self.at, self.element_at = data, block, element
        self.thread: int | None = None

    def blocks(self, count: int, grid: list[int]) -> Array:
        x, y, z = self.at
        shape = (*grid, 1, 1)
        return np.asarray([min(x + shape[0] * (y + shape[1] * z), count - 1)], np.int64)

    def store(self, s: ir.Store, scope: _Scope) -> None:
        found = _offset(s.buffer, s.indices, scope) if s.buffer.data is self.data else None
        if found is None:
            return
        shape = np.broadcast_shapes(np.shape(found[0]), scope.mask.shape, (1,) * (_AXES - 1) + (self.lanes,))
        if np.prod(shape) > _MOST_POINTS:
            return
        hit = np.broadcast_to((found[0] <= self.element_at) & (self.element_at < found[0] + found[1]) & scope.mask, shape)
        if hit.any():
            self.thread = int(np.flatnonzero(hit.reshape(-1, self.lanes).any(axis=0))[0])

    def expressions(self, items: Any, scope: _Scope) -> None:
        """Loads do not matter here."""


def _offset(buffer: ir.Buffer, indices: tuple[ir.Expr, ...], scope: _Scope) -> tuple[Any, int] | None:
    """The first element that each lane accesses, and how many side by side; None where that is not known."""
    if not indices:
        return None
    last: ir.Expr = indices[-1]
    lanes = 1
    if isinstance(last, ir.Ramp):
        if _whole(last.stride) != 1:
            return None
        lanes, last = last.lanes, last.base
    offset: Any = np.int64(0)
    for index, extent in zip((*indices[:-1], last), buffer.shape, strict=True):
        value, n = _value(index, scope), _whole(extent)
        if value is None or (n is None and len(indices) > 1):
            return None
        offset = offset * (n or 0) + value
    return offset, lanes


def _pieces(width: int) -> Iterator[tuple[int, int]]:
    """An access wider than 16 bytes is several."""
    for at in range(0, width, 16):
        yield at, min(16, width - at)


def _value(e: ir.Expr, scope: _Scope) -> Any:
    try:
        return np.asarray(evaluate(_plain(e), scope.values))
    except (InputError, KeyError, ZeroDivisionError):
        return None


def _plain(e: ir.Expr) -> ir.Expr:
    """A negation as a comparison, which the evaluator knows."""
    if isinstance(e, ir.Not):
        return ir.Bin(dtype=e.dtype, op="eq", a=e.a, b=ir.Const(dtype="bool", value=0))
    return e


def _whole(e: Any) -> int | None:
    return int(e.value) if isinstance(e, ir.Const) else None

"""The compile-time context of a statement or expression: its lane axes and the names of its loops, for reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim.lanes import Ex, Frame, Unsupported


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """The lane axes of one launch: for each, which coordinate (0 = x) of the block or the thread it is.

    ``extents`` gives the thread extents (x, y, z); ``blocks`` and ``threads`` list coordinates, outermost first.
    """

    blocks: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    extents: tuple[int, int, int] = (1, 1, 1)

    @property
    def rank(self) -> int:
        """How many lane axes there are outside all parallel loops."""
        return len(self.blocks) + len(self.threads)

    def block_axis(self, coordinate: int) -> int | None:
        """The lane axis of block coordinate ``coordinate`` (0 = x)."""
        return self.blocks.index(coordinate) if coordinate in self.blocks else None

    def thread_axis(self, coordinate: int) -> int | None:
        """The lane axis of thread coordinate ``coordinate`` (0 = x)."""
        return len(self.blocks) + self.threads.index(coordinate) if coordinate in self.threads else None

    @property
    def thread_axes(self) -> tuple[int, ...]:
        """The lane axes of threads."""
        return tuple(range(len(self.blocks), self.rank))


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where code stands.

    Attributes:
        grid: The axes of the launch.
        rank: Lane axes here (blocks, threads, parallel loops).
        parallel: The parallel loops around: (name, axis, first value).
        extents: Their extents.
        loops: The serial loops around: (name, slot of the variable).
        loc: The statement.
        nest: Collects the accesses of the parallel space being compiled, to find races.
        host: Outside any launch.
        each: Whether each thread does this by itself (not so in a T.Parallel that is shared out, or a tile operation).
    """

    grid: Grid
    rank: int
    parallel: tuple[tuple[str, int, Ex | None], ...] = ()
    extents: tuple[Ex, ...] = ()
    loops: tuple[tuple[str, int], ...] = ()
    loc: ir.SourceLoc | None = None
    nest: Any = None
    host: bool = False
    each: bool = True

    def at(self, loc: ir.SourceLoc | None) -> Context:
        """The same context at another statement."""
        return replace(self, loc=loc) if loc is not None and loc is not self.loc else self

    def inner(self, name: str, first: Ex | None, extent: Ex) -> Context:
        """Within one more parallel loop."""
        return replace(self, rank=self.rank + 1, parallel=(*self.parallel, (name, self.rank, first)), extents=(*self.extents, extent))

    def extent_of(self, axis: int) -> Ex | None:
        """The extent of the parallel loop on ``axis``."""
        for (_, a, _), extent in zip(self.parallel, self.extents, strict=True):
            if a == axis:
                return extent
        return None

    def agreed(self, fr: Frame, value: Any, name: str) -> Any:
        """The one value that the active threads hold, in code that they run together.

        Raises:
            Unsupported: They hold different values.
        """
        axes = self.grid.thread_axes
        if not isinstance(value, np.ndarray) or all(value.shape[a] == 1 for a in axes):
            return value
        on: Any = None
        if fr.outer is not None:
            on = fr.outer.any(axis=tuple(a for a in range(fr.outer.ndim) if a not in axes))
            on = np.broadcast_to(on, [fr.size[a] for a in axes])
        first: Any = np.unravel_index(int(np.argmax(on)), on.shape) if on is not None else (0,) * len(axes)
        pick = [slice(None)] * value.ndim
        for a, i in zip(axes, first, strict=True):
            pick[a] = slice(int(i), int(i) + 1) if value.shape[a] > 1 else slice(None)
        out = value[tuple(pick)]
        if fr.run.checks:
            same = (value == out) | ((value != value) & (out != out))
            if on is not None:
                shape = [1] * value.ndim
                for a, n in zip(axes, on.shape, strict=True):
                    shape[a] = n
                same = same | ~on.reshape(shape)
            if not same.all():
                what = f"{name}, on whose value the threads disagree, in T.Parallel or a tile operation"
                raise Unsupported(what, self.loc, "use the thread's own value outside of it")
        return out

    def loop(self, name: str, slot: int) -> Context:
        """Within one more serial loop."""
        return replace(self, loops=(*self.loops, (name, slot)))

    # ------------------------------------------------------------------------------------------------ reporting
    def block(self, fr: Frame, lane: tuple[int, ...]) -> tuple[int, int, int] | None:
        """The block (x, y, z) of a lane."""
        if self.host:
            return None
        out = [0, 0, 0]
        for axis, coordinate in enumerate(self.grid.blocks):
            out[coordinate] = fr.start[axis] + (lane[axis] if axis < len(lane) else 0)
        return (out[0], out[1], out[2])

    def thread(self, lane: tuple[int, ...]) -> tuple[int, int, int] | None:
        """The thread (x, y, z) of a lane; None where the code does not depend on it."""
        if not self.grid.threads:
            return None
        out = [0, 0, 0]
        for i, coordinate in enumerate(self.grid.threads):
            axis = len(self.grid.blocks) + i
            out[coordinate] = lane[axis] if axis < len(lane) else 0
        return (out[0], out[1], out[2])

    def indices(self, fr: Frame, lane: tuple[int, ...]) -> dict[str, Any]:
        """The values of the loop variables around, by name."""
        out: dict[str, Any] = {}
        for name, slot in self.loops:
            v = fr.v[slot]
            out[name] = v if isinstance(v, int) else _at(v, lane)
        for name, axis, first in self.parallel:
            low = _at(first.fn(fr), lane) if first is not None else 0
            out[name] = low + (lane[axis] if axis < len(lane) else 0)
        return out


def _at(v: Any, lane: tuple[int, ...]) -> Any:
    if getattr(v, "ndim", 0) == 0:
        return int(v) if v is not None else 0
    return v[tuple(min(i, n - 1) for i, n in zip(lane, v.shape, strict=False))].item()

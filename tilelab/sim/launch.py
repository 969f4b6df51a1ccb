"""Launches: which chunks of blocks run, in what order, and with what cuts where tails begin."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import clusters, sync
from tilelab.sim.access import Access
from tilelab.sim.context import Grid
from tilelab.sim.flow import Op
from tilelab.sim.lanes import Ex, Frame

#: Bytes of live values that a chunk of blocks aims at: about the size of a cache.
CHUNK_BYTES = 4 << 20
#: Bytes of a block from which blocks whose loops differ in length are run apart, not under masks.
APART_BYTES = 16 << 10


@dataclass(slots=True, kw_only=True)
class Edge:
    """A global access whose bounds depend on one block axis: where it first leaves the buffer is a good place to cut."""

    axis: int
    access: Access
    dim: int


class Launch:
    """One compiled launch."""

    def __init__(
        self, comp: Any, s: ir.Launch, grid: Grid, extents: tuple[Ex, ...], op: Op, edges: list[Edge], live: Any, shared: Any
    ) -> None:
        self.comp, self.s, self.grid, self.extents, self.op = comp, s, grid, extents, op
        self.edges, self.live, self.shared = edges, live, shared
        self.single = False  # one block at a time in a chunk
        self.cluster: tuple[int, ...] = (1, 1, 1)  # blocks of a cluster, x first: they run at the same time
        self.uneven: set[int] = set()
        self.between = False  # all chunks at the same time
        self.takes_over = False  # blocks may take over what others have not begun

    def run(self, host: Frame) -> None:
        """Run all blocks."""
        run = host.run
        sizes = [int(e.fn(host)) for e in self.extents]
        shape = tuple(sizes[c] for c in self.grid.blocks)
        if any(n <= 0 for n in sizes):
            return
        run.begin_launch(self, host, shape)
        gen = self.op.gen
        together = gen is not None and (self.between or self.cluster != (1, 1, 1))
        parts: Iterable[Any] = self.groups(host, shape) if together else self.chunks(host, shape)
        run.pending = None
        if self.takes_over:
            run.pending = clusters.Pending(parts, self.first_block)
            parts = iter(lambda: run.pending.next() if run.pending.parts else None, None)
        for part in parts:
            frames = part if together else [self.frame(host, part)]
            if gen is not None:
                sync.drive([gen(fr) for fr in frames])
            else:
                self.op.run(frames[0])
        run.end_launch(self, host, shape)

    def groups(self, host: Frame, shape: tuple[int, ...]) -> Iterator[list[Frame]]:
        """Blocks that run at the same time: those of a cluster, or all."""
        frames = [self.frame(host, chunk) for chunk in self.chunks(host, shape)]
        found = list(clusters.clusters(frames, self.grid, self.cluster))
        yield from [frames] if self.between else found

    def first_block(self, part: Any) -> tuple[int, int, int]:
        """The coordinates of the first block of a part of the launch."""
        at = [0, 0, 0]
        for axis, c in enumerate(self.grid.blocks):
            at[c] = part[axis][0] if isinstance(part, tuple) else part[0].start[axis]
        return at[0], at[1], at[2]

    def frame(self, host: Frame, chunk: tuple[tuple[int, int], ...]) -> Frame:
        """The frame of a chunk of blocks."""
        host.run.more_blocks(tuple(int(e.fn(host)) for e in self.extents), self.s.loc)
        fr = Frame(host.run, 0, 0, self.comp.max_rank)
        fr.v = list(host.v)
        fr.mem = list(host.mem)
        host.run.blocks += int(np.prod([hi - lo for lo, hi in chunk], dtype=np.int64))
        for axis, (lo, hi) in enumerate(chunk):
            fr.start[axis], fr.size[axis] = lo, hi - lo
        nb = len(self.grid.blocks)
        for i, c in enumerate(self.grid.threads):
            fr.size[nb + i] = self.grid.extents[c]
        if host.run.recorder is not None:
            host.run.recorder.enter(self, fr, chunk)
        return fr

    def chunks(self, host: Frame, shape: tuple[int, ...]) -> Iterator[tuple[tuple[int, int], ...]]:
        """Ranges of block coordinates: cut where tails begin, then by live bytes."""
        limit = 1 if self.single else max(1, CHUNK_BYTES // max(1, self.block_bytes(host)))
        alone = host.run.recorder.cuts if host.run.recorder is not None else lambda grid, axis, n: ()
        cuts = [sorted({0, n, *self.tails(host, axis, n), *alone(self.grid, axis, n)}) for axis, n in enumerate(shape)]
        segments: list[tuple[tuple[int, int], ...]] = [()]
        for edges in cuts:
            pairs = list(itertools.pairwise(edges))
            segments = [(*s, p) for s in segments for p in pairs]
        apart = self.uneven if self.block_bytes(host) >= APART_BYTES else ()
        for segment in segments:
            yield from split(segment, limit, tuple(apart))

    def block_bytes(self, host: Frame) -> int:
        """Bytes that one block keeps alive, roughly."""
        total = 4096
        for shape, itemsize in self.live:
            n = itemsize
            for e in shape:
                n *= e.const if isinstance(e.const, int) else 64
            total += n
        return total

    def tails(self, host: Frame, axis: int, n: int) -> set[int]:
        """Block coordinates along ``axis`` from which some access leaves its buffer."""
        out: set[int] = set()
        for e in self.edges:
            if e.axis != axis:
                continue
            buf = host.mem[e.access.slot]
            if buf is None:
                continue
            aff = e.access.dims[e.dim][0]
            assert aff is not None
            if not isinstance(aff.base, int):
                continue
            top, step = aff.base, 1
            known = True
            for a, c in aff.terms:
                if not isinstance(c, int):
                    known = False
                elif a == axis:
                    step = c
                else:
                    span = _span(e.access, a)
                    if span is None:
                        known = False
                    else:
                        top += max(0, c * (span - 1))
            if known:
                cut = (buf.shape[e.dim] - 1 - top) // step + 1
                if 0 < cut < n:
                    out.add(cut)
        return out if len(out) <= 3 else set(sorted(out)[-3:])


def _span(acc: Access, axis: int) -> int | None:
    """The extent of a lane axis inside the blocks, where it is known before the launch."""
    grid = acc.ctx.grid
    nb = len(grid.blocks)
    if axis < grid.rank:
        return grid.extents[grid.threads[axis - nb]] if axis >= nb else None
    ex = acc.ctx.extent_of(axis)
    return ex.const if ex is not None and isinstance(ex.const, int) else None


def split(segment: tuple[tuple[int, int], ...], limit: int, apart: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, int], ...]]:
    """Cut a box of blocks into boxes of at most ``limit`` blocks, keeping inner axes whole but for those ``apart``."""
    if not segment:
        yield ()
        return
    sizes = [hi - lo for lo, hi in segment]
    take = [1] * len(sizes)
    room = limit
    for a in reversed(range(len(sizes))):
        if a in apart:
            continue
        take[a] = max(1, min(sizes[a], room))
        room //= take[a]
        if take[a] < sizes[a]:
            break
    steps = [range(lo, hi, t) for (lo, hi), t in zip(segment, take, strict=True)]
    for at in np.ndindex(*(len(r) for r in steps)):
        yield tuple((steps[a][i], min(steps[a][i] + take[a], segment[a][1])) for a, i in enumerate(at))

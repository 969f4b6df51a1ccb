"""The Schedule: which statement of which iteration of a pipelined loop runs in which step, and what lies in which buffer then.

A pipelined loop of ``n`` iterations becomes ``n + max(stage)`` steps. Step ``k`` runs, in the order of ``order``, each statement ``s``
for iteration ``k - stage[s]`` where there is one. Steps count; ``start_ns`` and ``end_ns`` are there for who knows times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilelab.finding import Finding
from tilelab.ir import SourceLoc

#: Kinds of work, each a lane of its own.
LANES = ("copy", "compute", "store")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledStatement:
    """A statement of the loop's body.

    Attributes:
        text: What it does, in a few words.
        lane: Which of ``Schedule.lanes`` runs it.
        stage: By how many steps it lags behind the first stage.
        order: Its place within a step.
        reads: Names of the buffers that it reads.
        writes: Names of the buffers that it writes.
        is_async: It is only issued in its step, and lands before its first reader.
        loc: Its lines.
    """

    text: str
    lane: str
    stage: int
    order: int
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    is_async: bool = False
    loc: SourceLoc | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Statement ``statement`` of iteration ``iteration`` runs in step ``step``, from ``start_ns`` to ``end_ns`` where times are known."""

    step: int
    statement: int
    iteration: int
    start_ns: float | None = None
    end_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledBuffer:
    """A buffer that the loop fills anew in each iteration. ``version_bytes`` is the size of one of its ``versions``."""

    name: str
    dtype: str
    scope: str
    version_bytes: int
    versions: int

    @property
    def bytes(self) -> int:
        """Its size with all versions."""
        return self.version_bytes * self.versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Version ``version`` of ``buffer`` holds iteration ``iteration``: written from step ``written``, read in ``read`` to ``last``."""

    buffer: str
    version: int
    iteration: int
    written: int
    read: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The schedule of one pipelined loop.

    Attributes:
        loop: The loop's variable.
        loc: Its line.
        basis: ``"planned"`` (by TileLang), ``"hand"`` (order and stage were given), ``"roles"`` (a producer and a consumer role),
            ``"hand-roles"`` (roles divided by hand, run by their mbarriers; a lane is a word and its threads), ``"sequential"`` (nothing
            overlaps) or ``"what-if"``.
        num_stages: Depth of the pipeline.
        iterations: Iterations of the loop; 0 where only the launch knows.
        shown: Iterations that are in ``slots``: the first ones, enough for the whole steady state to be seen.
        lanes: The lanes, in the order of the picture.
        statements: The body.
        slots: What runs when, by step and order.
        buffers: What has versions.
        held: What lies in them.
        findings: The dependences that it breaks (TL209).
    """

    loop: str
    loc: SourceLoc | None = None
    basis: str
    num_stages: int
    iterations: int
    shown: int
    lanes: tuple[str, ...]
    statements: tuple[ScheduledStatement, ...]
    slots: tuple[Slot, ...]
    buffers: tuple[ScheduledBuffer, ...] = ()
    held: tuple[Held, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def smem_bytes(self) -> int:
        """Shared memory of all versions together."""
        return sum(b.bytes for b in self.buffers if b.scope.startswith("shared"))

    @property
    def depth(self) -> int:
        """The last stage: steps that fill the pipeline."""
        return max((s.stage for s in self.statements), default=0)

    @property
    def steps(self) -> int:
        """How many steps there are for the iterations shown."""
        return max((s.step for s in self.slots), default=-1) + 1

    @property
    def phases(self) -> Mapping[str, tuple[int, int]]:
        """Phase → its first step and the one behind its last: prologue, steady state (all stages run), epilogue."""
        if self.basis == "hand-roles":
            lane = [s.lane for s in self.statements]
            runs = {name: [s.step for s in self.slots if lane[s.statement] == name] for name in self.lanes}
            begun = max((min(steps) for steps in runs.values() if steps), default=0)
            ended = max(begun, min((max(steps) + 1 for steps in runs.values() if steps), default=0))
            return {"prologue": (0, begun), "steady": (begun, ended), "epilogue": (ended, self.steps)}
        fill = min(self.depth, self.steps)
        drain = max(fill, self.shown)
        return {"prologue": (0, fill), "steady": (fill, drain), "epilogue": (drain, self.steps)}

    def alive_bytes(self) -> tuple[int, ...]:
        """Bytes of shared memory whose versions are in use in each step."""
        size = {b.name: b.version_bytes if b.scope.startswith("shared") else 0 for b in self.buffers}
        return tuple(sum(size[h.buffer] for h in self.held if h.written <= step <= h.last) for step in range(self.steps))

    @property
    def overlap(self) -> int:
        """Iterations of a copy's reader that run between its issue and its use, for the copy with the fewest: 0, and nothing overlaps."""
        found = []
        for c in self.statements:
            for r in self.statements if c.is_async else ():
                if set(c.writes) & set(r.reads):
                    found.append(r.stage - c.stage - (0 if r.order > c.order else 1))
        return max(0, min(found, default=0))

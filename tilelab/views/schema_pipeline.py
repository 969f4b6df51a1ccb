"""The JSON of the pipeline view. Steps are counted from 0; ``start_ns`` and ``end_ns`` are null where no time is known."""

from __future__ import annotations

from typing import Any, TypedDict


class PipelineStatement(TypedDict):
    """A statement of the loop's body; ``lane`` is a place in the plan's lanes."""

    text: str
    lane: int
    stage: int
    order: int
    asynchronous: bool
    reads: list[str]
    writes: list[str]
    file: str
    line: int


class PipelineCell(TypedDict):
    """Statement ``statement`` of iteration ``iteration`` runs in step ``step``."""

    statement: int
    step: int
    iteration: int
    start_ns: float | None
    end_ns: float | None


class PipelineBuffer(TypedDict):
    """A buffer with versions; ``bytes`` of one of them."""

    name: str
    dtype: str
    scope: str
    bytes: int
    versions: int


class PipelineHeld(TypedDict):
    """Version ``version`` of buffer ``buffer`` (its place in the list) is filled from step ``written``, used from ``read`` to ``last``."""

    buffer: int
    version: int
    iteration: int
    written: int
    read: int
    last: int


class PipelinePhase(TypedDict):
    """A phase (a key of the word table): its first step and the one behind its last."""

    key: str
    first: int
    end: int


class PipelinePlanRecord(TypedDict):
    """One way to run the loop. ``kernel_bytes``: shared memory of the whole kernel with it; ``alive``: bytes of versions in use by step."""

    basis: str
    num_stages: int
    steps: int
    shown: int
    lanes: list[str]
    statements: list[PipelineStatement]
    cells: list[PipelineCell]
    phases: list[PipelinePhase]
    buffers: list[PipelineBuffer]
    held: list[PipelineHeld]
    alive: list[int]
    smem_bytes: int
    kernel_bytes: int
    fits: bool
    overlap: int
    findings: list[dict[str, Any]]


class PipelineLoop(TypedDict):
    """A pipelined loop: its own plan first, then the same loop with other depths. ``iterations`` is 0 where only the launch knows."""

    name: str
    file: str
    line: int
    iterations: int
    plans: list[PipelinePlanRecord]


class PipelineData(TypedDict):
    """The data of the pipeline view. ``axis``: what a column is (``"steps"``); ``limit_bytes`` is 0 where no limit is known."""

    kernel: str
    target: str
    gpu: str
    limit_bytes: int
    axis: str
    loops: list[PipelineLoop]
    selected: int


class PipelineViewRecord(TypedDict):
    """A pipeline view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: PipelineData

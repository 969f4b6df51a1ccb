"""The Trace: what a simulation did. Plain records that the debugger, the views and the grader read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelab.finding import Finding
from tilelab.ir import SourceLoc


@dataclass(frozen=True, slots=True, kw_only=True)
class SimParams:
    """How to simulate.

    Attributes:
        seed: Orders the warps where that matters. Default: 0.
        checks: Look for mistakes while running. Default: True.
        target: The GPU whose budgets are checked, in canonical form. Default: ``"sm_80"``.
        max_steps: Statements run per block before the run is stopped as endless. Default: 50 million.
        max_seconds: Seconds after which the run is stopped, whatever it does; 0 for never. Default: 0.
        record_blocks: Blocks whose every step is recorded, as (x, y, z). Default: none.
        record_bytes: Bound on the memory of the recording, in bytes. Default: 256 MiB.
        max_findings: Findings kept for each (code, line). Default: 1.
    """

    seed: int = 0
    checks: bool = True
    target: str = "sm_80"
    max_steps: int = 50_000_000
    max_seconds: float = 0.0
    record_blocks: tuple[tuple[int, int, int], ...] = ()
    record_bytes: int = 256 << 20
    max_findings: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintRecord:
    """One executed ``T.print``: the typed values, never a formatted string.

    ``values`` is a numpy array (0-d for a scalar). ``thread`` is None when a whole tile is printed.
    """

    message: str
    name: str
    dtype: str
    values: Any
    loc: SourceLoc | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int] | None
    loops: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step of a recorded block: the statement that ran and what it wrote.

    Attributes:
        index: Position in ``Trace.events``; a finding made by this step has it as ``evidence["step"]``.
        block: The block, as (x, y, z).
        role: Which threads run this side of a branch in which somebody waits (``"threads 128–255"``); empty for all.
        text: The statement, as the user wrote it where its line is known.
        loc: Its lines.
        loops: Values of the serial loops around.
        after: Buffer or variable → its value after the step, an array; only what the step wrote. Elements that nobody
            has written yet are masked (a numpy masked array).
        reads: Buffers that the step reads.
        threads: Which threads a condition lets run this (``"thread 0"``); empty for all of the role.
        prints: Positions in ``Trace.prints`` of what it printed.
        evidence: What else is known: ``"nan"`` (the first NaN or Inf: buffer, index, value and operands).
    """

    index: int
    block: tuple[int, int, int]
    role: str
    text: str
    loc: SourceLoc | None
    loops: Mapping[str, int]
    after: Mapping[str, Any]
    reads: tuple[str, ...] = ()
    threads: str = ""
    prints: tuple[int, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferInfo:
    """What a recorded name is: a buffer of ``scope``, or a variable (``scope`` ``"let"``). ``shape`` as declared."""

    dtype: str
    scope: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The outcome of one run.

    Attributes:
        outputs: Written parameters and ``out0…`` by name, as arrays of the kind that went in.
        result: What the kernel returns (None, a tensor or a tuple).
        findings: In the order of the source.
        prints: In the order of execution.
        events: Steps of the recorded blocks, in order.
        truncated: What was left out of ``events`` because of ``SimParams.record_bytes``; empty if nothing.
        buffers: Recorded name → what it is.
        sources: File name → text, where events were recorded.
        kernel: The name of the program, where events were recorded.
        counts: What ran: ``{"blocks": …, "bytes_read": …, "bytes_written": …, "flops": …, "launches": …}``.
    """

    outputs: Mapping[str, Any]
    result: Any = None
    findings: tuple[Finding, ...] = ()
    prints: tuple[PrintRecord, ...] = ()
    events: tuple[Event, ...] = ()
    truncated: str = ""
    buffers: Mapping[str, BufferInfo] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    kernel: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)

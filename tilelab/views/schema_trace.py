"""The JSON of the trace view; see :mod:`tilelab.views.schema`."""

from __future__ import annotations

from typing import TypedDict

from tilelab.views.schema import Array


class TraceFile(TypedDict):
    """A source file: its lines from ``first`` on."""

    name: str
    first: int
    lines: list[str]


class TraceSteps(TypedDict):
    """The steps, a column a field. ``file`` is -1 and ``line`` 0 where none is known; the rest are places in the lists of names."""

    file: Array
    line: Array
    end: Array
    caller: Array
    depth: Array
    text: Array
    role: Array
    threads: Array
    names: Array
    loops: Array


class TraceBuffer(TypedDict):
    """A name with values. ``steps``: when it was written; ``values``: what then (-1: left out of this file).

    ``origin`` and ``extent`` say which part of the whole, whose shape is ``shape``, the values are (no extent: all of it); ``low`` and
    ``high`` bound the finite values of all steps.
    """

    name: str
    dtype: str
    scope: str
    shape: list[int]
    origin: list[int]
    extent: list[int]
    low: float
    high: float
    steps: Array
    values: Array


class TraceValue(TypedDict):
    """One value: an array, or (``base`` ≥ 0) another value with the elements ``where`` replaced. ``empty``: nobody wrote these."""

    base: int
    where: Array | None
    array: Array
    empty: Array | None


class TracePrint(TypedDict):
    """One executed T.print. ``step`` is -1 where it belongs to no recorded step."""

    step: int
    file: str
    line: int
    block: list[int]
    thread: list[int] | None
    loops: dict[str, int]
    what: str
    dtype: str
    value: Array


class TraceFinding(TypedDict):
    """One finding and the step that made it (-1: none)."""

    step: int
    code: str
    severity: str
    message: str
    fix: str
    file: str
    line: int


class TraceOperand(TypedDict):
    """An element that went into a first NaN or Inf, and its value as text."""

    buffer: str
    index: list[int]
    value: str


class TraceNan(TypedDict):
    """The first NaN or Inf that was not meant."""

    step: int
    buffer: str
    index: list[int]
    value: str
    count: int
    operands: list[TraceOperand]


class TraceBreak(TypedDict):
    """A breakpoint: a line, a condition, or an event (nan, finding, oob, or a code)."""

    number: int
    file: str
    line: int
    condition: str
    event: str


class TraceWatch(TypedDict):
    """A watched expression and its value at the step shown, as text."""

    text: str
    value: str


class TraceData(TypedDict):
    """The data of the trace view: the steps of one block, the values that they wrote, what they printed, what is wrong."""

    kernel: str
    block: list[int]
    files: list[TraceFile]
    texts: list[str]
    roles: list[str]
    threads: list[str]
    loops: list[list[str]]
    steps: TraceSteps
    count: int
    buffers: list[TraceBuffer]
    values: list[TraceValue]
    prints: list[TracePrint]
    prints_lost: int
    findings: list[TraceFinding]
    nan: TraceNan | None
    breakpoints: list[TraceBreak]
    watches: list[TraceWatch]
    at: int
    hit: str
    selected: str
    notes: list[str]


class TraceViewRecord(TypedDict):
    """A trace view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: TraceData

"""The JSON of the views: its fields and what they mean. The TypeScript types are generated from these classes.

``Array`` stands for an array as :mod:`tilelab.views.encode` writes it. Bump ``VERSIONS`` when a field changes its meaning or goes away.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

from tilelab.analysis.banks import Conflict

#: kind of view → version of its schema ``tilelab.view.KIND``
VERSIONS: Mapping[str, int] = {"conflict": 1, "layout": 1, "pipeline": 1, "program": 1, "resources": 1, "trace": 1, "whatif": 1}

Array: TypeAlias = Any


class Fact(TypedDict):
    """One thing known about a layout: a key of the word table, and its value as text (or a key, with what fills it)."""

    key: str
    fill: dict[str, Any]


class Place(TypedDict):
    """A line of the user's source."""

    file: str
    line: int


class Arrays(TypedDict, total=False):
    """The layout itself. Shapes: ``(*shape, replicas)`` for thread and register, ``shape`` for the rest."""

    thread: Array
    register: Array
    address: Array
    bank: Array
    bank_before: Array
    word: Array
    hits: Array
    hits_before: Array
    value: Array


class LayoutFrame(TypedDict):
    """Values after a step of a Trace: the statement that wrote them, its line; arrays of the layout's shape (``unwritten``: 1, 0)."""

    step: int
    text: str
    line: int
    value: Array
    unwritten: Array


class LayoutThrough(TypedDict):
    """A fragment and a shared buffer of one shape (places in the list of layouts): ``passes`` over the banks, register by register."""

    fragment: int
    shared: int
    passes: list[int]


class LayoutRecord(TypedDict):
    """One layout; ``frames`` are values on it at the steps of a Trace, in order."""

    name: str
    layout: str
    dtype: str
    bits: int
    scope: str
    shape: list[int]
    params: list[str]
    axes: list[int]
    at: list[int]
    threads: int
    registers: int
    replicas: int
    addresses: int
    words: int
    formula: list[list[str]]
    facts: list[Fact]
    conflicts: list[Conflict]
    findings: list[dict[str, Any]]
    loc: Place | None
    arrays: Arrays
    frames: list[LayoutFrame]


class LayoutData(TypedDict):
    """The data of the layout view: one record for each buffer or loop, and which one is shown first."""

    layouts: list[LayoutRecord]
    through: list[LayoutThrough]
    selected: int
    target: str


class ViewRecord(TypedDict):
    """A view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: LayoutData

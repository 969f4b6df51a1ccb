"""The JSON of the program view; see :mod:`tilelab.views.schema`."""

from __future__ import annotations

from typing import TypedDict

from tilelab.views.schema import Array


class ProgramPlace(TypedDict):
    """A line of the user's source (``file`` among the names), and the place that called the macro it stands in (-1: none)."""

    file: int
    line: int
    caller: int


class ProgramPane(TypedDict):
    """One text: its lines, and for each of them the place that it comes from (-1: none)."""

    key: str
    language: str
    lines: list[str]
    place: Array


class ProgramHunk(TypedDict):
    """A change: at line ``at`` of the text before, ``removed`` lines gave way to ``added`` (among ``texts``)."""

    at: int
    removed: int
    added: list[int]


class ProgramPass(TypedDict):
    """A compiler pass. The text after it is that after pass ``base`` (-1: an empty one) with ``hunks`` applied."""

    name: str
    ms: float
    changed: bool
    base: int
    hunks: list[ProgramHunk]


class ProgramVariant(TypedDict):
    """One lowering of a kernel. ``located``: share of lowered statements that name a user line; ``note``: what is not here, and why."""

    name: str
    target: str
    kernel: str
    panes: list[ProgramPane]
    passes: list[ProgramPass]
    located: float
    note: str


class ProgramDiff(TypedDict):
    """Where pane ``key`` of variants ``a`` and ``b`` differs: ``[first of a, end of a, first of b, end of b]`` each."""

    a: int
    b: int
    key: str
    hunks: list[list[int]]


class ProgramData(TypedDict):
    """The data of the program view. ``beside`` is the variant shown beside the ``selected`` one (-1: none)."""

    kernel: str
    files: list[str]
    places: list[ProgramPlace]
    texts: list[str]
    variants: list[ProgramVariant]
    diffs: list[ProgramDiff]
    selected: int
    beside: int
    shown: list[str]


class ProgramViewRecord(TypedDict):
    """A program view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: ProgramData

"""The JSON of the what-if view and of the conflict view. What is null is unknown."""

from __future__ import annotations

from typing import Any, TypedDict

from tilelab.views.schema import Array


class WhatIfVariant(TypedDict):
    """One edited kernel, as ``WhatIf.to_json`` writes it: ``edits`` by axis (empty: as written), what it takes, what is against it."""

    edits: dict[str, Any]
    target: str
    threads: int | None
    smem_bytes: int | None
    smem_limit_bytes: int | None
    source_lines: int | None
    statements: int | None
    registers: int | None
    spill_bytes: int | None
    blocks_per_sm: int | None
    occupancy: float | None
    bytes_asked: int | None
    least_s: float | None
    seconds: float | None
    runs: bool
    banks: dict[str, int]
    layouts: list[str]
    findings: list[dict[str, Any]]
    refusal: dict[str, Any] | None


class WhatIfColumn(TypedDict):
    """A column of the table: a key of the word table, and for each variant its text and what sorts it (null: nothing)."""

    key: str
    texts: list[str]
    order: list[float | None]


class WhatIfData(TypedDict):
    """The data of the what-if view."""

    kernel: str
    axes: dict[str, list[Any]]
    variants: list[WhatIfVariant]
    columns: list[WhatIfColumn]


class WhatIfViewRecord(TypedDict):
    """A what-if view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: WhatIfData


class ConflictMap(TypedDict):
    """One of the two layouts: the owner of each element, the line that wants it and its text."""

    buffer: str
    threads: int
    line: int
    text: str
    owners: Array


class ConflictPart(TypedDict):
    """The first element whose owners differ, and those owners in either map."""

    index: list[int]
    threads: list[list[int]]


class ConflictData(TypedDict):
    """The data of the conflict view. ``apart`` is 1 where the maps differ; ``remedies`` were tried and work."""

    message: str
    fix: str
    file: str
    line: int
    text: str
    maps: list[ConflictMap]
    apart: Array
    parts_at: ConflictPart | None
    remedies: list[str]


class ConflictViewRecord(TypedDict):
    """A conflict view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: ConflictData

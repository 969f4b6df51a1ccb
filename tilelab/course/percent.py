"""py:percent sources and notebooks: one source, of which the solution, the stub and the notebooks are made.

A solution region holds the solution, and the starter's lines behind ``#|``::

    ### BEGIN SOLUTION
    #| # Your turn.
    #| T.clear(out)
    T.copy(tile, out)
    ### END SOLUTION

The stub has the starter's lines, the solution the others. Cell ids are hashes of the cells, so that a notebook made
twice is the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelab.errors import InputError

BEGIN, END, STARTER = "### BEGIN SOLUTION", "### END SOLUTION", "#|"
_MARKER = re.compile(r"^# %%(?: \[(?P<kind>markdown|raw)\])?(?: (?P<meta>\w+=.*))?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A notebook cell: ``kind`` is ``"code"`` or ``"markdown"``."""

    kind: str
    source: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str, name: str = "source") -> list[Cell]:
    """Split a py:percent source into cells. Metadata is jupytext's: ``# %% [markdown] key=JSON``, a key a word.

    Raises:
        InputError: A cell marker cannot be read.
    """
    cells: list[Cell] = []
    kind, started = "code", False
    meta: dict[str, Any] = {}
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith("# %%"):
            lines.append(line)
            continue
        match = _MARKER.match(line)
        if match is None:
            raise InputError(f"{name}:{number}: not a cell marker: {line}", fix="write '# %%' or '# %% [markdown]'")
        if started or "".join(lines).strip():
            cells.append(_cell(kind, lines, meta))
        kind, meta, lines, started = match["kind"] or "code", _metadata(match["meta"] or "", f"{name}:{number}"), [], True
    cells.append(_cell(kind, lines, meta))
    return cells


def notebook(cells: list[Cell], metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the cells as a notebook of format 4.5, without outputs."""
    seen: dict[str, int] = {}
    out = []
    for c in cells:
        digest = hashlib.sha256(f"{c.kind}\0{c.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, -1) + 1
        cell: dict[str, Any] = {
            "cell_type": c.kind,
            "id": digest if not seen[digest] else f"{digest}-{seen[digest]}",
            "metadata": dict(c.metadata),
        }
        if c.kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cell["source"] = c.source.splitlines(keepends=True)
        out.append(dict(sorted(cell.items())))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
    return {"cells": out, "metadata": {**kernel, **(metadata or {})}, "nbformat": 4, "nbformat_minor": 5}


def dump(book: Mapping[str, Any]) -> str:
    """Return a notebook's JSON as Jupyter writes it."""
    return json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def solution(text: str) -> str:
    """Return a source with its solutions, without region markers and starter lines."""
    return _regions(text, keep_starter=False)


def stub(text: str) -> str:
    """Return a source with the starter's lines in place of the solutions."""
    return _regions(text, keep_starter=True)


def _regions(text: str, *, keep_starter: bool) -> str:
    out, inside = [], False
    for number, line in enumerate(text.split("\n"), 1):
        bare = line.strip()
        if bare in (BEGIN, END):
            if inside == (bare == BEGIN):
                raise InputError(f"line {number}: {bare} {'inside a region' if inside else 'without its BEGIN'}", fix="pair the markers")
            inside = bare == BEGIN
        elif not inside:
            out.append(line)
        elif bare.startswith(STARTER) == keep_starter:
            indent = line[: len(line) - len(line.lstrip())]
            out.append(f"{indent}{bare[len(STARTER) :].removeprefix(' ')}".rstrip() if keep_starter else line)
    if inside:
        raise InputError(f"{BEGIN} without its END", fix="pair the markers")
    return "\n".join(out)


def _cell(kind: str, lines: list[str], meta: Mapping[str, Any]) -> Cell:
    source = "\n".join(lines).strip("\n")
    if kind == "markdown":
        source = "\n".join(line[2:] if line.startswith("# ") else line.removeprefix("#") for line in source.split("\n"))
    return Cell(kind=kind, source=source, metadata=meta)


def _metadata(text: str, where: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    while text:
        key, _, rest = text.partition("=")
        try:
            out[key.strip()], end = decoder.raw_decode(rest)
        except json.JSONDecodeError:
            raise InputError(f"{where}: cell metadata cannot be read: {text}", fix="write key=JSON") from None
        text = rest[end:].strip()
    return out

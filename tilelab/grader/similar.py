"""Copies in a class: submissions that share what few others have, in their Programs or in their text. A flag is a question, no verdict.

Right answers to a small puzzle look alike, so what is common says nothing: counted are the statements (and pairs of successive
ones) and the lines of text that the starter lacks and that few of the class have.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: A feature says something if at most this share of the class has it (and more than that only in a class of a few).
_RARE_SHARE = 0.2
_RARE_LEAST = 3
_LEAST_SHARED = 4
#: A Program of fewer statements leaves too little room to be alike by anything but chance.
_LEAST_STATEMENTS = 12
_ALIKE = 0.6
#: This much own text, the same to the letter, is no coincidence however many have it.
_SAME_TEXT_CHARACTERS = 240
_MOST_FEATURES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is compared of one submission: its Program's normalised statements and its source text."""

    name: str
    statements: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two submissions that are alike; ``share`` of what is rare in either is in both."""

    a: str
    b: str
    share: float
    why: str


def similar(works: Sequence[Work], starter: Work | None = None) -> list[Pair]:
    """Return the pairs that are alike, the most alike first.

    Args:
        works: The class, and the puzzle's solutions.
        starter: What everybody was given.
    """
    given = starter or Work(name="", statements=(), text="")
    common = (set(_shingles(given.statements)), set(_lines(given.text)))
    features = [
        (_shingles(w.statements) - common[0] if len(w.statements) >= _LEAST_STATEMENTS else set(), _lines(w.text) - common[1])
        for w in works
    ]
    found: dict[tuple[int, int], Pair] = {}
    for kind, why in ((1, "the same lines of text"), (0, "Programs of the same statements")):
        for i, j, share in _alike([f[kind] for f in features]):
            found.setdefault((i, j), Pair(a=works[i].name, b=works[j].name, share=share, why=why))
    for i, j in _same_text([f[1] for f in features]):
        found[i, j] = Pair(a=works[i].name, b=works[j].name, share=1.0, why="the same text to the letter")
    return sorted(found.values(), key=lambda p: (-p.share, p.a, p.b))


def groups(pairs: Sequence[Pair]) -> list[list[str]]:
    """Join pairs into groups, the largest first."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        leader.setdefault(name, name)
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for p in pairs:
        leader[find(p.a)] = find(p.b)
    found: dict[str, list[str]] = {}
    for name in leader:
        found.setdefault(find(name), []).append(name)
    return sorted((sorted(g) for g in found.values()), key=lambda g: (-len(g), g))


def _shingles(statements: Sequence[str]) -> set[str]:
    """Statements and pairs of successive ones."""
    return {*statements, *(f"{a}\n{b}" for a, b in pairwise(statements))}


def _lines(text: str) -> set[str]:
    """Lines as they read, without space and without those that everybody has (imports, brackets)."""
    lines = (re.sub(r"\s+", "", line) for line in text.splitlines())
    return {line for line in lines if len(line) > 7 and not line.startswith(("import", "from"))}


def _alike(features: Sequence[set[str]]) -> list[tuple[int, int, float]]:
    count = Counter(f for own in features for f in own)
    limit = max(_RARE_LEAST, int(_RARE_SHARE * len(features)))
    rare = [f for f, n in sorted(count.items(), key=lambda item: (item[1], item[0])) if 2 <= n <= limit][:_MOST_FEATURES]
    column = {f: i for i, f in enumerate(rare)}
    has = np.zeros((len(features), len(rare)), np.float32)
    alone = np.zeros(len(features), np.float32)  # rare features that nobody shares
    for i, own in enumerate(features):
        for f in own:
            if f in column:
                has[i, column[f]] = 1
            elif count[f] == 1:
                alone[i] += 1
    both: NDArray[np.float32] = has @ has.T
    size = has.sum(axis=1) + alone
    share = both / np.maximum(size[:, None] + size[None, :] - both, 1)
    first, second = np.nonzero(np.triu((both >= _LEAST_SHARED) & (share >= _ALIKE), 1))
    return [(int(i), int(j), float(share[i, j])) for i, j in zip(first, second, strict=True)]


def _same_text(lines: Sequence[set[str]]) -> list[tuple[int, int]]:
    """Pairs with the same own text, if that is long: each with the first of its kind, since there may be very many."""
    first: dict[frozenset[str], int] = {}
    out = []
    for i, own in enumerate(lines):
        if sum(map(len, own)) < _SAME_TEXT_CHARACTERS:
            continue
        key = frozenset(own)
        if key in first:
            out.append((first[key], i))
        first.setdefault(key, i)
    return out


def works_of(results: Sequence[Mapping[str, object]], texts: Mapping[str, str]) -> list[Work]:
    """Return what is compared of the results of a class; ``texts`` are the sources by submission."""
    out = []
    for r in results:
        statements = r["statements"]
        assert isinstance(statements, list)
        out.append(Work(name=str(r["submission"]), statements=tuple(statements), text=texts.get(str(r["submission"]), "")))
    return out

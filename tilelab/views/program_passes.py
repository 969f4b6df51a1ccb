"""The history of passes, as changes: each text is the one before it with some lines replaced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from tilelab.artifact import PassRecord
from tilelab.views.schema_program import ProgramHunk, ProgramPass

_FUNCTION = re.compile(r"^\s+def (\w+)\(", re.MULTILINE)
_MOST = 4_000_000  # letters of text that one view may hold; later passes keep their names and times


class Texts:
    """Lines, each held once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._at: dict[str, int] = {}
        self.size = 0

    def number(self, line: str) -> int:
        """Return the place of ``line`` in ``lines``."""
        if line not in self._at:
            self._at[line] = len(self.lines)
            self.lines.append(line)
            self.size += len(line)
        return self._at[line]


START = "start"  # the name under which the text before the first pass stands


def history(passes: Sequence[PassRecord], texts: Texts, start: str = "") -> list[ProgramPass]:
    """Return the passes with what they changed, behind the text ``start`` before them.

    A pass on another module (a macro, the host's half) is compared with its own past.
    """
    out: list[ProgramPass] = []
    seen: dict[frozenset[str], tuple[int, list[str]]] = {}
    if start:
        lines = start.splitlines()
        hunk = ProgramHunk(at=0, removed=0, added=[texts.number(line) for line in lines])
        out.append(ProgramPass(name=START, ms=0.0, changed=False, base=-1, hunks=[hunk]))
        seen[frozenset(_FUNCTION.findall(start))] = (0, lines)
    for p in passes:
        record = ProgramPass(name=p.name, ms=round(p.seconds * 1000, 3), changed=p.changed, base=-1, hunks=[])
        if p.after and texts.size < _MOST:
            names, lines = frozenset(_FUNCTION.findall(p.after)), p.after.splitlines()
            base, before = seen.get(names) or _nearest(names, seen)
            hunks = [ProgramHunk(at=a0, removed=a1 - a0, added=[texts.number(line) for line in lines[b0:b1]])
                     for a0, a1, b0, b1 in differences(before, lines)]  # fmt: skip
            record = {**record, "base": base, "hunks": hunks, "changed": bool(hunks)}
            if hunks:
                seen[names] = (len(out), lines)
        out.append(record)
    return out


def _nearest(names: frozenset[str], seen: dict[frozenset[str], tuple[int, list[str]]]) -> tuple[int, list[str]]:
    """The latest text that has some of these functions."""
    near = [v for k, v in seen.items() if k & names]
    return max(near, key=lambda v: v[0]) if near else (-1, [])


def differences(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Return where ``a`` and ``b`` differ, as ``(first of a, end of a, first of b, end of b)``."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    ops = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False).get_opcodes()
    return [(a0 + head, a1 + head, b0 + head, b1 + head) for tag, a0, a1, b0, b1 in ops if tag != "equal"]


def text_after(passes: Sequence[ProgramPass], texts: Sequence[str], which: int) -> list[str]:
    """Return the lines of the text after pass ``which``."""
    if which < 0:
        return []
    out, done = [], 0
    before = text_after(passes, texts, passes[which]["base"])
    for h in passes[which]["hunks"]:
        out += before[done : h["at"]] + [texts[k] for k in h["added"]]
        done = h["at"] + h["removed"]
    return out + before[done:]

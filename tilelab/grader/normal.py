"""Programs made comparable: their statements as text in which names and lines no longer matter, and how many differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from tilelab import ir, ir_text

_WORD = re.compile(r'"[^"]*"|(?<![.\w])[A-Za-z_]\w*')


def statements(program: ir.Program, *, renamed: bool = True) -> tuple[str, ...]:
    """Return one line for each statement, without indentation; ``renamed``: variables and buffers by kind and order, not by name."""
    lines = tuple(line.text.split("  # ")[0].strip() for line in ir_text.listing(program)[1:])
    lines = tuple(line for line in lines if line)
    return _renamed(lines, _kinds(program)) if renamed else lines


def changed(broken: ir.Program, fixed: ir.Program) -> int:
    """Return how many statements differ between two Programs: replaced, inserted or removed ones, whichever way of naming finds fewer."""
    return min(
        _distance(statements(broken, renamed=False), statements(fixed, renamed=False)),
        _distance(statements(broken), statements(fixed)),
    )


def _distance(a: Sequence[str], b: Sequence[str]) -> int:
    """The least number of lines to replace, insert or remove (Levenshtein), or an upper bound for long Programs."""
    if len(a) * len(b) > 250_000:
        matcher = SequenceMatcher(None, a, b, autojunk=False)
        return sum(max(i2 - i1, j2 - j1) for op, i1, i2, j1, j2 in matcher.get_opcodes() if op != "equal")
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


def _renamed(lines: Sequence[str], kinds: Mapping[str, str]) -> tuple[str, ...]:
    """Rename in the order of appearance within each kind, so that a new loop does not rename the buffers."""
    given: dict[str, str] = {}
    count: dict[str, int] = {}

    def rename(m: re.Match[str]) -> str:
        word = m[0]
        kind = kinds.get(word) or kinds.get(re.sub(r"_\d+$", "", word))
        if kind is None:
            return word
        if word not in given:
            count[kind] = count.get(kind, 0) + 1
            given[word] = f"{kind}{count[kind]}"
        return given[word]

    return tuple(_WORD.sub(rename, line) for line in lines)


def _kinds(program: ir.Program) -> dict[str, str]:
    """What each printed name is: a parameter by position, a buffer by scope and dtype, a variable by dtype."""
    out: dict[str, str] = {}
    for n in ir.walk(program):
        for name, kind in _NAMED.get(type(n), lambda _: [])(n):
            out.setdefault(name, kind)
    out |= {p.name: f"param{i}_" for i, p in enumerate(program.params)}
    return out


def _buffer(b: ir.Buffer) -> tuple[str, str]:
    return b.name, f"{re.sub(r'[^a-z]', '_', b.scope)}_{b.dtype}_"


#: node → the names that it binds, with their kinds
_NAMED: Mapping[type, Callable[[Any], list[tuple[str, str]]]] = {
    ir.Launch: lambda s: [*((v.name, "block") for v in s.block_vars), *((v.name, "thread") for v in s.thread_vars)],
    ir.For: lambda s: [(s.var.name, "loop")],
    ir.Bind: lambda s: [(s.var.name, f"let_{s.var.dtype}_")],
    ir.Block: lambda s: [_buffer(b) for b in s.allocs],
    ir.Alloc: lambda s: [_buffer(s.buffer)],
    ir.Declare: lambda s: [_buffer(s.buffer)],
}

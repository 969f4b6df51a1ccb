"""Which statement of a lowered Program each line of the generated source says: two orders of the same things, aligned.

The code generator writes statements in their order, so the best alignment that keeps it is found by dynamic programming
(Needleman and Wunsch, 1970); a statement fits a line of its kind the better, the more names and numbers they share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tilelab import ir, ir_text

Loc = ir.SourceLoc | None

_WORD = re.compile(r"[A-Za-z]+|\d+")
#: words of operations that the sources call otherwise
_SAME = {"nreg": "reg", "syncthreads": "sync", "storage": "sync", "barrier": "mbarrier", "vec": "ramp"}
_QUALIFIED = r"(const |extern |volatile |__shared__ |__align__\(\d+\) |alignas\(\d+\) )*"
#: kind of line → how it begins; the first that fits holds
_LINES = (
    ("launch", re.compile(r".*\b(__global__|kernel void|CoreKernel)\b.*\{$|def \w+\(.*\):$")),
    ("for", re.compile(r"for\b")),
    ("while", re.compile(r"while\b")),
    ("if", re.compile(r"(\} )?(else )?if\b")),
    ("skip", re.compile(r"[{}();]*$|#|//|\} else \{$|else\b")),
    ("decl", re.compile(_QUALIFIED + r"[\w:]+(<[^=]*>)?[ *&]+(__restrict__ )?\w+(\[[^=]*\])?;$")),
    ("set", re.compile(r"[^=(]*(\([^=]*\))?[^=(]*=[^=]|\*\(.*=|\(\(.*=")),
    ("call", re.compile(r".")),
)
#: statement → kinds of lines that may say it
_FITS: dict[type, tuple[str, ...]] = {
    ir.Launch: ("launch",), ir.For: ("for",), ir.While: ("while", "for"), ir.If: ("if",), ir.Alloc: ("decl",), ir.Declare: ("decl", "set"),
    ir.Bind: ("set", "decl"), ir.Store: ("set", "call"), ir.Eval: ("call", "set", "if"), ir.Assert: ("call", "if"),
}  # fmt: skip


def places(program: ir.Program, source: str) -> list[Loc]:
    """Return the user's line of each line of ``source``, which was generated from ``program``; None where there is none."""
    lines = source.splitlines()
    stripped = [line.strip() for line in lines]
    kinds = [next(name for name, pattern in _LINES if pattern.match(line)) if line else "skip" for line in stripped]
    starts = [k for k, kind in enumerate(kinds) if kind == "launch"]
    code = [k for k in range(starts[0] if starts else 0, len(lines)) if kinds[k] != "skip"]
    printed = [
        line for line in ir_text.listing(program) if line.stmt is not None and type(line.stmt) in _FITS and line.text.strip() != "else:"
    ]
    pairs = _align([(type(p.stmt), _bag(p.text)) for p in printed], [(kinds[k], _bag(stripped[k])) for k in code])
    found: list[Loc] = [None] * len(lines)
    for i, j in pairs:
        found[code[j]] = printed[i].loc
    return _filled(found, stripped, kinds, starts[0] if starts else 0)


def _bag(text: str) -> frozenset[str]:
    return frozenset(_SAME.get(w, w) for w in map(str.lower, _WORD.findall(text.replace("threadIdx.x", "tx").replace("blockIdx.", "b"))))


def _align(stmts: Sequence[tuple[type, frozenset[str]]], lines: Sequence[tuple[str, frozenset[str]]]) -> list[tuple[int, int]]:
    if not stmts or not lines:
        return []
    words = {w: k for k, w in enumerate(sorted(set().union(*(b for _, b in stmts), *(b for _, b in lines))))}
    a, b = _matrix([bag for _, bag in stmts], words), _matrix([bag for _, bag in lines], words)
    shared = a @ b.T
    either = a.sum(1)[:, None] + b.sum(1)[None, :] - shared
    kinds = sorted({kind for kind, _ in lines})
    fits = np.array([[k in _FITS[t] for k in kinds] for t, _ in stmts])[:, [kinds.index(k) for k, _ in lines]]
    first = np.array([[_FITS[t][0] == k for k in kinds] for t, _ in stmts])[:, [kinds.index(k) for k, _ in lines]]
    score = np.where(fits, 0.1 + 0.1 * first + shared / np.maximum(either, 1), 0.0)
    best = np.zeros((len(stmts) + 1, len(lines) + 1))
    for i in range(len(stmts)):
        row = np.maximum(best[i, 1:], best[i, :-1] + score[i])
        best[i + 1, 1:] = np.maximum.accumulate(row)
    return _walk(best, score)


def _matrix(bags: Sequence[frozenset[str]], words: dict[str, int]) -> NDArray[np.float32]:
    out = np.zeros((len(bags), len(words)), dtype=np.float32)
    for k, bag in enumerate(bags):
        out[k, [words[w] for w in bag]] = 1
    return out


def _walk(best: NDArray[np.float64], score: NDArray[np.float64]) -> list[tuple[int, int]]:
    i, j = best.shape[0] - 1, best.shape[1] - 1
    pairs = []
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            if score[i, j] > 0:
                pairs.append((i, j))
    return pairs[::-1]


def _filled(found: list[Loc], lines: Sequence[str], kinds: Sequence[str], start: int) -> list[Loc]:
    """Closing braces follow what they close, declarations and pragmas what comes next, the rest what came before."""
    out = list(found)
    after: Loc = None
    for k in range(len(lines) - 1, start - 1, -1):
        if found[k] is not None:
            after = found[k]
        elif kinds[k] in ("decl", "launch") or lines[k].startswith(("#", "{")):
            out[k] = after
        if kinds[k] == "launch":
            after = None
    before: Loc = None
    opened: list[Loc] = []
    for k in range(start, len(lines)):
        closes = lines[k].startswith("}") and bool(opened)
        own = opened.pop() if closes else None
        if out[k] is None and lines[k]:
            out[k] = own if closes else before
        if lines[k].endswith("{"):
            opened.append(out[k])
        before = out[k] if out[k] is not None else before
    return out


def share(locs: Iterable[Loc]) -> float:
    """Return the share of ``locs`` that are known."""
    known = [loc is not None for loc in locs]
    return sum(known) / max(1, len(known))

"""Lanes: how values are laid out, affine index forms, compiled expressions, and the frame that they run in.

A value is a Python scalar (uniform over all lanes) or a numpy array whose axes are the lane axes of its context, in
this order: blocks (z, y, x), threads (z, y, x; only where code depends on the thread), then the parallel loops from
the outermost inwards. An axis on which a value does not depend has size 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tilelab.finding import Finding
from tilelab.ir import SourceLoc

Value: TypeAlias = Any
Fn: TypeAlias = "Callable[[Frame], Value]"
Scalar: TypeAlias = "int | Callable[[Frame], int]"


class Frame:
    """What one role of one chunk of blocks sees while it runs.

    ``size`` and ``start`` are by lane axis: how many coordinates the axis has now, and the first (blocks only).
    """

    __slots__ = (
        "cluster", "gone", "live", "mask", "mem", "nest", "outer",
        "rank", "record", "role", "run", "size", "skip", "start", "sync", "v",
    )  # fmt: skip

    def __init__(self, run: Any, slots: int, buffers: int, rank: int) -> None:
        self.run = run
        self.v: list[Any] = [None] * slots
        self.mem: list[Any] = [None] * buffers
        self.size = [1] * rank
        self.start = [0] * rank
        self.mask: Any = None
        self.live: Any = None  # lanes that have not left the enclosing loop by a break
        self.skip: Any = None  # lanes that have not left this turn of it by a continue
        self.gone: Any = None  # lanes that have not returned from the kernel
        self.outer: Any = None  # the mask over threads outside the parallel space or tile operation that runs
        self.nest: Any = None  # the race check of the parallel space that is running
        self.rank = 0  # of the block in its cluster
        self.cluster: Any = None  # rank → frame of each block of the cluster, and what they wait for together
        self.sync: dict[Any, Any] = {}  # barriers and copies in flight of the block
        self.record: Any = None  # the block, where its steps are recorded
        self.role: Any = None  # the mask of the threads whose coroutine this is

    def fork(self) -> Frame:
        """A frame for another role of the same blocks: same memory, its own variables and mask."""
        new = Frame(self.run, 0, 0, 0)
        new.v, new.mem, new.size, new.start = list(self.v), self.mem, list(self.size), list(self.start)
        new.mask, new.live, new.nest, new.sync = self.mask, self.live, self.nest, self.sync
        new.skip, new.gone, new.outer = self.skip, self.gone, self.outer
        new.rank, new.cluster = self.rank, self.cluster
        new.record, new.role = self.record, self.role
        return new


class Aff(NamedTuple):
    """An integer index as ``base + Σ coefficient × coordinate of the axis``."""

    base: Scalar
    terms: tuple[tuple[int, Scalar], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ex:
    """A compiled expression.

    Attributes:
        dtype: Of the value.
        fn: Evaluates it.
        axes: The lane axes on which it may depend; empty means that ``fn`` gives a scalar.
        aff: Its affine form, for integers that have one.
        const: Its value where known when compiling.
        loads: Whether it reads memory, so that lanes which do not evaluate it must be masked off.
        source: The access whose memory the value may be a view of.
        key: Two expressions of equal key have equal values at the same point of the program.
        fresh: Whether an array that ``fn`` gives is new, so that whoever asked may write into it.
    """

    dtype: str
    fn: Fn
    axes: frozenset[int] = frozenset()
    aff: Aff | None = None
    const: Any = None
    loads: bool = False
    source: Any = None
    key: Any = None
    fresh: bool = False


class Unsupported(Exception):
    """Something that the simulator does not do yet, by name."""

    def __init__(self, what: str, loc: SourceLoc | None = None, fix: str = "") -> None:
        super().__init__(what)
        self.what, self.loc, self.fix = what, loc, fix


class Stop(Exception):
    """The run cannot go on; ``finding`` says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


# --------------------------------------------------------------------------------------------- scalars and affine forms
def value_of(s: Scalar, fr: Frame) -> int:
    """Evaluate a scalar of an affine form."""
    return s if type(s) is int else s(fr)  # type: ignore[operator]


def s_add(a: Scalar, b: Scalar, sign: int = 1) -> Scalar:
    """``a + sign × b``."""
    if type(a) is int and type(b) is int:
        return a + sign * b
    if type(b) is int and b == 0:
        return a
    if type(a) is int and a == 0 and sign == 1:
        return b
    if sign == 1:
        return lambda fr: value_of(a, fr) + value_of(b, fr)
    return lambda fr: value_of(a, fr) - value_of(b, fr)


def s_mul(a: Scalar, b: Scalar) -> Scalar:
    """``a × b``."""
    if type(a) is int and type(b) is int:
        return a * b
    for x, y in ((a, b), (b, a)):
        if type(x) is int and x in (0, 1):
            return y if x else 0
    return lambda fr: value_of(a, fr) * value_of(b, fr)


def aff_add(x: Aff, y: Aff, sign: int = 1) -> Aff:
    """``x + sign × y``."""
    terms = dict(x.terms)
    for axis, c in y.terms:
        terms[axis] = s_add(terms.get(axis, 0), c, sign)
    return Aff(s_add(x.base, y.base, sign), tuple((a, c) for a, c in terms.items() if not (type(c) is int and c == 0)))


def aff_scale(x: Aff, k: Scalar) -> Aff:
    """``x × k``."""
    if type(k) is int and k == 0:
        return Aff(0)
    return Aff(s_mul(x.base, k), tuple((a, s_mul(c, k)) for a, c in x.terms))


def aff_divide(x: Aff, k: int) -> Aff | None:
    """``x // k`` where that is affine: every part is a known multiple of ``k``."""
    parts = (x.base, *(c for _, c in x.terms))
    if k > 0 and all(type(p) is int and p % k == 0 for p in parts):
        return Aff(x.base // k, tuple((a, c // k) for a, c in x.terms))  # type: ignore[operator]
    return None


def aff_range(x: Aff, fr: Frame) -> tuple[int, int]:
    """The least and the greatest value over the lanes of the frame."""
    lo = hi = value_of(x.base, fr)
    for axis, c in x.terms:
        c = value_of(c, fr)
        first = c * fr.start[axis]
        last = first + c * (fr.size[axis] - 1)
        if first <= last:
            lo, hi = lo + first, hi + last
        else:
            lo, hi = lo + last, hi + first
    return lo, hi


@lru_cache(maxsize=4096)
def _coordinates(start: int, size: int, step: int, axis: int, rank: int) -> Value:
    shape = [1] * rank
    shape[axis] = size
    out = (np.arange(start * step, (start + size) * step, step, dtype=np.int64) if step else np.zeros(size, np.int64)).reshape(shape)
    out.flags.writeable = False
    return out


def aff_values(x: Aff, fr: Frame, rank: int) -> Value:
    """The values of an affine form as int64 over the lanes (a Python int if it has no axis)."""
    base = value_of(x.base, fr)
    out: Value = None
    for axis, c in x.terms:
        part = _coordinates(fr.start[axis], fr.size[axis], value_of(c, fr), axis, rank)
        out = part if out is None else out + part
    if out is None:
        return base
    return out + base if base else out


def expand(value: Value, rank: int, want: int) -> Value:
    """Give a value of a context of ``rank`` the axes of an inner context of rank ``want``."""
    if rank == want or not isinstance(value, np.ndarray) or value.ndim == 0:
        return value
    return value.reshape(value.shape + (1,) * (want - rank))


def scalar_of(value: Value) -> int | None:
    """The one integer that ``value`` holds, or None if it holds more than one."""
    if isinstance(value, np.ndarray):
        return int(value.reshape(-1)[0]) if value.size == 1 else None
    return int(value)


def every(cond: Value) -> bool:
    """Whether a condition holds in all lanes."""
    return bool(cond.all()) if isinstance(cond, np.ndarray) else bool(cond)


def some(cond: Value) -> bool:
    """Whether a condition holds in any lane."""
    return bool(cond.any()) if isinstance(cond, np.ndarray) else bool(cond)


def both(a: Value, b: Value) -> Value:
    """Conjunction of two masks, either of which may be None (all lanes)."""
    if a is None:
        return b
    if b is None:
        return a
    return a & b

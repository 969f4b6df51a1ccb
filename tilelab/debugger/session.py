"""A session: a place in a recorded Trace, breakpoints and watches. Every move returns the step it arrives at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import Any

import numpy as np

from tilelab.debugger.condition import Condition
from tilelab.errors import InputError
from tilelab.finding import Finding
from tilelab.ir import SourceLoc
from tilelab.trace import Event, PrintRecord, Trace

NAN = "nan"
FINDING = "finding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """Where to stop: a line, a condition that becomes true, the first NaN or Inf, or a finding; or several of these at once."""

    number: int
    line: int | None = None
    file: str | None = None
    condition: Condition | None = None
    event: str | None = None  # NAN or FINDING

    def __str__(self) -> str:
        """Say it as it was typed."""
        parts = [f"{self.file or 'line'}:{self.line}"] if self.line else []
        parts += [f"if {self.condition.text}"] if self.condition else []
        parts += [{NAN: "first NaN or Inf", FINDING: "finding"}[self.event]] if self.event else []
        return f"#{self.number} " + " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One place in time: ``event`` has just run. ``values`` are the buffers after it, ``changed`` those that it wrote."""

    index: int
    event: Event
    values: Mapping[str, Any]
    changed: tuple[str, ...]
    hit: Breakpoint | None = None

    @property
    def loc(self) -> SourceLoc | None:
        """The line of the statement."""
        return self.event.loc

    def __str__(self) -> str:
        """One line: where, which iteration, what was written."""
        where = f"{PurePath(self.loc.file).name}:{self.loc.line}" if self.loc else "?"
        loops = "".join(f" {k}={v}" for k, v in self.event.loops.items())
        wrote = f"  → {', '.join(self.changed)}" if self.changed else ""
        return f"[{self.index}] {where}{loops}  {self.event.text}{wrote}"


class Session:
    """Time travel over one recorded block.

    Attributes:
        trace: The whole outcome of the run (outputs, findings, prints).
        block: The block that is shown, as (x, y, z).
        watches: Names or expressions shown at each step.
        breakpoints: In the order in which they were set.
    """

    def __init__(self, trace: Trace, *, block: tuple[int, int, int] = (0, 0, 0)) -> None:
        self.trace = trace
        self.block = block
        self.watches: list[Condition] = []
        self.breakpoints: list[Breakpoint] = []
        self._events = tuple(e for e in trace.events if e.block == block)
        self._at = -1  # before the first event
        self._numbers = count(1)
        self._writes: dict[str, list[int]] = {}  # buffer → steps that wrote it
        for index, event in enumerate(self._events):
            for name in event.after:
                self._writes.setdefault(name, []).append(index)
        if not self._events:
            raise _nothing_recorded(trace, block)
        self._at = 0

    # ------------------------------------------------------------------------------------------------ where
    def __len__(self) -> int:
        """How many steps are recorded."""
        return len(self._events)

    @property
    def here(self) -> Step:
        """The present step."""
        return self._step(self._at)

    @property
    def prints(self) -> tuple[PrintRecord, ...]:
        """The T.print records of this block."""
        return tuple(p for p in self.trace.prints if p.block == self.block)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of this block, or of no block in particular."""
        return tuple(f for f in self.trace.findings if f.block in (None, self.block))

    @property
    def bound(self) -> str:
        """What the recording leaves out because of its bound on memory; empty if nothing."""
        return self.trace.truncated

    def values(self, index: int | None = None) -> dict[str, Any]:
        """Return the buffers (name → array) after step ``index``, by default the present one."""
        at = self._at if index is None else index
        last = {name: bisect_right(steps, at) for name, steps in self._writes.items()}
        return {name: self._events[self._writes[name][n - 1]].after[name] for name, n in last.items() if n}

    def value(self, expression: str) -> Any:
        """Return a buffer, or an expression over buffers and loop variables, at the present step.

        Raises:
            InputError: No such name here, or not an expression.
        """
        return Condition(expression).value(self._names(self._at))

    def history(self, expression: str) -> list[tuple[int, Any]]:
        """Return (step, value) wherever the value of ``expression`` changes."""
        condition = Condition(expression)
        out: list[tuple[int, Any]] = []
        for index in range(len(self._events)):
            names = self._names(index)
            if not condition.names() <= names.keys():
                continue
            value = condition.value(names)
            if not out or not np.array_equal(out[-1][1], value, equal_nan=np.issubdtype(np.asarray(value).dtype, np.inexact)):
                out.append((index, np.array(value)))
        return out

    # ------------------------------------------------------------------------------------------------ moves
    def goto(self, index: int) -> Step:
        """Go to step ``index`` (negative: from the end).

        Raises:
            InputError: There is no such step.
        """
        n = len(self._events)
        if not -n <= index < n:
            raise InputError(f"no step {index}", fix=f"steps are 0 to {n - 1}")
        self._at = index % n
        return self.here

    def step(self, steps: int = 1) -> Step:
        """Go ``steps`` steps forward; stops at the last."""
        return self.goto(min(max(self._at + steps, 0), len(self._events) - 1))

    def back(self, steps: int = 1) -> Step:
        """Go ``steps`` steps back; stops at the first."""
        return self.step(-steps)

    def over(self) -> Step:
        """Go to the next step that is not inside a macro called from here, nor deeper in loops than here."""
        depth = _depth(self.here.event)
        return self._seek(range(self._at + 1, len(self._events)), lambda e: all(a <= b for a, b in zip(_depth(e), depth, strict=True)))

    def out(self) -> Step:
        """Go to the next step outside the innermost loop or macro of the present one."""
        macros, loops = _depth(self.here.event)
        return self._seek(
            range(self._at + 1, len(self._events)), lambda e: _depth(e)[0] < macros if macros else _depth(e)[1] < max(loops, 1)
        )

    def cont(self) -> Step:
        """Run forward to the next breakpoint, or to the end."""
        return self._run(range(self._at + 1, len(self._events)), len(self._events) - 1)

    def reverse(self) -> Step:
        """Run backward to the previous breakpoint, or to the beginning."""
        return self._run(range(self._at - 1, -1, -1), 0)

    def __iter__(self) -> Iterator[Step]:
        """All steps from the first, whatever the present place."""
        for index in range(len(self._events)):
            yield self._step(index)

    # ------------------------------------------------------------------------------------------ breakpoints
    def break_at(self, where: int | str) -> Breakpoint:
        """Stop at a line (``12`` or ``"kernel.py:12"``), a condition, ``"nan"`` (first NaN or Inf) or ``"finding"``.

        Raises:
            InputError: No recorded statement is on that line, or the condition is not an expression.
        """
        number = next(self._numbers)
        if isinstance(where, str) and where in (NAN, FINDING):
            point = Breakpoint(number=number, event=where)
        elif isinstance(where, int) or where.rpartition(":")[2].isdigit():
            file, _, line = str(where).rpartition(":")
            point = Breakpoint(number=number, file=file or None, line=int(line))
            lines = sorted({e.loc.line for e in self._events if e.loc and _same_file(file, e.loc.file)})
            if point.line not in lines:
                raise InputError(f"no statement of this block ran on {where}", fix="lines that ran: " + _ranges(lines))
        else:
            point = Breakpoint(number=number, condition=Condition(where))
            known = {*self._writes, *(name for e in self._events for name in e.loops)}
            for name in sorted(point.condition.names() - known if point.condition else ()):
                raise InputError(f"no buffer or variable {name!r} in this block", fix="there are: " + ", ".join(sorted(known)))
        self.breakpoints.append(point)
        return point

    def clear(self, number: int | None = None) -> None:
        """Remove breakpoint ``number``, or all."""
        self.breakpoints = [b for b in self.breakpoints if number is not None and b.number != number]

    def watch(self, expression: str) -> Any:
        """Show ``expression`` at each step from now on; return its value here, or None where it has none yet."""
        condition = Condition(expression)
        self.watches.append(condition)
        return self.watched().get(expression)

    def watched(self) -> dict[str, Any]:
        """Return the values of the watches at the present step, None where a name has no value yet."""
        names = self._names(self._at)
        return {c.text: c.value(names) if c.names() <= names.keys() else None for c in self.watches}

    # ------------------------------------------------------------------------------------------------ inner
    def _step(self, index: int, hit: Breakpoint | None = None) -> Step:
        event = self._events[index]
        return Step(index=index, event=event, values=self.values(index), changed=tuple(event.after), hit=hit)

    def _names(self, index: int) -> dict[str, Any]:
        return {**self.values(index), **self._events[index].loops}

    def _seek(self, order: range, wanted: Callable[[Event], bool]) -> Step:
        return self.goto(next((i for i in order if wanted(self._events[i])), len(self._events) - 1))

    def _run(self, order: range, end: int) -> Step:
        for index in order:
            names = self._names(index)
            for point in self.breakpoints:
                if self._hits(point, index, names):
                    self._at = index
                    return self._step(index, hit=point)
        return self.goto(end)

    def _hits(self, point: Breakpoint, index: int, names: Mapping[str, Any]) -> bool:
        event = self._events[index]
        if point.line is not None:
            return event.loc is not None and event.loc.line == point.line and _same_file(point.file or "", event.loc.file)
        if point.event == NAN:
            return any(_bad(new) and not _bad(self._before(name, index)) for name, new in event.after.items())
        if point.event == FINDING:
            return any(f.line is not None and event.loc is not None and f.line == event.loc.line for f in self.findings)
        assert point.condition is not None
        if not point.condition.names() <= names.keys() or not point.condition(names):
            return False
        earlier = self._names(index - 1) if index else {}  # stops where it becomes true, not at every step where it still is
        return not (point.condition.names() <= earlier.keys() and point.condition(earlier))

    def _before(self, name: str, index: int) -> Any:
        earlier = bisect_left(self._writes.get(name, []), index)
        return self._events[self._writes[name][earlier - 1]].after[name] if earlier else None


def _depth(event: Event) -> tuple[int, int]:
    """Return (macro calls around, loops around)."""
    macros, loc = 0, event.loc
    while loc is not None and loc.caller is not None:
        macros, loc = macros + 1, loc.caller
    return macros, len(event.loops)


def _bad(value: Any) -> bool:
    array = np.asarray(value) if value is not None else np.zeros(0)
    return array.dtype.kind in "fc" and not bool(np.isfinite(array).all())


def _same_file(asked: str, file: str) -> bool:
    return not asked or PurePath(asked).name == PurePath(file).name


def _ranges(lines: list[int]) -> str:
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs) or "none"


def _nothing_recorded(trace: Trace, block: tuple[int, int, int]) -> InputError:
    recorded = sorted({e.block for e in trace.events})
    if recorded:
        return InputError(f"block {block} was not recorded", fix=f"recorded: {', '.join(map(str, recorded))}")
    why = "; ".join(str(f) for f in trace.findings if f.severity == "error")
    return InputError(f"no step of block {block} was recorded" + (f": {why}" if why else ""), fix="the grid may have no such block")

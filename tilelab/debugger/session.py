"""A session: a place in a recorded Trace, breakpoints and watches. Every move returns the step it arrives at."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
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
BOUNDS = "oob"
_BOUNDS_CODES = ("TL101", "TL102")
_CODE = re.compile(r"TL\d{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """Where to stop: a line, a condition that becomes true, the first NaN or Inf, or a finding.

    ``event`` is ``"nan"``, ``"finding"`` (any), ``"oob"`` (an access out of bounds) or a code such as ``"TL103"``.
    """

    number: int
    line: int | None = None
    file: str | None = None
    condition: Condition | None = None
    event: str | None = None

    def __str__(self) -> str:
        """Say it as it was typed."""
        parts = [f"{self.file or 'line'}:{self.line}"] if self.line else []
        parts += [f"if {self.condition.text}"] if self.condition else []
        parts += [{NAN: "first NaN or Inf", BOUNDS: "out of bounds"}.get(self.event, self.event)] if self.event else []
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


class Values(Mapping[str, Any]):
    """The buffers after a step, each made when it is asked for."""

    def __init__(self, events: tuple[Event, ...], writes: Mapping[str, list[int]], at: int) -> None:
        self._events, self._writes, self._at = events, writes, at

    def __getitem__(self, name: str) -> Any:
        """The value of ``name``."""
        steps = self._writes[name]
        last = bisect_right(steps, self._at)
        if not last:
            raise KeyError(name)
        return self._events[steps[last - 1]].after[name]

    def __contains__(self, name: object) -> bool:
        """Whether ``name`` has been written yet."""
        return name in self._writes and self._writes[str(name)][0] <= self._at

    def __iter__(self) -> Iterator[str]:
        """The names that have been written."""
        return (name for name, steps in self._writes.items() if steps[0] <= self._at)

    def __len__(self) -> int:
        """How many they are."""
        return sum(1 for _ in self)


class _Names(Mapping[str, Any]):
    """Buffers and loop variables of a step."""

    def __init__(self, values: Values, loops: Mapping[str, int]) -> None:
        self._values, self._loops = values, loops

    def __getitem__(self, name: str) -> Any:
        return self._loops[name] if name in self._loops else self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loops or name in self._values

    def __iter__(self) -> Iterator[str]:
        yield from self._loops
        yield from (n for n in self._values if n not in self._loops)

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
        self._listeners: list[Callable[[Session], None]] = []
        self._hit: Breakpoint | None = None
        self._happened: dict[str, set[int | None]] = {}  # event → the steps where it happens
        self._at = -1  # before the first event
        self._numbers = count(1)
        self._writes: dict[str, list[int]] = {}  # name → steps that wrote it
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
        return self._step(self._at, self._hit)

    @property
    def events(self) -> tuple[Event, ...]:
        """The recorded steps of this block."""
        return self._events

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

    def values(self, index: int | None = None) -> Values:
        """Return the buffers (name → array) after step ``index``, by default the present one.

        Elements that nobody has written yet are masked (numpy masked arrays).
        """
        return Values(self._events, self._writes, self._at if index is None else index)

    def step_of(self, finding: Finding) -> int | None:
        """Return the step that made ``finding``, or the first on its line; None where it belongs to none."""
        made = finding.evidence.get("step")
        for index, event in enumerate(self._events):
            if event.index == made or (made is None and finding.line is not None and _on_line(event, "", finding.line)):
                return index
        return len(self._events) - 1 if finding.code == "TL206" else None

    @property
    def first_nan(self) -> tuple[int, Mapping[str, Any]] | None:
        """The step that made the first NaN or Inf that was not meant, and what is known of it; a NaN before an Inf."""
        found = [(index, e.evidence["nan"]) for index, e in enumerate(self._events) if "nan" in e.evidence]
        return next((f for f in found if f[1]["value"] == "NaN"), found[0] if found else None)

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
            if not _known(condition, names):
                continue
            value = condition.value(names)
            if not out or not _same(out[-1][1], value):
                out.append((index, np.array(value) if not np.ma.isMaskedArray(value) else value.copy()))
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
        return self._arrive(index % n)

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
        """Stop at a line (``12`` or ``"kernel.py:12"``), a condition (``"acc[0, 0] > 1e4"``), or something that happens.

        What can happen: ``"nan"`` (a NaN, or an Inf that was not meant, new in a buffer), ``"finding"`` (any), ``"oob"`` (out of
        bounds), or the code of a finding such as ``"TL103"``.

        Raises:
            InputError: No recorded statement is on that line, or the condition is not an expression.
        """
        number = next(self._numbers)
        if isinstance(where, str) and (where in (NAN, FINDING, BOUNDS) or _CODE.fullmatch(where)):
            point = Breakpoint(number=number, event=where)
        elif isinstance(where, int) or where.rpartition(":")[2].isdigit():
            file, _, line = str(where).rpartition(":")
            point = Breakpoint(number=number, file=file or None, line=int(line))
            lines = sorted({n for e in self._events for n in _lines_of(e, file)})
            if point.line not in lines:
                raise InputError(f"no statement of this block ran on {where}", fix="lines that ran: " + _ranges(lines))
        else:
            point = Breakpoint(number=number, condition=Condition(where))
            known = {*self._writes, *(name for e in self._events for name in e.loops)}
            for name in sorted(point.condition.names() - known if point.condition else ()):
                raise InputError(f"no buffer or variable {name!r} in this block", fix="there are: " + ", ".join(sorted(known)))
        self.breakpoints.append(point)
        self._tell()
        return point

    def clear(self, number: int | None = None) -> None:
        """Remove breakpoint ``number``, or all."""
        self.breakpoints = [b for b in self.breakpoints if number is not None and b.number != number]
        self._tell()

    def watch(self, expression: str) -> Any:
        """Show ``expression`` at each step from now on; return its value here, or None where it has none yet."""
        if expression not in [c.text for c in self.watches]:
            self.watches.append(Condition(expression))
            self._tell()
        return self.watched().get(expression)

    def unwatch(self, expression: str) -> None:
        """Show ``expression`` no longer."""
        self.watches = [c for c in self.watches if c.text != expression]
        self._tell()

    def watched(self) -> dict[str, Any]:
        """Return the values of the watches at the present step, None where a name has no value yet."""
        names = self._names(self._at)
        return {c.text: c.value(names) if _known(c, names) else None for c in self.watches}

    # ----------------------------------------------------------------------------------------------- showing
    def listen(self, listener: Callable[[Session], None]) -> Callable[[], None]:
        """Call ``listener`` after every move and every change of breakpoints and watches; return how to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def view(self, **options: Any) -> Any:
        """Return the trace view of the present step (:func:`tilelab.views.trace` says the options)."""
        return import_module("tilelab.views").trace(self, **options)

    def widget(self) -> Any:
        """Return the live widget: its controls and this session move together."""
        return import_module("tilelab.widgets.session").SessionWidget.of_session(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the trace view; a live widget as well where a front end listens."""
        html = import_module("tilelab.views.html")
        view = self.view()
        bundle: dict[str, Any] = {"text/plain": view.to_text(), "text/html": html.embed(view)}
        if html.front_end() and html.bundle("trace"):
            bundle.update(self.widget().bundle())
        return bundle

    # ------------------------------------------------------------------------------------------------ inner
    def _arrive(self, index: int, hit: Breakpoint | None = None) -> Step:
        self._at, self._hit = index, hit
        self._tell()
        return self.here

    def _tell(self) -> None:
        for listener in tuple(self._listeners):
            listener(self)

    def _step(self, index: int, hit: Breakpoint | None = None) -> Step:
        event = self._events[index]
        return Step(index=index, event=event, values=self.values(index), changed=tuple(event.after), hit=hit)

    def _names(self, index: int) -> _Names:
        return _Names(self.values(index), self._events[index].loops)

    def _seek(self, order: range, wanted: Callable[[Event], bool]) -> Step:
        return self.goto(next((i for i in order if wanted(self._events[i])), len(self._events) - 1))

    def _run(self, order: range, end: int) -> Step:
        for index in order:
            names = self._names(index)
            for point in self.breakpoints:
                if self._hits(point, index, names):
                    return self._arrive(index, point)
        return self.goto(end)

    def _hits(self, point: Breakpoint, index: int, names: Mapping[str, Any]) -> bool:
        event = self._events[index]
        if point.line is not None:
            own = event.loc is not None and _covers(event.loc, point.file or "", point.line)
            if own or not _on_line(event, point.file or "", point.line):
                return own
            return not index or not _on_line(self._events[index - 1], point.file or "", point.line)  # a call: where it is entered
        if point.event == NAN:
            return "nan" in event.evidence or any(
                _has_nan(new) and not _has_nan(self._before(name, index)) for name, new in event.after.items()
            )
        if point.event is not None:
            return index in self._happens(point.event)
        assert point.condition is not None
        if not _known(point.condition, names) or not point.condition(names):
            return False
        earlier = self._names(index - 1) if index else {}  # stops where it becomes true, not at every step where it still is
        return not (_known(point.condition, earlier) and point.condition(earlier))

    def _happens(self, event: str) -> set[int | None]:
        if event not in self._happened:
            codes = {FINDING: None, BOUNDS: _BOUNDS_CODES}.get(event, (event,))
            self._happened[event] = {self.step_of(f) for f in self.findings if codes is None or f.code in codes}
        return self._happened[event]

    def _before(self, name: str, index: int) -> Any:
        earlier = bisect_left(self._writes.get(name, []), index)
        return self._events[self._writes[name][earlier - 1]].after[name] if earlier else None


def _depth(event: Event) -> tuple[int, int]:
    """Return (macro calls around, loops around)."""
    macros, loc = 0, event.loc
    while loc is not None and loc.caller is not None:
        macros, loc = macros + 1, loc.caller
    return macros, len(event.loops)


def _has_nan(value: Any) -> bool:
    """Whether a written element is NaN; of infinities, which may be meant, the recording tells which are not."""
    array = np.asanyarray(value) if value is not None else np.zeros(0)
    if array.dtype.kind not in "fc":
        return False
    return bool((np.isnan(np.ma.getdata(array)) & ~np.ma.getmaskarray(array)).any())


def _same(a: Any, b: Any) -> bool:
    if not np.array_equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b)):
        return False
    a, b = np.ma.filled(a, 0), np.ma.filled(b, 0)
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc" and np.asarray(b).dtype.kind in "fc")


def _known(condition: Condition, names: Mapping[str, Any]) -> bool:
    return all(name in names for name in condition.names())


def _covers(loc: SourceLoc, file: str, line: int) -> bool:
    return loc.line <= line <= max(loc.line, loc.end_line) and _same_file(file, loc.file)


def _chain(event: Event) -> Iterator[SourceLoc]:
    loc = event.loc
    while loc is not None:
        yield loc
        loc = loc.caller


def _on_line(event: Event, file: str, line: int) -> bool:
    """Whether the statement, or a macro call that it is in, is on the line."""
    return any(_covers(loc, file, line) for loc in _chain(event))


def _lines_of(event: Event, file: str) -> set[int]:
    return {n for loc in _chain(event) if _same_file(file, loc.file) for n in range(loc.line, max(loc.line, loc.end_line) + 1)}


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

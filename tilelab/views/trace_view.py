"""The trace view: the steps of a block, the values that they wrote, what was printed, where the first NaN came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from tilelab.errors import InputError
from tilelab.trace import PrintRecord, Trace
from tilelab.views.schema_trace import TraceBreak, TraceFile, TraceFinding, TraceNan, TracePrint, TraceSteps, TraceWatch
from tilelab.views.trace_text import short_value
from tilelab.views.trace_values import Packed, pack
from tilelab.views.view import View
from tilelab.views.words import word

#: Bytes of values that a view holds unless asked for more.
LIMIT_BYTES = 4 << 20
PRINTS = 5_000  # records of T.print that a view holds
_PRINT_BYTES = 1 << 20
_COLUMNS = ("file", "line", "end", "caller", "depth", "text", "role", "threads", "names")
_AROUND = 40  # lines of a long file kept around those that ran


def trace(
    source: Any,
    *tensors: Any,
    buffer: str | None = None,
    block: tuple[int, ...] | None = None,
    at: int | None = None,
    watches: Sequence[str] = (),
    breaks: Sequence[int | str] = (),
    level: str = "tile",
    params: Any = None,
    consts: Mapping[str, Any] | None = None,
    limit_bytes: int = LIMIT_BYTES,
    origins: Mapping[str, Sequence[int]] | None = None,
    lang: str = "en",
) -> View:
    """Show a recorded block: source, timeline, values, findings, prints.

    Args:
        source: A debugger session (its step, breakpoints and watches are shown), a Trace with recorded events, or a kernel (it is run).
        tensors: Inputs of a kernel.
        buffer: Whose values are shown first. Default: what the step wrote.
        block: The block, as (x[, y[, z]]). Default: the session's, or the first that was recorded, or (0, 0, 0).
        at: The step shown. Default: the session's; else the first NaN, the first finding of severity error, or the last step.
        watches: Expressions to watch.
        breaks: Where to stop: lines, conditions, ``"nan"``, ``"oob"``, ``"finding"``, codes.
        level: For a kernel: ``"tile"`` or ``"thread"``.
        params: For a kernel: :class:`tilelab.SimParams`.
        consts: For a kernel: its constants and sizes.
        limit_bytes: Bound on the encoded values; what is left out is said. Default: 4 MiB.
        origins: Name of a tensor too large to be shown whole → first element of the part shown. Default: what the block writes or reads.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Raises:
        InputError: Nothing was recorded, or there is no such block, step, buffer or line.
        KernelRefused: TileLang refuses the kernel.
    """
    session = _session(source, tensors, block=block, level=level, params=params, consts=consts)
    for where in breaks:
        session.break_at(where)
    for expression in watches:
        session.watch(expression)
    if at is not None:
        session.goto(at)
    elif not hasattr(source, "events") or source is not session:
        session.goto(_interesting(session))
    return of_session(session, buffer=buffer, limit_bytes=limit_bytes, origins=origins, lang=lang)


def prints(source: Any, *tensors: Any, consts: Mapping[str, Any] | None = None, params: Any = None, lang: str = "en") -> View:
    """Show what ``T.print`` printed in all blocks, as a table with filters and heat maps; ``source`` is a Trace, or a kernel to run.

    Raises:
        KernelRefused: TileLang refuses the kernel.
        InputError: An input does not fit.
    """
    trace_ = source.trace if hasattr(source, "trace") else source
    if not isinstance(trace_, Trace):
        api = import_module("tilelab.api")
        program = api.program_of(source, *tensors, consts=consts)
        trace_ = replace(api.simulate(source, *tensors, params=params, consts=consts), kernel=program.name)
    data = {**_nothing(), "kernel": trace_.kernel, **_prints(trace_, {})}
    return View(kind="trace", title=f"T.print · {trace_.kernel}" if trace_.kernel else "T.print", data=data, lang=lang)


def _session(source: Any, tensors: tuple[Any, ...], *, block: Any, level: str, params: Any, consts: Any) -> Any:
    debugger = import_module("tilelab.debugger")  # a higher layer, asked for by name
    if hasattr(source, "events") and hasattr(source, "break_at"):
        if block is not None and (*block, 0, 0)[:3] != source.block:
            return debugger.Session(source.trace, block=(*block, 0, 0)[:3])
        return source
    if isinstance(source, Trace):
        first = source.events[0].block if source.events else (0, 0, 0)
        return debugger.Session(source, block=first if block is None else (*block, 0, 0)[:3])
    return debugger.debug(source, *tensors, block=block or (0, 0, 0), level=level, params=params, consts=consts)


def _interesting(session: Any) -> int:
    if session.first_nan is not None:
        return int(session.first_nan[0])
    steps = [session.step_of(f) for f in session.findings if f.severity == "error"]
    return next((s for s in steps if s is not None), len(session) - 1)


# ----------------------------------------------------------------------------------------------------- data
def of_session(
    session: Any,
    *,
    buffer: str | None = None,
    limit_bytes: int = LIMIT_BYTES,
    origins: Mapping[str, Sequence[int]] | None = None,
    lang: str = "en",
) -> View:
    """Return the view of a session as it stands.

    Raises:
        InputError: There is no such buffer.
    """
    trace_, events, step = session.trace, session.events, session.here
    findings = [_finding(f, session.step_of(f)) for f in session.findings]
    nan = _nan(session.first_nan)
    keep = {step.index, *(f["step"] for f in findings), *([nan["step"], nan["step"] - 1] if nan else [])}
    packed = pack(events, trace_.buffers, limit=limit_bytes, keep=keep, origins=origins)
    names = [b["name"] for b in packed.buffers]
    if buffer is not None and buffer not in names:
        raise InputError(f"no value of {buffer!r} was recorded", fix=f"there are {', '.join(names)}")
    files = _files(events, trace_.sources)
    data = {
        "kernel": trace_.kernel, "block": list(session.block), "files": files, "count": len(events), **_steps(events, files),
        "buffers": packed.buffers, "values": packed.values, **_prints(trace_, {p: i for i, e in enumerate(events) for p in e.prints}),
        "findings": findings, "nan": nan, "breakpoints": breakpoints(session), "watches": watched(session), "at": step.index,
        "hit": str(step.hit) if step.hit else "", "selected": buffer or _selected(step, nan, packed), "notes": _notes(trace_, packed, lang),
    }  # fmt: skip
    block = ", ".join(map(str, session.block))
    return View(kind="trace", title=word("trace_of", lang, kernel=trace_.kernel or "kernel", block=block), data=data, lang=lang)


def _nothing() -> dict[str, Any]:
    none = np.zeros(0, np.int64)
    steps = {**dict.fromkeys(_COLUMNS, none), "loops": np.zeros((0, 0), np.int64)}
    return {
        "kernel": "", "block": [], "files": [], "texts": [], "roles": [], "threads": [], "loops": [], "count": 0, "steps": steps,
        "buffers": [], "values": [], "prints": [], "prints_lost": 0, "findings": [], "nan": None, "breakpoints": [], "watches": [],
        "at": 0, "hit": "", "selected": "", "notes": [],
    }  # fmt: skip


def _files(events: Sequence[Any], sources: Mapping[str, str]) -> list[TraceFile]:
    """The files of the steps, each cut to what is around the lines that ran."""
    ran: dict[str, list[int]] = {}
    for event in events:
        loc = event.loc
        while loc is not None:
            ran.setdefault(loc.file, []).extend((loc.line, max(loc.line, loc.end_line)))
            loc = loc.caller
    out: list[TraceFile] = []
    for name, lines in ran.items():
        text = sources.get(name, "").splitlines()
        first, last = max(1, min(lines) - _AROUND), max(lines) + _AROUND
        out.append({"name": shown_file(name), "first": first, "lines": text[first - 1 : last]})
    return out


def shown_file(name: str) -> str:
    """Return a file's name as it may leave the machine: relative to the working folder, or without any folder."""
    path = Path(name)
    return path.relative_to(Path.cwd()).as_posix() if path.is_absolute() and path.is_relative_to(Path.cwd()) else path.name


def _steps(events: Sequence[Any], files: list[TraceFile]) -> dict[str, Any]:
    """The steps as columns, and the lists of names that they refer to."""
    place: dict[str, int] = {}
    texts, roles, threads = _List(), _List(), _List()
    names = _List()
    deepest = max((len(e.loops) for e in events), default=0)
    loops = np.zeros((len(events), deepest), np.int64)
    rows = []
    for k, e in enumerate(events):
        loops[k, : len(e.loops)] = list(e.loops.values())
        loc, depth, caller = e.loc, 0, 0
        while loc is not None and loc.caller is not None:
            loc, depth = loc.caller, depth + 1
            caller = loc.line
        own = e.loc
        if own is not None and own.file not in place:
            place[own.file] = next(k for k, f in enumerate(files) if f["name"] == shown_file(own.file))
        rows.append((
            place[own.file] if own else -1, own.line if own else 0, max(own.line, own.end_line) if own else 0, caller, depth,
            texts.of(e.text), roles.of(e.role), threads.of(e.threads), names.of(tuple(e.loops)),
        ))  # fmt: skip
    columns = np.array(rows, np.int64).reshape(len(events), len(_COLUMNS)).T
    steps: Any = {**dict(zip(_COLUMNS, columns, strict=True)), "loops": loops}
    table: TraceSteps = steps
    return {"steps": table, "texts": texts.items, "roles": roles.items, "threads": threads.items, "loops": [list(n) for n in names.items]}


class _List:
    """Different things in the order in which they are met."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._place: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        if thing not in self._place:
            self._place[thing] = len(self.items)
            self.items.append(thing)
        return self._place[thing]


def _prints(trace_: Trace, steps: Mapping[int, int]) -> dict[str, Any]:
    """The records of T.print; ``steps``: place of a record → step."""
    out: list[TracePrint] = []
    room = _PRINT_BYTES
    for k, p in enumerate(trace_.prints[:PRINTS]):
        value = np.asanyarray(p.values)
        if room < value.nbytes and out:
            break
        room -= value.nbytes
        out.append(_print(p, value, steps.get(k, -1)))
    lost = int(trace_.counts.get("prints_lost", 0)) + len(trace_.prints) - len(out)
    return {"prints": out, "prints_lost": lost}


def _print(p: PrintRecord, value: Any, step: int) -> TracePrint:
    message = "" if p.message.startswith("buffer<") else p.message.strip()  # what T.print says when it is told nothing
    what = " ".join(dict.fromkeys(t for t in (message, p.name) if t))
    return {
        "step": step, "file": PurePath(p.loc.file).name if p.loc else "", "line": p.loc.line if p.loc else 0, "block": list(p.block),
        "thread": list(p.thread) if p.thread is not None else None, "loops": {k: int(v) for k, v in p.loops.items()}, "what": what,
        "dtype": p.dtype, "value": value,
    }  # fmt: skip


def _finding(f: Any, step: int | None) -> TraceFinding:
    return {
        "step": -1 if step is None else step, "code": f.code, "severity": f.severity, "message": f.message, "fix": f.fix,
        "file": shown_file(f.file) if f.file else "", "line": f.line or 0,
    }  # fmt: skip


def _nan(found: tuple[int, Mapping[str, Any]] | None) -> TraceNan | None:
    if found is None:
        return None
    step, about = found
    operands: list[Any] = [
        {"buffer": o["buffer"], "index": list(o["index"]), "value": o["value"] if isinstance(o["value"], str) else f"{o['value']:.6g}"}
        for o in about["operands"]
    ]
    return {
        "step": step, "buffer": about["buffer"], "index": list(about["index"]), "value": about["value"], "count": about["count"],
        "operands": operands,
    }  # fmt: skip


def breakpoints(session: Any) -> list[TraceBreak]:
    """Return the breakpoints of a session as the view has them."""
    return [
        {
            "number": b.number, "file": b.file or "", "line": b.line or 0,
            "condition": b.condition.text if b.condition else "", "event": b.event or "",
        }
        for b in session.breakpoints
    ]  # fmt: skip


def watched(session: Any) -> list[TraceWatch]:
    """Return the watches of a session with their values as text; a watch that cannot be computed here says why."""
    out: list[TraceWatch] = []
    for condition in session.watches:
        try:
            value = session.value(condition.text)
            out.append({"text": condition.text, "value": short_value(value)})
        except InputError as error:
            known = all(name in session.values() or name in session.here.event.loops for name in condition.names())
            out.append({"text": condition.text, "value": error.message if known else ""})
    return out


def _selected(step: Any, nan: TraceNan | None, packed: Packed) -> str:
    """The name whose values are shown first: what went wrong, what the step wrote, or the last tile that was written."""
    names = [b["name"] for b in packed.buffers]
    if nan is not None and nan["step"] == step.index and nan["buffer"] in names:
        return nan["buffer"]
    wrote = [n for n in step.changed if n in names]
    if wrote:
        return str(wrote[0])
    tiles = [b for b in packed.buffers if b["scope"] not in ("let", "shared.barrier")]
    before = [(int(s), b["name"]) for b in tiles for s in b["steps"] if s <= step.index]
    last = max(before)[1] if before else names[0] if names else ""
    return str(last)


def _notes(trace_: Trace, packed: Packed, lang: str) -> list[str]:
    """What is not shown, and why."""
    notes = [trace_.truncated] if trace_.truncated else []
    if packed.left_out:
        notes.append(word("left_out_note", lang, count=packed.left_out, size=f"{packed.bytes / 1e6:.1f} MB"))
    return notes

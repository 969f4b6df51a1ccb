"""``T.print`` on a real GPU: the driver writes its lines to file descriptor 1, past Python; here they become records.

``with captured_prints() as seen: kernel(a, b)``; then ``seen.records`` are the :class:`tilelab.trace.PrintRecord` that the
simulator would have made: a buffer is one array, not a line an element. What else was written in between goes on to
``sys.stdout``. A device prints six decimals, so values are as exact as that.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.sim import dtypes
from tilelab.trace import PrintRecord, Trace

#: C type as TileLang's templates print it → dtype.
DTYPES: Mapping[str, str] = {
    "bool": "bool", "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16",
    "uint16_t": "uint16", "int": "int32", "uint": "uint32", "long": "int64", "ulong": "uint64", "long long": "int64", "float": "float32",
    "double": "float64", "half": "float16", "half_t": "float16", "bfloat16_t": "bfloat16", "fp8_e4_t": "float8_e4m3fn",
    "fp8_e5_t": "float8_e5m2", "pointer": "handle",
}  # fmt: skip
#: Text read back at most; the driver itself keeps only ``fifo_bytes`` of a launch.
LIMIT_BYTES = 64 << 20
#: More threads than this that print one expression make one record, as in the simulator.
THREADS = 32

#: Records that a notebook cell shows.
SHOWN = 50

_TRIPLE = r"\((-?\d+), (-?\d+), (-?\d+)\)"
_LINE = re.compile(
    rf"msg='(?P<message>(?:[^\n]|\n(?!msg='))*?)' BlockIdx={_TRIPLE}, ThreadIdx={_TRIPLE}"
    r"(?:: (?:buffer=(?P<buffer>[^\n]*?), index=(?P<index>-?\d+), )?dtype=(?P<dtype>[\w ]+) value=(?P<value>[^\n]*))?(?:\n|$)"
)
_EXTERNS = {"debug_print_buffer_value", "debug_print_var", "debug_print_msg"}


@dataclass(slots=True)
class DevicePrints:
    """What the device printed, known when the block ends.

    Attributes:
        records: In the order in which the device began them. Elements whose lines were lost are masked (a numpy masked array).
        lost: What is missing and why; empty if nothing is known to be.
    """

    records: tuple[PrintRecord, ...] = ()
    lost: str = ""

    def trace(self) -> Trace:
        """Return them as a Trace, which the views of prints take."""
        return Trace(outputs={}, prints=self.records)


@contextlib.contextmanager
def captured_prints(program: ir.Program | None = None, *, fifo_bytes: int = 32 << 20) -> Iterator[DevicePrints]:
    """Within the block, take the lines that kernels print on the GPU; on leaving it, wait for the GPU and read them.

    Args:
        program: The captured kernel, from which records get their source lines, shapes and exact dtypes.
        fifo_bytes: How much the driver keeps of what a launch prints, in bytes (its own default is 1 MiB; of more, the
            oldest lines are lost). It counts only if no kernel has printed in this process before.
    """
    seen = DevicePrints()
    _widen(fifo_bytes)
    with tempfile.TemporaryFile() as sink:
        _flush()
        saved = os.dup(1)
        os.dup2(sink.fileno(), 1)
        try:
            yield seen
        finally:
            try:
                _synchronize()
                _flush()
            finally:
                os.dup2(saved, 1)
                os.close(saved)
            size = sink.seek(0, os.SEEK_END)
            sink.seek(max(0, size - LIMIT_BYTES))
            found, rest = parse(sink.read().decode("utf-8", "replace"), program)
            seen.records = found
            if size > LIMIT_BYTES:
                seen.lost = f"of {size:,} bytes printed, the last {LIMIT_BYTES:,} are kept"
            elif any(isinstance(r.values, np.ma.MaskedArray) for r in found):
                seen.lost = (
                    f"the driver keeps {fifo_bytes:,} bytes of a launch at most, and lost lines: print fewer elements, or from fewer blocks"
                )
            if rest:
                sys.stdout.write(rest)


def watch_cells(shell: Any) -> None:
    """From now on each cell of a notebook shows what its kernels print on the GPU, in one line a record."""
    from tilelab.runtime.hook import print_line

    running: list[tuple[contextlib.ExitStack, DevicePrints]] = []

    def begin(*info: Any) -> None:
        stack = contextlib.ExitStack()
        running.append((stack, stack.enter_context(captured_prints())))

    def end(*info: Any) -> None:
        if not running:  # the cell in which this was switched on
            return
        stack, seen = running.pop()
        stack.close()
        for record in seen.records[:SHOWN]:
            print(print_line(record))
        if len(seen.records) > SHOWN:
            print(f"… and {len(seen.records) - SHOWN:,} more: tilelab.runtime.captured_prints() gives them all")
        if seen.lost:
            print(seen.lost)

    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


def parse(text: str, program: ir.Program | None = None) -> tuple[tuple[PrintRecord, ...], str]:
    """Read a device's output.

    Args:
        text: What was written to standard output.
        program: Where the records get source lines, shapes and dtypes from.

    Returns:
        The records, and the text that is none of them.
    """
    runs: list[_Run] = []
    latest: dict[Any, _Run] = {}
    rest: list[str] = []
    end = 0
    for m in _LINE.finditer(text):
        rest.append(text[end : m.start()])
        end = m.end()
        numbers = [int(g) for g in m.groups()[1:7]]
        block, thread = (numbers[0], numbers[1], numbers[2]), (numbers[3], numbers[4], numbers[5])
        key = (m["message"], m["buffer"], m["dtype"], block, thread)
        run = latest.get(key)
        index = int(m["index"]) if m["index"] is not None else None
        if run is None or index is None or index <= run.last:
            run = latest[key] = _Run(*key, turn=run.turn + 1 if run else 0)
            runs.append(run)
        run.last = index if index is not None else 0
        if m["dtype"] is not None:
            run.items[run.last] = m["value"]
    rest.append(text[end:])
    return tuple(_records(runs, _sites(program) if program is not None else {})), "".join(rest)


@dataclass(slots=True)
class _Run:
    """The lines of one execution of a print by one thread."""

    message: str
    buffer: str | None
    ctype: str | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    turn: int  # how often this thread has printed this before
    last: int = -1
    items: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Site:
    """A ``T.print`` of the program."""

    loc: ir.SourceLoc | None
    dtype: str
    shape: tuple[int, ...]


def _records(runs: list[_Run], sites: Mapping[Any, _Site]) -> Iterator[PrintRecord]:
    """Join what the threads of a block printed at one turn: equal buffers are one, and so is an expression of many threads."""
    groups: dict[Any, list[_Run]] = {}
    for r in runs:
        groups.setdefault((r.message, r.buffer, r.ctype, r.block, r.turn), []).append(r)
    for (message, buffer, ctype, block, _), group in groups.items():
        site = sites.get((message, buffer or "")) or sites.get((None, buffer or ""))
        dtype = (site.dtype if site else "") or DTYPES.get(ctype or "", ctype or "")
        shape = site.shape if site else ()
        made: dict[str, Any] = {"message": message, "name": buffer or "", "dtype": dtype, "block": block, "loc": site.loc if site else None}
        if ctype is None:
            yield PrintRecord(**made, values=np.zeros(0), thread=None)
            continue
        arrays = [_array(r, dtype, shape) for r in group]
        if buffer is not None and all(_same(a, arrays[0]) for a in arrays[1:]):
            yield PrintRecord(**made, values=arrays[0], thread=None)
        elif buffer is None and len(group) > THREADS:
            yield PrintRecord(**made, values=_joined(group, arrays), thread=None)
        else:
            for r, a in zip(group, arrays, strict=True):
                yield PrintRecord(**made, values=a, thread=r.thread)


def _array(run: _Run, dtype: str, shape: tuple[int, ...]) -> Any:
    """The values of a run: 0-d for an expression; elements without a line are masked."""
    kind = _carrier(dtype, run.ctype or "")
    if run.buffer is None:
        return np.asarray(_value(run.items[0], kind), kind)
    size = int(np.prod(shape)) if shape else max(run.items) + 1
    size = max(size, max(run.items) + 1)
    out: Any = np.zeros(size, kind)
    known = np.zeros(size, np.bool_)
    for i, text in run.items.items():
        out[i], known[i] = _value(text, kind), True
    if not known.all():
        out = np.ma.masked_array(out, ~known)
    return out.reshape(shape) if shape and int(np.prod(shape)) == size else out


def _joined(group: list[_Run], arrays: list[Any]) -> Any:
    """The values of many threads: over their box, where they fill one, in the order z, y, x."""
    order = sorted(range(len(group)), key=lambda i: group[i].thread[::-1])
    flat = np.stack([arrays[i] for i in order])
    axes = [sorted({r.thread[c] for r in group}) for c in (2, 1, 0)]
    box = tuple(len(a) for a in axes)
    return np.squeeze(flat.reshape(box)) if int(np.prod(box)) == len(group) else flat


def _same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.ma.allequal(np.nan_to_num(a, nan=0.5), np.nan_to_num(b, nan=0.5))


def _carrier(dtype: str, ctype: str) -> Any:
    if ctype in ("pointer", "unknown"):
        return np.dtype(np.uint64)
    return dtypes.carrier(dtype if ctype in DTYPES else "float32")


def _value(text: str, kind: Any) -> Any:
    """One printed value; a line that was cut off gives zero or NaN."""
    try:
        if kind.kind == "b":
            return text.strip() == "true"
        if kind.kind == "f":
            return float(text)
        return int(text, 16) if text.startswith("0x") else int(text)
    except ValueError:
        return np.nan if kind.kind == "f" else 0


# ------------------------------------------------------------------------------------------------ the program's prints
def _sites(program: ir.Program) -> dict[Any, _Site]:
    """(message, buffer) → its print; what several prints share is left out."""
    found: dict[Any, list[_Site]] = {}
    for call, loc in _prints_in(program.body, None):
        strings = [a.value for a in call.args[1:] if isinstance(a, ir.Str)]
        values = [a for a in call.args[1:] if not isinstance(a, ir.Str)]
        buffer = strings[1] if len(strings) > 1 else ""
        shape: tuple[int, ...] = ()
        if buffer and isinstance(values[-1], ir.Load):
            sizes = [e.value for e in values[-1].buffer.shape if isinstance(e, ir.Const)]
            shape = tuple(int(s) for s in sizes) if len(sizes) == len(values[-1].buffer.shape) else ()
        dtype = values[-1].dtype if values else ""
        found.setdefault((strings[0] if strings else "", buffer), []).append(_Site(_user_line(loc), dtype, shape))
    return {key: sites[0] for key, sites in found.items() if len(set(_lines(sites))) == 1}


def _prints_in(body: ir.Body, loc: ir.SourceLoc | None) -> Iterator[tuple[ir.Call, ir.SourceLoc | None]]:
    """The printing calls, each with its line or that of the nearest statement around it."""
    for s in body:
        here = s.loc or loc
        call = s.value if isinstance(s, ir.Eval) else None
        if isinstance(call, ir.Call) and call.args and isinstance(call.args[0], ir.Str) and call.args[0].value in _EXTERNS:
            yield call, here
        yield from _prints_in(tuple(c for c in ir.children(s) if isinstance(c, ir.Stmt)), here)


def _user_line(loc: ir.SourceLoc | None) -> ir.SourceLoc | None:
    """The line of the user's file that called TileLang's macro."""
    while loc is not None and loc.caller is not None:
        loc = loc.caller
    return loc


def _lines(sites: Iterable[_Site]) -> Iterator[Any]:
    for s in sites:
        yield (s.loc.file, s.loc.line) if s.loc else None


# ------------------------------------------------------------------------------------------------ the process
def _flush() -> None:
    """Empty Python's and C's buffers of standard output."""
    with contextlib.suppress(Exception):
        sys.stdout.flush()
    with contextlib.suppress(Exception):
        ctypes.CDLL(None).fflush(None)


def _synchronize() -> None:
    """Wait for the GPU, whose lines come only then; nothing where torch is not in use, or the kernel has failed."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.version.cuda and torch.cuda.is_available() and torch.cuda.is_initialized():
        with contextlib.suppress(Exception):
            torch.cuda.synchronize()


def _widen(size_bytes: int) -> None:
    """Ask the driver to keep more lines (``CU_LIMIT_PRINTF_FIFO_SIZE``); it refuses once a kernel has printed."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.version.cuda or not torch.cuda.is_available():
        return
    with contextlib.suppress(Exception):
        torch.cuda.current_stream().synchronize()  # makes the context current in this thread
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1").cuCtxSetLimit(1, ctypes.c_size_t(size_bytes))

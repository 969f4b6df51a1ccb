"""Where statements come from: TileLang's spans, extended by the stack of macro calls that led to them.

TileLang stamps each statement with a file and a line of the function whose body it stands in; for a macro that is the
macro's own body, often inside TileLang. While :func:`recording` is on, the file's name also carries the lines that
called the macro, so that a span alone gives the whole stack. This is the one place where TileLab touches the front end.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tilelab.ir import SourceLoc

#: Between a file, the line that called the macro in it, and the file of that line.
_MARK = "\x1f"


@contextmanager
def recording() -> Iterator[None]:
    """Record macro call sites in the spans of everything that is built within the block."""
    from tilelang.language.eager.builder import Builder

    plain, stack_of = Builder.set_fileline, Builder.get_fileline_stack
    if getattr(plain, "records_callers", False):
        yield
        return

    def set_fileline(self: Any, filename: str, lineno: int, name: str) -> None:
        calls = self.macro_fileline_stack
        if calls:
            caller_file, caller_line, _ = calls[-1]
            filename = f"{filename}{_MARK}{caller_line}{_MARK}{caller_file}"
        plain(self, filename, lineno, name)

    def get_fileline_stack(self: Any, stacklevel: int = 1) -> list[tuple[str, int, str]]:
        return [(file.split(_MARK)[0], line, name) for file, line, name in stack_of(self, stacklevel)]

    def innermost(self: Any) -> Any:
        """The frame that takes statements. That of ``T.ws`` holds frames of its own, which TileLang overlooks: its lines would be lost."""
        frame = frame_of(self)
        while type(frame).__name__ == "WarpSpecializeFrame" and len(frame.frames):
            frame = frame.frames[-1]
        return frame

    frame_of = Builder._current_stmt_frame
    set_fileline.records_callers = True  # type: ignore[attr-defined]
    Builder.set_fileline, Builder.get_fileline_stack, Builder._current_stmt_frame = set_fileline, get_fileline_stack, innermost
    try:
        yield
    finally:
        Builder.set_fileline, Builder.get_fileline_stack, Builder._current_stmt_frame = plain, stack_of, frame_of


@cache
def _library_roots() -> tuple[str, ...]:
    import tilelang

    return (str(Path(tilelang.__file__).resolve().parent) + os.sep,)


def is_library(file: str) -> bool:
    """Tell whether ``file`` belongs to TileLang (or the TVM inside it) rather than to the user."""
    return file.startswith(_library_roots()) or (file.startswith("<") and not _is_cell(file))


def _is_cell(file: str) -> bool:
    return bool(linecache.getlines(file))


def decode(file: str, line: int) -> SourceLoc | None:
    """Turn a recorded file name and line into a location: the innermost line of the user, its callers behind it."""
    parts = file.split(_MARK)
    frames = [(parts[0], line)] + [(parts[i + 1], int(parts[i])) for i in range(1, len(parts) - 1, 2)]
    loc: SourceLoc | None = None
    for name, at in reversed(frames):
        if at > 0 and not is_library(name):
            loc = SourceLoc(file=name, line=at, end_line=at, caller=loc)
    return loc


def encode(loc: SourceLoc) -> str:
    """Return the file name under which :func:`decode` finds ``loc`` again."""
    out = loc.file
    caller = loc.caller
    while caller is not None:
        out += f"{_MARK}{caller.line}{_MARK}{caller.file}"
        caller = caller.caller
    return out


def loc_of_span(span: Any) -> SourceLoc | None:
    """Return the location that a TVM span records, or None."""
    if span is None or span.source_name is None:
        return None
    return _decoded(span.source_name.name, int(span.line))


@cache
def _decoded(file: str, line: int) -> SourceLoc | None:
    return decode(file, line)


def text_of(file: str) -> str:
    """Return the text of a file or notebook cell; empty if it is gone."""
    linecache.checkcache(file)
    return "".join(linecache.getlines(file))

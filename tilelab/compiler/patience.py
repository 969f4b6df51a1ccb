"""A limit on how long a user's Python may run while it is loaded or builds a kernel: an endless loop becomes one clear line."""

from __future__ import annotations

import os
import signal
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilelab.compiler.provenance import is_library
from tilelab.errors import InputError

#: Environment variable: seconds that loading a file, or building a kernel, may take; 0 for no limit.
VARIABLE = "TILELAB_BUILD_SECONDS"
DEFAULT_SECONDS = 120.0


@contextmanager
def patience(files: Mapping[str, str] | None = None) -> Iterator[None]:
    """Within the block Python is stopped after some time (``TILELAB_BUILD_SECONDS``, 120 by default).

    Only in the main thread of a system with alarms, and only if nobody else has set one.

    Args:
        files: File names as recorded → as the user typed them.

    Raises:
        InputError: The time is over; the message names the user's line that runs.
    """
    seconds = _seconds()
    if not seconds or not _may_alarm():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise InputError(f"{_place(frame, files or {})}still runs after {seconds:g} seconds", fix="let the Python that builds a kernel end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again, should somebody swallow the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _seconds() -> float:
    try:
        return max(0.0, float(os.environ.get(VARIABLE, DEFAULT_SECONDS)))
    except ValueError:
        return DEFAULT_SECONDS


def _may_alarm() -> bool:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getitimer(signal.ITIMER_REAL)[0] == 0 and signal.getsignal(signal.SIGALRM) in (signal.SIG_DFL, None)


def _place(frame: Any, files: Mapping[str, str]) -> str:
    """The innermost line that runs of the user's files; of any file that is not installed, where they are not known."""
    frames = []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    theirs = [(n, at) for n, at in frames if n in files] or [(n, at) for n, at in frames if not _installed(n)]
    return f"{files.get(theirs[0][0], theirs[0][0])}:{theirs[0][1]} " if theirs else "the file "


def _installed(file: str) -> bool:
    return is_library(file) or file.startswith(("<", _PACKAGE, *_PYTHON))


_PACKAGE = str(Path(__file__).resolve().parents[1])
_PYTHON = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))

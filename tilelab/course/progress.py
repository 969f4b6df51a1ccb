"""A learner's progress: one JSON object a line, appended and synced, never rewritten; torn lines are skipped.

It is for the learner and is no grade: anybody may edit their own. It survives kill −9 (a line is there or it is not),
upgrades (unknown keys are kept, unknown events ignored) and folders on a network (one short append under a lock).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tilelab.errors import InputError
from tilelab.files import write_text

FILE = Path(".tilelab") / "progress.jsonl"


def home() -> Path:
    """Return the learner's folder: ``TILELAB_HOME``, or else where the process runs (a notebook runs where it lies)."""
    named = os.environ.get("TILELAB_HOME")
    return Path(named).expanduser() if named else Path.cwd()


def append(event: Mapping[str, Any], folder: Path | None = None) -> bool:
    """Append one event and sync it; False where the folder cannot be written (progress is never worth an error)."""
    path = (folder or home()) / FILE
    line = json.dumps({"time": round(time.time(), 3), **event}, ensure_ascii=False, separators=(",", ":")) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n" if hasattr(os, "pread") else False
            os.write(fd, (("\n" if torn else "") + line).encode())  # a torn last line stays alone on its own
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError:
        return False
    return True


def events(folder: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield the events in order; lines that are no JSON object (a power cut in the middle of one) are skipped."""
    try:
        text = ((folder or home()) / FILE).read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.split("\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def export(path: Path, folder: Path | None = None) -> int:
    """Write the events as one JSON list to ``path`` and return how many there are.

    Raises:
        InputError: ``path`` cannot be written.
    """
    kept = list(events(folder))
    try:
        write_text(path, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
    except OSError as e:
        raise InputError(f"{path} cannot be written: {e.strerror}", fix="give a file in a folder that is yours") from None
    return len(kept)


def reset(puzzle: str | None = None, folder: Path | None = None) -> bool:
    """Forget the results of one puzzle (by its id), or of all; the history stays in the file. False where it cannot be written."""
    return append({"event": "reset", **({"puzzle": puzzle} if puzzle else {})}, folder)


def best(folder: Path | None = None) -> dict[str, dict[str, Any]]:
    """Return puzzle id → ``{"passed", "score", "max", "checks", "hints"}``: the best check since the last reset."""
    out: dict[str, dict[str, Any]] = {}
    for e in events(folder):
        name = e.get("puzzle")
        if e.get("event") == "reset":
            if name:
                out.pop(name, None)
            else:
                out.clear()
        elif isinstance(name, str) and e.get("event") in ("check", "hint"):
            entry = out.setdefault(name, {"passed": False, "score": 0, "max": 100, "checks": 0, "hints": 0})
            if e["event"] == "hint":
                entry["hints"] = max(entry["hints"], int(e.get("hint", 0)))
                continue
            entry["checks"] += 1
            now = (bool(e.get("passed")), float(e.get("score", 0)))
            if now >= (entry["passed"], entry["score"]):
                entry |= {"passed": now[0], "score": e.get("score", 0), "max": e.get("max", 100)}
    return out

"""How far a learner is: one small JSON file in their folder, written by each check and read by the panel.

The file is a convenience for the learner and no grade: anybody may edit their own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilelab.files import write_text

FILE = Path(".tilelab") / "progress.json"
SCHEMA = "tilelab.progress"


def home() -> Path:
    """Return the learner's folder: ``TILELAB_HOME``, or else where the process runs (a notebook runs where it lies)."""
    named = os.environ.get("TILELAB_HOME")
    return Path(named).expanduser() if named else Path.cwd()


def load(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return puzzle id → ``{"passed", "score", "max"}`` of the best check so far; a file that cannot be read counts as none."""
    try:
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    puzzles = data.get("puzzles") if isinstance(data, dict) else None
    return puzzles if isinstance(puzzles, dict) else {}


def record(folder: Path, puzzle: str, *, passed: bool, score: float, max_score: float) -> None:
    """Keep the result of a check if it is the best one of this puzzle so far."""
    puzzles = dict(load(folder))
    before = puzzles.get(puzzle, {})
    if (bool(before.get("passed")), float(before.get("score", -1))) >= (passed, score):
        return
    puzzles[puzzle] = {"passed": passed, "score": score, "max": max_score}
    write_text(folder / FILE, json.dumps({"schema": SCHEMA, "version": 1, "puzzles": puzzles}, indent=1) + "\n")

"""The puzzles as a learner sees them: the course on one side, the learner's folder with their copies on the other."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.errors import InputError

LANGUAGES = ("en", "zh")
DEFAULT_HOME = "tilelab-puzzles"

#: letter of a part of the course → its title in each of LANGUAGES
PARTS: Mapping[str, tuple[str, str]] = {
    "0": ("Warm-up", "热身"),
    "A": ("Tiles", "分块"),
    "B": ("Cooperation", "协作"),
    "C": ("Layouts", "布局"),
    "D": ("GEMM", "矩阵乘"),
    "E": ("Low precision and sparsity", "低精度与稀疏"),
    "F": ("Attention", "注意力"),
    "G": ("FlashMLA and beyond", "FlashMLA 及其后"),
    "H": ("Experts at the memory limit", "触及显存极限的专家模型"),
}


class UnknownPuzzle(InputError):
    """There is no such puzzle."""

    unknown_puzzle = True


def learner_home(root: Path) -> Path:
    """Return the learner's folder below a server's ``root``: ``TILELAB_HOME`` if it lies there, or else ``tilelab-puzzles``."""
    named = os.environ.get("TILELAB_HOME")
    if named:
        folder = Path(named).expanduser().resolve()
        if folder.is_relative_to(root.resolve()):
            return folder
    return root.resolve() / DEFAULT_HOME


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What the panel shows and opens. ``root`` is the folder that the server serves; paths in answers are relative to it."""

    root: Path

    @property
    def home(self) -> Path:
        """The learner's folder."""
        return learner_home(self.root)

    def listing(self, lang: str) -> dict[str, Any]:
        """Return every puzzle in the order of the course, with its texts in ``lang`` and the learner's state."""
        from tilelab.course import progress, puzzles

        # Kernels write it to TILELAB_HOME, be it served or not; without that, beside the notebook, which is here.
        known = progress.best(None if os.environ.get("TILELAB_HOME") else self.home)
        return {
            "schema": "tilelab.lab.puzzles",
            "version": 1,
            "folder": self._served(self.home),
            "puzzles": [self._entry(p, lang, known.get(p.id, {})) for p in puzzles()],
        }

    def progress(self) -> dict[str, Any]:
        """Return the state and score of each puzzle, and how many are solved."""
        entries = self.listing("en")["puzzles"]
        return {
            "solved": sum(e["state"] == "solved" for e in entries),
            "total": len(entries),
            "puzzles": {e["id"]: {key: e[key] for key in ("state", "score", "max")} for e in entries},
        }

    def open(self, name: str, lang: str) -> dict[str, Any]:
        """Make sure that the learner has a copy of the puzzle's notebook; a copy that is there stays as it is.

        Raises:
            UnknownPuzzle: No puzzle is called ``name`` (its number, its id).
            InputError: The folder cannot be written.
        """
        puzzle = _find(name)
        path = self.copy_of(puzzle, lang)
        created = not path.exists() and place(path, puzzle.notebook(lang))
        return {"id": puzzle.id, "path": self._served(path), "created": created}

    def copy_of(self, puzzle: Any, lang: str) -> Path:
        """Return where the learner's copy of a puzzle lies, or would lie: one for each language."""
        return self.home / (f"{puzzle.id}.ipynb" if lang == "en" else f"{puzzle.id}.{lang}.ipynb")

    def _entry(self, puzzle: Any, lang: str, best: Mapping[str, Any]) -> dict[str, Any]:
        path = self.copy_of(puzzle, lang)
        opened = any(self.copy_of(puzzle, each).exists() for each in LANGUAGES)
        checked = bool(best.get("checks"))
        state = "solved" if best.get("passed") else "started" if checked or opened else "new"
        return {
            "id": puzzle.id,
            "number": puzzle.number,
            "title": puzzle.title(lang),
            "idea": puzzle.idea(lang),
            "part": puzzle.part,
            "partTitle": PARTS.get(puzzle.part, (puzzle.part,) * 2)[LANGUAGES.index(lang)],
            "state": state,
            "score": best["score"] if checked else None,
            "max": best.get("max", 100),
            "path": self._served(path) if path.exists() else None,
        }

    def _served(self, path: Path) -> str:
        served = path.relative_to(self.root.resolve()).as_posix()
        return "" if served == "." else served


def place(path: Path, notebook: Mapping[str, Any]) -> bool:
    """Write a notebook where nothing lies yet, whole or not at all; return False when something lay there and was kept."""
    text = json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(0o644)
        return _give_name(temporary, path, text)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}", fix="Choose another folder with TILELAB_HOME") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, path: Path, text: str) -> bool:
    try:
        path.hardlink_to(temporary)  # unlike a rename, this never replaces what is there
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return False
    return True


def _find(name: str) -> Any:
    from tilelab.course import puzzle

    if not re.fullmatch(r"\w+", name):  # the course also takes folders; a request has no business with those
        raise UnknownPuzzle(f"{name!r} is not the name of a puzzle", fix="Use its number, such as 1")
    try:
        return puzzle(name)
    except InputError as error:
        raise UnknownPuzzle(error.message, fix=error.fix) from None

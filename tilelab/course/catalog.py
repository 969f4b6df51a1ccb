"""Finding puzzles: by number, by name or by folder, in a checkout or in an installed wheel."""

from __future__ import annotations

import os
import re
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from tilelab.course.card import Puzzle
from tilelab.errors import InputError
from tilelab.grader.schema import load_spec


def puzzle(name: str | int | Path, lang: str | None = None) -> Puzzle:
    """Return a puzzle by ``"1"``, ``"1_copy"``, ``"01_copy"``, ``"copy"``, or its folder.

    Args:
        name: Which.
        lang: The language of its card, hints and reports, ``"en"`` or ``"zh"``. Default: ``TILELAB_LANG``, or else English.

    Raises:
        InputError: There is no such puzzle (the message lists those that there are), or no such language.
    """
    found = _find(name)
    return found if lang is None else found.in_language(lang)


def _find(name: str | int | Path) -> Puzzle:
    text = str(name)
    folder = Path(text)
    if (folder / "puzzle.toml").is_file():
        return _load(folder.resolve(), (folder / "puzzle.toml").stat().st_mtime_ns)
    if os.sep in text or isinstance(name, Path):
        raise InputError(f"{text}: not the folder of a puzzle", fix="a puzzle is a folder with a puzzle.toml in it")
    known = folders()
    match = re.fullmatch(r"0*(\d+)(?:_(\w+))?", text)
    for path in known:
        number, _, rest = path.name.partition("_")
        if (match and int(match[1]) == int(number) and match[2] in (None, rest)) or text == rest:
            return _find(path)
    raise InputError(f"there is no puzzle {text!r}", fix=f"there are {', '.join(p.name for p in known) or 'none installed'}")


def puzzles() -> list[Puzzle]:
    """Return all puzzles, in the order of the road; a broken one of a pack is told on stderr and left out."""
    own, out = roots()[:1], []
    for path in folders():
        try:
            out.append(puzzle(path))
        except InputError as e:
            if path.parent in own:
                raise
            print(f"tilelab: left out {path.name}: {e}", file=sys.stderr)
    return out


def folders() -> list[Path]:
    """Return the folders of all puzzles, by number; packs that plug in come after those of TileLab."""
    found: dict[str, Path] = {}
    for root in roots():
        for path in sorted(root.iterdir()):
            if re.match(r"\d\d_", path.name) and (path / "puzzle.toml").is_file():
                found.setdefault(path.name, path)
    return sorted(found.values(), key=lambda p: p.name)


def roots() -> list[Path]:
    """Return the folders that hold puzzles: the checkout's or the wheel's, then those of packs.

    A pack names a module in the entry-point group ``tilelab.puzzles``; its puzzles lie in that module's folder.
    """
    package = Path(__file__).resolve().parents[1]
    own = [p for p in (package.parent / "puzzles", package / "_puzzles") if p.is_dir()][:1]
    packs = [_pack(e) for e in entry_points(group="tilelab.puzzles")]
    return [*own, *(p for p in packs if p is not None and p.is_dir())]


def _pack(entry: EntryPoint) -> Path | None:
    try:
        file = getattr(entry.load(), "__file__", None)
    except Exception as e:  # a pack is somebody else's code
        print(f"tilelab: the pack {entry.name!r} cannot be imported: {type(e).__name__}: {e}", file=sys.stderr)
        return None
    return Path(file).parent if file else None


@lru_cache(maxsize=256)
def _load(folder: Path, stamp: int) -> Puzzle:
    return Puzzle(load_spec(folder))

"""For teachers: a new puzzle that passes its own checks, and exports for nbgrader and for release."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

from tilelab.course import percent
from tilelab.course.card import Puzzle
from tilelab.course.catalog import folders, puzzle
from tilelab.course.generate import solution_file
from tilelab.course.gradebook import grade_cell
from tilelab.errors import InputError
from tilelab.files import write_bytes, write_text
from tilelab.grader.spec import KINDS

#: What a learner may have of a puzzle: what the wheel carries, too. No solution, no wrong answer.
RELEASED = ("puzzle.toml", "oracle.py", "stub.py", "README.md", "README.zh.md", "picture.svg")


def new_puzzle(name: str, root: Path, kind: str = "kernel") -> Path:
    """Make a puzzle's folder under ``root`` from the template of a kind; it passes its own checks.

    Raises:
        InputError: The name is no puzzle name, the number is taken, or the kind is unknown.
    """
    templates = Path(__file__).with_name("templates")
    if kind not in KINDS or not (templates / kind).is_dir():
        raise InputError(f"kind {kind!r} is unknown", fix=f"use one of {', '.join(KINDS)}")
    match = re.fullmatch(r"(?:(\d\d)_)?([a-z][a-z0-9_]*)", name)
    if match is None:
        raise InputError(f"{name!r} is no name for a puzzle", fix="use small letters, digits and underscores, as in 61_my_puzzle")
    own = [p.name for p in root.iterdir()] if root.is_dir() else []
    taken = {n[:2] for n in [*(p.name for p in folders()), *own] if re.match(r"\d\d_", n)}
    number = match[1] or next((f"{n:02d}" for n in range(61, 100) if f"{n:02d}" not in taken), None)
    if number is None or number in taken:
        raise InputError(f"the number {number or 'from 61 to 99'} is taken", fix="choose another number")
    folder = root / f"{number}_{match[2]}"
    words = {"ID": folder.name, "NUMBER": str(int(number)), "TITLE": match[2].replace("_", " ").capitalize(), "ENTRY": match[2]}
    for path in sorted((templates / kind).rglob("*.txt")):
        text = re.sub("|".join(words), lambda m: words[m[0]], path.read_text("utf-8"))
        write_text(folder / path.relative_to(templates / kind).with_suffix(""), text)
    made = puzzle(folder)
    write_text(folder / "stub.py", percent.stub(made.source()))
    write_text(folder / "solution.py", solution_file(made))
    return folder


def export(p: Puzzle, folder: Path, lang: str) -> list[Path]:
    """Write the nbgrader source notebook (``source/ID/ID.ipynb``) and the release archive (``ID.zip``) of a puzzle."""
    source = folder / "source" / p.id / f"{p.id}.ipynb"
    write_text(source, percent.dump(nbgrader_notebook(p, lang)))
    archive = folder / f"{p.id}.zip"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as z:
        for name in RELEASED:
            if (p.folder / name).is_file():
                z.writestr(zipfile.ZipInfo(f"{p.id}/{name}", (1980, 1, 1, 0, 0, 0)), (p.folder / name).read_bytes())
    write_bytes(archive, data.getvalue())
    return [source, archive]


def nbgrader_notebook(p: Puzzle, lang: str) -> dict[str, object]:
    """Return the puzzle as an nbgrader source: a solution cell, and a graded cell whose value is the score."""
    prose = p.prose(lang)
    cells = [percent.Cell(kind="markdown", source=prose.inlined().strip())]
    for c in percent.parse(p.source(), f"{p.id}/puzzle.py"):
        if c.metadata.get("lang", lang) != lang or ".check(" in c.source:
            continue
        meta = {k: v for k, v in c.metadata.items() if k != "lang"}
        source = c.source
        if meta.get("tilelab", {}).get("role") == "solution":
            meta["nbgrader"] = _nbgrader(f"{p.id}-solution", solution=True)
            source = "\n".join(line for line in source.split("\n") if not line.strip().startswith(percent.STARTER))
        cells.append(percent.Cell(kind=c.kind, source=source, metadata=meta))
    test = f"report = puzzle.check({p.spec.entry})\nprint(report)\nreport.score"
    cells.append(percent.Cell(kind="code", source=test, metadata={"nbgrader": _nbgrader(grade_cell(p), points=100)}))
    return percent.notebook(cells, {"tilelab": {"lang": lang, "puzzle": p.id}})


def _nbgrader(grade_id: str, *, solution: bool = False, points: int | None = None) -> dict[str, object]:
    graded = points is not None
    meta: dict[str, object] = {
        "schema_version": 3,
        "grade_id": grade_id,
        "grade": graded,
        "solution": solution,
        "locked": graded,
        "task": False,
    }
    return {**meta, "points": points} if graded else meta

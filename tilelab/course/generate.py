"""Makes what is generated of the puzzles: ``python -m tilelab.course.generate [--check] [--solved DIR]``.

From each ``puzzles/NN_name/puzzle.py`` come ``solution.py`` and ``stub.py`` beside it, ``notebooks/NN_name.ipynb`` (and
``notebooks/zh/``) and, where there is a book beside, its page ``book/road/NN_name.md``; they are committed, and a test holds them
equal to a regeneration. Solved notebooks go to a build folder, where CI runs them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tilelab.course import percent
from tilelab.course.card import Puzzle
from tilelab.course.catalog import puzzle, puzzles
from tilelab.course.prose import LANGUAGES
from tilelab.errors import InputError
from tilelab.files import write_text

_IMPORTS = "import tilelang\nimport tilelang.language as T\n"


def generated(puzzle: Puzzle, notebooks: Path) -> dict[Path, str]:
    """Return every generated file of a puzzle with its text."""
    out = {puzzle.folder / "solution.py": solution_file(puzzle), puzzle.folder / "stub.py": percent.stub(puzzle.source())}
    for lang in LANGUAGES:
        folder = notebooks if lang == "en" else notebooks / lang
        out[folder / f"{puzzle.id}.ipynb"] = percent.dump(puzzle.notebook(lang))
    book = puzzle.folder.parent.parent / "book"
    if (book / "conf.py").is_file():
        out[book / "road" / f"{puzzle.id}.md"] = book_page(puzzle)
    return out


def book_page(puzzle: Puzzle) -> str:
    """Return the puzzle's page of the book: its statement, and what a learner starts from."""
    at = f"../../puzzles/{puzzle.id}"
    return (
        f"```{{include}} {at}/README.md\n:relative-images:\n```\n\n## What you start from\n\n"
        f"```{{literalinclude}} {at}/stub.py\n:language: python\n```\n"
    )


def solution_file(puzzle: Puzzle) -> str:
    """Return the solution as a file of its own: the cells marked as the solution, and TileLang's imports."""
    cells = percent.parse(percent.solution(puzzle.source()), f"{puzzle.id}/puzzle.py")
    solved = [c.source for c in cells if c.metadata.get("tilelab", {}).get("role") == "solution"]
    return (
        f'"""The solution of puzzle {puzzle.number}, {puzzle.title().lower()}. Generated from puzzle.py."""\n\n{_IMPORTS}\n\n'
        + "\n\n\n".join(solved)
        + "\n"
    )


def solved(puzzle: Puzzle, folder: Path) -> dict[Path, str]:
    """Return the solved notebooks of a puzzle, one for each language."""
    out = {}
    for lang in LANGUAGES:
        book = puzzle.notebook(lang, solved=True)
        check = f"puzzle.check({puzzle.spec.entry})"
        proven = [c for c in book["cells"] if c["cell_type"] == "code" and "".join(c["source"]).strip() == check]
        if not proven:
            raise InputError(f"{puzzle.id}/puzzle.py: no cell is {check}", fix="end the notebook with it")
        proven[-1]["source"] = [f"report = {check}\n", "assert report.passed and report.clean, report\n", "report"]
        out[folder / f"{puzzle.id}.{lang}.ipynb"] = percent.dump(book)
    return out


def main(argv: list[str] | None = None) -> int:
    """Write what differs, or only say what would."""
    parser = argparse.ArgumentParser(
        prog="python -m tilelab.course.generate", description="Make solutions, stubs and notebooks from the puzzles' sources."
    )
    parser.add_argument("only", nargs="*", metavar="PUZZLE", help="these puzzles alone, by number or name (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if something differs")
    parser.add_argument("--solved", type=Path, metavar="DIR", help="write solved notebooks into DIR and nothing else")
    parser.add_argument(
        "--notebooks", type=Path, default=None, metavar="DIR", help="where notebooks go (default: notebooks/ beside puzzles/)"
    )
    args = parser.parse_args(argv)
    stale = broken = 0
    for p in [puzzle(name) for name in args.only] or puzzles():
        if not (p.folder / "puzzle.py").is_file():
            continue  # a wheel: nothing to generate from
        folder = args.notebooks or p.folder.parent.parent / "notebooks"
        try:
            files = solved(p, args.solved) if args.solved else generated(p, folder)
        except InputError as e:  # one puzzle that is not whole does not stop the others
            print(f"{p.id}: {e}", file=sys.stderr)
            broken = 2
            continue
        for path, text in files.items():
            if path.is_file() and path.read_text("utf-8") == text:
                continue
            stale += 1
            print(f"{'differs' if args.check else 'wrote'} {path}")
            if not args.check:
                write_text(path, text)
    return broken or (1 if args.check and stale else 0)


if __name__ == "__main__":
    sys.exit(main())

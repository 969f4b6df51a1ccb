"""``tilelab puzzles list|new|stub|export``: the course as files."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

HELP = "List the puzzles, get a starter, make a puzzle of your own, or export assignments for a class."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=type(parser))
    listing = actions.add_parser("list", help="the puzzles in order, with your best score")
    listing.add_argument("--json", action="store_true", help="print a JSON list on stdout, and nothing else there")
    stub = actions.add_parser("stub", help="write a puzzle's starter")
    stub.add_argument("puzzle", metavar="PUZZLE", help="its number, its name (01_copy), or its folder")
    stub.add_argument("-o", "--output", metavar="FILE", help="a .py or .ipynb file. Default: stdout, as .py")
    stub.add_argument("--force", action="store_true", help="replace FILE if it exists")
    new = actions.add_parser("new", help="make a puzzle that passes its own checks, to be changed")
    new.add_argument("name", metavar="NAME", help="such as 61_my_puzzle, or my_puzzle for the next free number")
    new.add_argument("--kind", choices=("kernel", "debug", "layout"), default="kernel", help="what the learner writes. Default: kernel")
    new.add_argument("--folder", metavar="DIR", default="puzzles", help="where its folder goes. Default: puzzles")
    export = actions.add_parser("export", help="write nbgrader sources and release archives")
    export.add_argument("puzzles", metavar="PUZZLE", nargs="*", help="which. Default: all")
    export.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write into")
    for action in (listing, stub, export):
        action.add_argument("--lang", choices=("en", "zh"), default="en", help="the language of the texts. Default: en")


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    return {"list": _list, "stub": _stub, "new": _new, "export": _export}[args.action](args)


def _list(args: argparse.Namespace) -> int:
    from tilelab.course import progress, puzzles

    best = progress.best()
    rows = [
        {
            "id": p.id,
            "number": p.number,
            "part": p.part,
            "title": p.title(args.lang),
            "idea": p.idea(args.lang),
            "kind": p.spec.kind,
            "arch": p.spec.arch,
            "score": best.get(p.id, {}).get("score"),
            "passed": bool(best.get(p.id, {}).get("passed")),
        }
        for p in puzzles()
    ]
    if args.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    for row in rows:
        mark = "✓" if row["passed"] else " "
        score = "" if row["score"] is None else f"{row['score']:g}"
        print(f"{mark} {row['number']:>2} {row['id']:<20} {score:>5}  {row['title']}: {row['idea']}")
    return 0


def _stub(args: argparse.Namespace) -> int:
    from tilelab.course import percent
    from tilelab.course import puzzle as find
    from tilelab.errors import InputError
    from tilelab.files import write_text

    puzzle = find(args.puzzle)
    if args.output is None:
        print(puzzle.stub(), end="")
        return 0
    path = Path(args.output)
    if path.suffix not in (".py", ".ipynb"):
        raise InputError(f"{path}: a starter is a .py or an .ipynb file", fix="name it so")
    if path.exists() and not args.force:
        raise InputError(f"{path} exists", fix="give another name, or --force to replace it")
    write_text(path, puzzle.stub() if path.suffix == ".py" else percent.dump(puzzle.notebook(args.lang)))
    print(f"wrote {path}", file=sys.stderr)
    return 0


def _new(args: argparse.Namespace) -> int:
    from tilelab.course.authoring import new_puzzle

    folder = new_puzzle(args.name, Path(args.folder), args.kind)
    print(f"wrote {folder}. Grade its solution with: tilelab grade {folder} {folder / 'solution.py'}", file=sys.stderr)
    return 0


def _export(args: argparse.Namespace) -> int:
    from tilelab.course import puzzle as find
    from tilelab.course import puzzles
    from tilelab.course.authoring import export

    for p in [find(name) for name in args.puzzles] or puzzles():
        for path in export(p, Path(args.output), args.lang):
            print(f"wrote {path}", file=sys.stderr)
    return 0

"""``tilelab puzzles``: the course as files, a learner's progress, and what a class needs besides grading."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

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
    progress = actions.add_parser("progress", help="your results: show, export or forget them")
    progress.add_argument("--export", metavar="FILE", help="write them to FILE as JSON")
    progress.add_argument("--reset", metavar="PUZZLE", help="forget those of one puzzle, or of all of them: `--reset all`")
    commit = actions.add_parser("commit", help="make a key for a class and print the commitment to publish before the deadline")
    commit.add_argument("key", metavar="FILE", help="where the key goes; if it is there already, only its commitment is printed")
    verify = actions.add_parser("verify", help="grade a class again with the revealed key and compare")
    verify.add_argument("puzzle", metavar="PUZZLE", help="its number, its name (01_copy), or its folder")
    verify.add_argument("submissions", metavar="DIR", help="the folder of the submissions")
    verify.add_argument("--results", metavar="FILE", required=True, help="the results.jsonl that was published")
    verify.add_argument("--key", metavar="FILE", help="the key that was revealed")
    verify.add_argument("--commitment", metavar="HEX", help="what was published before the deadline")
    verify.add_argument("--only", metavar="STUDENT", help="the grade of one student alone")
    book = actions.add_parser("gradebook", help="enter the scores of a class into nbgrader's gradebook")
    book.add_argument("puzzle", metavar="PUZZLE", help="its number, its name (01_copy), or its folder")
    book.add_argument("--results", metavar="FILE", required=True, help="the results.jsonl that `tilelab grade --out` wrote")
    book.add_argument("--db", metavar="URL", default="sqlite:///gradebook.db", help="nbgrader's database. Default: sqlite:///gradebook.db")
    board = actions.add_parser("leaderboard", help="merge records of `tilelab grade --record` into a page")
    board.add_argument("records", metavar="RECORD", nargs="+", help="files that --record wrote")
    board.add_argument("-o", "--output", metavar="FILE", required=True, help="the page, an .html file")
    for action in (listing, stub, export):
        action.add_argument("--lang", choices=("en", "zh"), default="en", help="the language of the texts. Default: en")


def run(args: argparse.Namespace) -> int:
    """Do one action."""
    return _ACTIONS[args.action](args)


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


def _progress(args: argparse.Namespace) -> int:
    from tilelab.course import progress
    from tilelab.course import puzzle as find
    from tilelab.errors import InputError

    if args.export:
        count = progress.export(Path(args.export))
        print(f"wrote {count} events to {args.export}", file=sys.stderr)
    if args.reset:
        name = None if args.reset == "all" else find(args.reset).id
        if not progress.reset(name):
            raise InputError(f"{progress.home() / progress.FILE} cannot be written", fix="set TILELAB_HOME to a folder of yours")
        print(f"forgot the results of {name or 'all puzzles'}", file=sys.stderr)
    if not args.export and not args.reset:
        for name, e in progress.best().items():
            print(f"{'✓' if e['passed'] else ' '} {name:<24} {e['score']:>5g} / {e['max']:g}  {e['checks']} checks, {e['hints']} hints")
    return 0


def _commit(args: argparse.Namespace) -> int:
    from tilelab.grader.secret import load_key, new_key

    path = Path(args.key)
    key = load_key(path) if path.exists() else new_key(path)
    print(key.commitment)
    print(f"Publish this before the deadline, and {path} after it; until then show it to nobody.", file=sys.stderr)
    return 0


def _verify(args: argparse.Namespace) -> int:
    from tilelab.course import puzzle as find
    from tilelab.errors import InputError
    from tilelab.grader.classes import verify
    from tilelab.grader.secret import load_key

    spec = find(args.puzzle).spec
    path, folder = Path(args.results), Path(args.submissions)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder", fix="give the folder of the submissions")
    chosen = [r for r in _results(path, spec.id).values() if args.only in (None, r["student"])]
    if not chosen:
        raise InputError(f"{path} has no result of {args.only or spec.id}", fix="see the names in it")
    wrong = verify(spec, chosen, folder, load_key(Path(args.key)) if args.key else None, args.commitment)
    print("\n".join(wrong) if wrong else f"all {len(chosen)} grades are as published")
    return 1 if wrong else 0


def _gradebook(args: argparse.Namespace) -> int:
    from tilelab.course import puzzle as find
    from tilelab.course.gradebook import enter_scores

    puzzle = find(args.puzzle)
    students = enter_scores(puzzle, list(_results(Path(args.results), puzzle.id).values()), args.db)
    print(f"entered the scores of {len(students)} students", file=sys.stderr)
    return 0


def _results(path: Path, puzzle: str) -> dict[str, Any]:
    """The latest result of each submission to a puzzle."""
    from tilelab.errors import InputError
    from tilelab.grader.classes import read_results

    if not path.is_file():
        raise InputError(f"{path}: no such file", fix="give the results.jsonl that `tilelab grade --out` wrote")
    return {r["submission"]: r for r in read_results(path) if r["puzzle"] == puzzle}


def _leaderboard(args: argparse.Namespace) -> int:
    from tilelab.files import write_text
    from tilelab.grader.leaderboard import merge, page

    records = merge([Path(r) for r in args.records])
    write_text(Path(args.output), page(records))
    print(f"wrote {args.output}: {len(records)} records", file=sys.stderr)
    return 0


_ACTIONS = {
    "list": _list,
    "stub": _stub,
    "new": _new,
    "export": _export,
    "progress": _progress,
    "commit": _commit,
    "verify": _verify,
    "gradebook": _gradebook,
    "leaderboard": _leaderboard,
}

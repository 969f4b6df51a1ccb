"""``tilelab grade PUZZLE SUBMISSION…``: grade files, notebooks, or folders of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from tilelab.errors import InputError

HELP = """Grade submissions to a puzzle: exit status 0 if all of them pass, 1 if one does not.

A submission is a .py or .ipynb file, or a folder of them. It runs in a confined process of which only a Program comes
out; that is simulated here on inputs that nobody has seen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("puzzle", metavar="PUZZLE", help="its number, its name (01_copy), or its folder")
    parser.add_argument("submissions", metavar="SUBMISSION", nargs="+", help="a .py or .ipynb file, or a folder of them")
    parser.add_argument(
        "--device", choices=("sim", "cuda"), default="sim", help="where kernels run: the simulator, or the GPU that is here. Default: sim"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="decides the hidden cases. Default: a fresh one for each submission")
    parser.add_argument("--record", metavar="FILE", help="append a record of each grade, chained by hashes")
    parser.add_argument("--scheduler", metavar="ADDR", help="grade on the Dask cluster whose scheduler is at this address")
    parser.add_argument("--workers", type=int, metavar="N", help="processes on this machine. Default: one for each core")
    parser.add_argument("--out", metavar="DIR", help="grade a class: keep each result in DIR at once, go on where an earlier run ended, "
                        "and write grades.csv, grades.json and report.html")  # fmt: skip
    parser.add_argument("--key", metavar="FILE", help="draw each student's hidden cases with this key: see `tilelab puzzles commit`")
    parser.add_argument("--json", action="store_true", help="print a JSON list on stdout, and nothing else there")


def run(args: argparse.Namespace) -> int:
    """Grade and report."""
    from tilelab.course import puzzle as find
    from tilelab.grader.grading import grade
    from tilelab.grader.submission import files_of
    from tilelab.reports import plain

    if args.seed is not None and args.seed < 0:
        raise InputError(f"--seed {args.seed} is negative", fix="give a whole number from 0 up")
    if args.seed is not None and args.key:
        raise InputError("--seed and --key both decide the hidden cases", fix="give one of them")
    if args.workers is not None and args.workers < 1:
        raise InputError(f"--workers {args.workers} is no number of processes", fix="give 1 or more")
    puzzle = find(args.puzzle)
    paths = files_of(args.submissions)
    if args.out:
        return _class(args, puzzle, paths)
    if len(paths) == 1 and not args.scheduler and not args.key:
        reports = [grade(puzzle, paths[0], device=args.device, seed=args.seed)]  # a file that is no Python is an error of the command here
    else:
        reports = _many(args, puzzle, paths)
    if args.record:
        from tilelab.grader.record import append_records

        append_records(Path(args.record), reports, device=args.device)
    if args.json:
        print(json.dumps([plain(r.to_json()) for r in reports], ensure_ascii=False, allow_nan=False))
    else:
        print("\n\n".join(f"{r.submission}\n{r}" for r in reports))
        if len(reports) > 1:
            width = max(len(r.submission) for r in reports)
            print("\n" + "\n".join(f"{r.submission:<{width}}  {r.score:6.1f}  {'passed' if r.passed else _why(r)}" for r in reports))
    return 0 if all(r.passed and not any(f.severity == "error" for f in r.findings) for r in reports) else 1


def _many(args: argparse.Namespace, puzzle: Any, paths: list[Path]) -> list[Any]:
    from tilelab.grader.classes import jobs_of
    from tilelab.grader.pool import grade_many
    from tilelab.grader.secret import load_key

    key = load_key(Path(args.key)) if args.key else None
    folder = _folder(args.submissions, puzzle.id)
    seeds = [j.seed for j in jobs_of(puzzle.spec, folder, paths, key, args.seed)]
    done: dict[int, Any] = {}
    for i, report in grade_many(puzzle.spec, paths, device=args.device, seeds=seeds, scheduler=args.scheduler, workers=args.workers):
        done[i] = report
        _tell(len(done), len(paths))
    return [done[i] for i in range(len(paths))]


def _class(args: argparse.Namespace, puzzle: Any, paths: list[Path]) -> int:
    from tilelab.grader.class_report import write_reports
    from tilelab.grader.classes import grade_class, jobs_of
    from tilelab.grader.secret import load_key
    from tilelab.grader.similar import similar, works_of

    key = load_key(Path(args.key)) if args.key else None
    folder, out = _folder(args.submissions, puzzle.id), Path(args.out)
    if out.resolve().is_relative_to(folder.resolve()):
        raise InputError(f"--out {out} lies among the submissions", fix="give a folder elsewhere")
    jobs = jobs_of(puzzle.spec, folder, paths, key, args.seed)
    results = grade_class(puzzle.spec, jobs, out, device=args.device, scheduler=args.scheduler, workers=args.workers, progress=_tell)
    texts = {j.name: _text(j.path) for j in jobs}
    solution = _own(puzzle, "solution.py")
    pairs = similar([*works_of(results, texts), *([solution] if solution else [])], _own(puzzle, "stub.py"))
    for path in write_reports(out, puzzle.spec, results, pairs, key.commitment if key else ""):
        print(f"wrote {path}", file=sys.stderr)
    if args.json:
        print(json.dumps([r["report"] for r in results]))
    else:
        passed = sum(bool(r["report"]["passed"]) for r in results)
        print(f"{len(results)} submissions, {passed} passed; {len(pairs)} pairs are alike; see {out / 'report.html'}")
    return 0 if all(r["report"]["passed"] for r in results) else 1


def _folder(submissions: list[str], puzzle: str) -> Path:
    """The folder below which submissions have their names: the one that was given, or where they all lie.

    nbgrader's ``submitted/STUDENT/PUZZLE`` may be given as well: it is ``submitted`` then.
    """
    paths = [Path(s).absolute() for s in submissions]
    common = Path(os.path.commonpath([p if p.is_dir() else p.parent for p in paths]))
    return common.parents[1] if common.name == puzzle and len(common.parents) > 1 else common


def _own(puzzle: Any, file: str) -> Any:
    """A file of the puzzle's own (its starter, its solution) as one more work to compare with; None where it is not here."""
    from tilelab.grader.grading import own_program
    from tilelab.grader.normal import statements
    from tilelab.grader.similar import Work

    path = puzzle.folder / file
    if not path.is_file():
        return None
    try:
        found = statements(own_program(puzzle.spec, file))
    except InputError:  # a starter need not be whole
        found = ()
    return Work(name=f"({file})", statements=found, text=path.read_text("utf-8"))


def _text(path: Path) -> str:
    """The source of a submission, of a notebook its code; empty where it cannot be read."""
    try:
        text = path.read_text("utf-8")
        if path.suffix != ".ipynb":
            return text
        return "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code")
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _tell(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{done} of {total} graded", end="" if done < total else "\n", file=sys.stderr, flush=True)


def _why(report: object) -> str:
    """The first thing that failed, in a few words."""
    checks = getattr(report, "checks", ())
    first = next((c for c in checks if not c.passed), None)
    return f"{first.name}: {first.message}"[:100] if first else "not passed"

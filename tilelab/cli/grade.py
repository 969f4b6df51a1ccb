"""``tilelab grade PUZZLE SUBMISSION…``: grade files, notebooks, or folders of them."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

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
    parser.add_argument("--json", action="store_true", help="print a JSON list on stdout, and nothing else there")


def run(args: argparse.Namespace) -> int:
    """Grade and report."""
    from tilelab.course import puzzle as find
    from tilelab.grader.grading import grade
    from tilelab.grader.pool import grade_many
    from tilelab.grader.submission import files_of
    from tilelab.reports import plain

    if args.seed is not None and args.seed < 0:
        raise InputError(f"--seed {args.seed} is negative", fix="give a whole number from 0 up")
    puzzle = find(args.puzzle)
    paths = files_of(args.submissions)
    if len(paths) == 1 and not args.scheduler:
        reports = [grade(puzzle, paths[0], device=args.device, seed=args.seed)]  # a file that is no Python is an error of the command here
    else:
        reports = []
        for i, report in enumerate(grade_many(puzzle.spec, paths, device=args.device, seed=args.seed, scheduler=args.scheduler), 1):
            reports.append(report)
            if sys.stderr.isatty():
                print(f"\r{i} of {len(paths)} graded", end="" if i < len(paths) else "\n", file=sys.stderr, flush=True)
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


def _why(report: object) -> str:
    """The first thing that failed, in a few words."""
    checks = getattr(report, "checks", ())
    first = next((c for c in checks if not c.passed), None)
    return f"{first.name}: {first.message}"[:100] if first else "not passed"

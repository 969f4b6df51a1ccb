"""Grades on the GPU that is here: every puzzle's solution earns everything with ``--device cuda``, every wrong answer fails by name.

python tests/gpu/grades.py [--record FILE.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tilelab.course import puzzle, puzzles
from tilelab.files import write_text
from tilelab.grader.grading import grade
from tilelab.grader.record import versions

SEED = 11


def main() -> int:
    """Grade, print a line for each submission, and keep a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--jobs", type=int, default=4, help="submissions graded at a time: compiling takes most of it")
    args = parser.parse_args()
    work = [
        (p.id, file, fails)
        for p in puzzles()
        for file, fails in [("solution.py", ""), *((f"wrong/{w.file}", w.fails) for w in p.spec.wrong)]
    ]
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = list(pool.map(graded, work))
    for row in rows:
        print(f"{'ok  ' if row['ok'] else 'FAIL'} {row['puzzle']}/{row['submission']}: {row['score']} ({row['seconds']} s)")
        if not row["ok"]:
            print(row["text"])
    if args.record:
        kept = [{k: v for k, v in row.items() if k not in ("text", "seconds")} for row in rows]
        record = {"schema": "tilelab.gpu.grades", "version": 1, "seed": SEED, "versions": versions(), "grades": kept}
        write_text(args.record, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return 0 if all(r["ok"] for r in rows) else 1


def graded(work: tuple[str, str, str]) -> dict[str, object]:
    """Grade one submission on the GPU and say whether it ended as it should."""
    name, file, fails = work
    began = time.monotonic()
    p = puzzle(name)
    report = grade(p, p.folder / file, device="cuda", seed=SEED)
    failed = {c.name for c in report.checks if not c.passed} | {f.code for f in report.findings if f.severity == "error"}
    ok = fails in failed and not report.passed if fails else report.score == report.max
    return {
        "puzzle": name,
        "submission": file,
        "score": round(report.score, 1),
        "passed": report.passed,
        "fails": fails,
        "ok": ok,
        "basis": report.basis,
        "seconds": round(time.monotonic() - began, 1),
        "text": str(report),
    }


if __name__ == "__main__":
    sys.exit(main())

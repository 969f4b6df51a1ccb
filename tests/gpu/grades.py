"""Grades on the GPU that is here: every puzzle's solution earns everything with ``--device cuda``, every wrong answer fails by name.

python tests/gpu/grades.py [--record FILE.json]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tilelab.course import puzzle, puzzles
from tilelab.errors import TileLabError
from tilelab.files import write_text
from tilelab.grader.grading import grade
from tilelab.grader.record import versions

SEED = 11
_CHEATS = Path(__file__).resolve().parents[1] / "grader" / "cheats"
#: What could fool a grader that trusts what it finds in the GPU's memory.
GPU_CHEATS = [_CHEATS / f"{n}.py" for n in ("replays_its_output", "keeps_results_in_a_workspace", "skips_the_counted_size", "empty_kernel")]


def main() -> int:
    """Grade, print a line for each submission, and keep a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--only", help="puzzles, by number, with commas between. Default: all")
    parser.add_argument("--solutions", action="store_true", help="leave out wrong answers")
    parser.add_argument("--jobs", type=int, default=4, help="submissions graded at a time: compiling takes most of it")
    args = parser.parse_args()
    chosen = [puzzle(n) for n in args.only.split(",")] if args.only else puzzles()
    work = [(p.id, str(p.folder / "solution.py"), "") for p in chosen]
    if not args.solutions:
        work += [(p.id, str(p.folder / "wrong" / w.file), w.fails) for p in chosen for w in p.spec.wrong]
    if not args.only:
        work += [("01_copy", str(f), f.read_text().split("\n", 1)[0].removeprefix("# fails: ")) for f in GPU_CHEATS]
    rows: list[dict[str, object]] = []
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(graded, w) for w in work]):
            row = future.result()
            rows.append(row)
            speed = row["counts"].get("speed", {}).get("value") if "counts" in row else None
            timed = f", {speed:.2f} of the baseline" if speed else ""
            print(
                f"{'ok  ' if row['ok'] else 'FAIL'} {row['puzzle']}/{row['submission']}: {row['score']}{timed} ({row['seconds']} s)",
                flush=True,
            )
            if not row["ok"]:
                print(row["text"], flush=True)
            if args.record:  # a machine may be taken away in the middle
                record(args.record, rows)
    return 0 if all(r["ok"] for r in rows) else 1


def record(path: Path, rows: list[dict[str, object]]) -> None:
    """Write what is graded so far."""
    kept = [
        {k: v for k, v in row.items() if k not in ("text", "seconds")} for row in sorted(rows, key=lambda r: (r["puzzle"], r["submission"]))
    ]
    said = {"schema": "tilelab.gpu.grades", "version": 1, "seed": SEED, "versions": versions(), "grades": kept}
    write_text(path, json.dumps(said, indent=1, ensure_ascii=False) + "\n")


def graded(work: tuple[str, str, str]) -> dict[str, object]:
    """Grade one submission on the GPU and say whether it ended as it should."""
    name, file, fails = work
    began = time.monotonic()
    p = puzzle(name)
    try:
        report = grade(p, file, device="cuda", seed=SEED)
    except TileLabError as e:  # a GPU too old for this puzzle, say
        return {"puzzle": name, "submission": _short(file), "score": None, "passed": False, "fails": fails, "ok": False, "basis": "",
                "counts": {}, "seconds": round(time.monotonic() - began, 1), "text": str(e)}  # fmt: skip
    failed = {c.name for c in report.checks if not c.passed} | {f.code for f in report.findings if f.severity == "error"}
    ok = fails in failed and not report.passed if fails else report.passed and report.clean
    return {
        "puzzle": name,
        "submission": _short(file),
        "score": round(report.score, 1),
        "passed": report.passed,
        "fails": fails,
        "ok": ok,
        "counts": {n: {"value": f.value, "points": round(f.points, 1)} for n, f in report.counts.items()},
        "basis": report.basis,
        "seconds": round(time.monotonic() - began, 1),
        "text": str(report),
    }


def _short(file: str) -> str:
    path = Path(file)
    return path.name if path.parent.name not in ("wrong", "cheats") else f"{path.parent.name}/{path.name}"


if __name__ == "__main__":
    sys.exit(main())

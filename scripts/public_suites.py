"""Runs public TileLang scripts and test suites as they are, in the simulator, and counts what comes of it.

    python scripts/public_suites.py FOLDER [--out FILE.json] [--only TEXT …] [--seconds S] [--lock FILE]
    python scripts/public_suites.py --merge FILE.json … --table tests/runtime/PUBLIC.md

FOLDER holds TileLang's ``examples/`` and ``testing/`` (its source distribution has both) or other folders of scripts. Scripts that have a
main part run under ``tilelab run``, ``test_*.py`` under the pytest plugin; each in a process of its own with a limit of time. A summary is
printed; the record has one row a script or test. Nothing is written into FOLDER.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = str(Path(__file__).resolve().parent)
#: what a failure's text holds → the kind it is counted as; the first that fits
KINDS: Sequence[tuple[str, str]] = (
    (r"^Timeout", "over the limit of time"),
    (r"ModuleNotFoundError|No module named|cannot import name|CuTeDSL backend requires", "needs a package that is not here"),
    (r"TL703", "refused by name: not simulated (TL703)"),
    (r"TL70[12]|TL4\d\d|TL5\d\d", "refused by TileLang (TL701, TL702, layouts, budgets)"),
    (r"no machine code|CUDA graphs|not simulate|a real GPU|TileLab simulates", "asks for machine code or a device: refused in words"),
    (r"'SimAdapter' object has no attribute|'SimKernel' object has no attribute", "looks into TileLang's native adapter"),
    (r"in the simulator|TileLab simulates", "refused in words"),
)


# ------------------------------------------------------------------------------------------------ the pytest plugin
def pytest_addoption(parser: Any) -> None:
    """Add the limit of one test."""
    parser.addoption("--one-test-seconds", type=float, default=20.0)


def pytest_runtest_protocol(item: Any) -> None:
    """Start the clock of one test."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, item.config.getoption("--one-test-seconds"))


def pytest_runtest_logreport(report: Any) -> None:
    """Note one outcome, at once, so that a killed run keeps what it had."""
    if report.when == "call" or report.outcome != "passed":
        signal.setitimer(signal.ITIMER_REAL, 0)
        text = str(report.longrepr[-1]) if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
        row = {"test": report.nodeid.rpartition("::")[2], "outcome": report.outcome, "text": text, "seconds": round(report.duration, 2)}
        with Path(os.environ["TILELAB_OUTCOMES"]).open("a") as out:
            out.write(json.dumps(row) + "\n")


def _too_long(*_: object) -> None:
    raise TimeoutError("over the limit of time")


# ------------------------------------------------------------------------------------------------ running
def run_script(path: Path, seconds: float) -> list[dict[str, Any]]:
    """Run one script; a row."""
    status, text, took = _process([sys.executable, "-m", "tilelab", "run", path.name], path.parent, seconds)
    if status is None:
        return [{"outcome": "failed", "text": "Timeout", "seconds": took}]
    return [{"outcome": "passed" if status == 0 else "failed", "text": "" if status == 0 else text[-3000:], "seconds": took}]


def run_tests(path: Path, seconds: float, one: float, only: Sequence[str] = (), simulated: bool = True) -> list[dict[str, Any]]:
    """Run one file of tests, or some tests of it; a row a test. Without ``simulated`` they run as on any machine with no GPU."""
    with tempfile.TemporaryDirectory() as scratch:
        outcomes = Path(scratch, "outcomes")
        outcomes.touch()
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "public_suites", "-p", "no:cacheprovider",
            f"--one-test-seconds={one}",
            *(("-p", "tilelab.pytest_plugin", "--tilelab-sim") if simulated else ()),
            *(f"{path.name}::{name}" for name in only), *(() if only else (path.name,)),
        ]  # fmt: skip
        status, text, took = _process(
            command,
            path.parent,
            seconds,
            {"TILELAB_OUTCOMES": str(outcomes), "PYTHONPATH": os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))},
        )
        rows = [json.loads(line) for line in outcomes.read_text().splitlines()]
    for row in rows:
        row["text"] = "Timeout" if "over the limit of time" in row["text"] else row["text"][-3000:]
    if status is None:
        rows.append({"test": "(the rest)", "outcome": "failed", "text": "Timeout", "seconds": took})
    elif not rows and status != 5:
        rows.append({"test": "(collection)", "outcome": "failed", "text": text[-3000:], "seconds": took})
    return rows


def _process(command: list[str], folder: Path, seconds: float, more: dict[str, str] | None = None) -> tuple[int | None, str, float]:
    """Run a command; (status or None if it took too long, what it wrote, seconds)."""
    began = time.monotonic()
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg", **(more or {})}
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=said, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            status = None
        said.seek(0)
        return status, said.read(), round(time.monotonic() - began, 2)


def mark_alike(path: Path, rows: list[dict[str, Any]], seconds: float, one: float) -> None:
    """Tell apart the tests that fail in the same words without the simulator: theirs is another release, or another machine."""
    failed = [r for r in rows if r["outcome"] == "failed" and kind_of(r) == "fails" and not r["test"].startswith("(")]
    if not failed:
        return
    plain = {r["test"]: r for r in run_tests(path, seconds, one, [r["test"] for r in failed], simulated=False)}
    for row in failed:
        other = plain.get(row["test"])
        if other is not None and other["outcome"] == "failed" and _said(other["text"]) == _said(row["text"]):
            row["outcome"] = "alike"


def _said(text: str) -> str:
    """The first line of an error, without addresses."""
    lines = [line for line in text.splitlines() if line.startswith("E  ")] or text.strip().splitlines()[-1:]
    return re.sub(r"0x[0-9a-f]+", "", lines[0]) if lines else ""


def kind_of(row: dict[str, Any]) -> str:
    """Name the kind of a row, for the counts."""
    if row["outcome"] != "failed":
        return "fails alike without the simulator" if row["outcome"] == "alike" else str(row["outcome"])
    return next((kind for pattern, kind in KINDS if re.search(pattern, row["text"])), "fails")


def _files(folder: Path, only: Sequence[str]) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(folder))
        if only and not any(o in name for o in only):
            continue
        if path.name.startswith("test_") or "__main__" in path.read_text(errors="replace") or not re.match(r"conftest|__init__", path.name):
            found.append(path)
    return found


@contextlib.contextmanager
def _turn(lock: str | None) -> Iterator[None]:
    """Wait for others that use the same lock."""
    if lock is None:
        yield
        return
    with Path(lock).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _print(rows: Sequence[dict[str, Any]]) -> None:
    for title, of in _halves(rows):
        print(f"{title}: {len(of)}", *(f"  {n:5} {k}" for k, n in Counter(r["kind"] for r in of).most_common()), sep="\n")


def _halves(rows: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Scripts, tests that come with examples, and tests by the folder they lie in."""
    halves: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        parts = Path(row["file"]).parts
        title = "scripts" if "test" not in row else "tests of examples" if parts[0] == "examples" else f"tests of {parts[-2]}"
        halves.setdefault(title, []).append(row)
    return sorted(halves.items(), key=lambda half: (half[0] != "scripts", half[0] != "tests of examples", half[0]))


def merged(files: Sequence[Path]) -> list[dict[str, Any]]:
    """Join rows; of a file that ran several times, the rows of its last run count."""
    by_file: dict[str, list[dict[str, Any]]] = {}
    for path in files:
        run: dict[str, list[dict[str, Any]]] = {}
        for row in json.loads(path.read_text()):
            run.setdefault(row["file"], []).append({**row, "kind": kind_of(row)})
        by_file.update(run)
    return [row for name in sorted(by_file) for row in by_file[name]]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the counts as a page of Markdown, with the reasons for what is refused by name."""
    from importlib.metadata import version

    kinds = [k for k, _ in Counter(r["kind"] for r in rows).most_common()]
    kinds.sort(key=lambda k: k != "passed")
    out = [
        "# Public TileLang scripts and suites in the simulator", "",
        "TileLang's own examples and tests (its release 0.1.14, the last whose source distribution holds them), run as they are by",
        f"`scripts/public_suites.py` with TileLang {version('tilelang')}, sm_90, on two shared cores, with a limit of a minute a file:",
        "`tilelab run` for scripts, the pytest plugin with `--tilelab-sim` for tests. This page is written by that script.", "",
        f"{len({r['file'] for r in rows})} files, {len(rows)} scripts and tests.", "",
        f"| | {' | '.join(kinds)} |", f"|---|{'---:|' * len(kinds)}",
    ]  # fmt: skip
    for title, of in [*_halves(rows), ("all", list(rows))]:
        count = Counter(r["kind"] for r in of)
        out.append(f"| {title} | {' | '.join(str(count[k] or '') for k in kinds)} |")
    out += ["", "What is refused by name (TL703):", ""]
    reasons = Counter(
        m[1].strip()
        for r in rows
        if "TL703" in r["kind"] and (m := re.search(r"TL703: (.*?)(?: is not simulated| is not supported| \(it is )", r["text"]))
    )
    out += [f"- {reason}: {n}" for reason, n in reasons.most_common()]
    out += ["", "What fails, and is not told apart above:", ""]
    fails = Counter((Path(r["file"]).name, _reason(r["text"])) for r in rows if r["kind"] == "fails")
    out += [f"- `{name}`{f' ({n})' if n > 1 else ''}: {reason}" for (name, reason), n in sorted(fails.items())]
    return "\n".join(out) + "\n"


def _reason(text: str) -> str:
    """The error in one short line."""
    said = re.sub(r"0x[0-9a-f]+|/\S*/", "", _said(text)).removeprefix("E ").strip()
    return said.replace("|", "/")[:140] or "ends without a word"


def main() -> int:
    """Run all, print the counts, write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="the scripts and tests to run")
    parser.add_argument("--merge", type=Path, nargs="+", help="run nothing: join the rows of earlier runs, a file's last run counting")
    parser.add_argument("--table", type=Path, help="write the counts as Markdown")
    parser.add_argument("--only", nargs="*", default=[], help="run only files whose name holds one of these")
    parser.add_argument("--list", type=Path, help="a file that names the files to run, one a line")
    parser.add_argument("--seconds", type=float, default=60, help="limit of one script or file of tests")
    parser.add_argument("--test-seconds", type=float, default=15, help="limit of one test")
    parser.add_argument("--lock", help="a file that is locked while something runs, for machines that others use too")
    parser.add_argument("--out", type=Path, help="write the rows here")
    args = parser.parse_args()
    if args.merge:
        rows = merged(args.merge)
        if args.table:
            args.table.write_text(table(rows), encoding="utf-8")
        _print(rows)
        return 0
    if args.folder is None:
        parser.error("name a folder")
    files = [args.folder / line for line in args.list.read_text().split()] if args.list else _files(args.folder, args.only)
    rows: list[dict[str, Any]] = []
    for path in files:
        is_test = path.name.startswith("test_")
        with _turn(args.lock):
            done = run_tests(path.resolve(), args.seconds, args.test_seconds) if is_test else run_script(path.resolve(), args.seconds)
            if is_test:
                mark_alike(path.resolve(), done, args.seconds, args.test_seconds)
        for row in done:
            row.update(file=str(path.relative_to(args.folder)), kind=kind_of(row))
        rows += done
        print(f"{path.relative_to(args.folder)}: " + ", ".join(f"{n} {k}" for k, n in Counter(r["kind"] for r in done).items()), flush=True)
        if args.out:
            args.out.write_text(json.dumps(rows, indent=1) + "\n")
    if args.table:
        args.table.write_text(table(rows), encoding="utf-8")
    _print(rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

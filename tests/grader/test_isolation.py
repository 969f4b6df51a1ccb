"""Submissions that misbehave: each fails with its own reason, in a process that is confined, and harms nothing."""

import os
import sys
from pathlib import Path

import pytest

from tilelab.course import puzzle
from tilelab.grader.grading import grade
from tilelab.grader.isolate import Captured, capture_isolated, understand
from tilelab.grader.sandbox import Limits
from tilelab.grader.submission import read_submission
from tilelab.grader.wire import END, ERROR, GUARDS, PROGRAM, frame

CHEATS = sorted(Path(__file__).with_name("cheats").glob("*.py"))
QUICK = Limits(cpu_seconds=4, wall_seconds=15, memory_bytes=256 << 20)  # a busy machine may still not cut what ends by itself
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server is for Linux")


def reason(path: Path) -> str:
    return path.read_text().split("\n", 1)[0].removeprefix("# fails: ")


@pytest.mark.parametrize("path", CHEATS, ids=lambda p: p.stem)
def test_a_cheat_fails_with_its_own_reason(path):
    report = grade(puzzle("1"), path, seed=1, limits=QUICK)
    assert not report.passed
    assert report.score == 0 or (path.stem == "skips_the_counted_size" and report.score < 60)
    said = " ".join([*(f"{c.name} {c.message}" for c in report.checks if not c.passed), *(f.code for f in report.findings)])
    assert reason(path) in said, said
    assert not Path("/tmp/left_behind_by_a_submission").exists()


def test_the_guards_hold_and_are_named():
    captured = capture_isolated(read_submission(CHEATS[0].with_name("exits.py"), "copy"), "copy", [{"N": 1}], QUICK)
    assert {"limits", "no-new-privileges"} <= set(captured.guards)
    report = grade(puzzle("1"), CHEATS[0].with_name("exits.py"), seed=1, limits=QUICK)
    assert all(name in report.basis for name in captured.guards)


def test_a_submission_sees_neither_the_environment_nor_the_solutions(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_OF_THE_TEACHER", "42")
    spy = tmp_path / "spy.py"
    spy.write_text("import os\nraise RuntimeError(sorted(os.environ), os.getcwd())\n")
    message = grade(puzzle("1"), spy, seed=1, limits=QUICK).checks[0].message
    assert "SECRET_OF_THE_TEACHER" not in message
    assert os.getcwd() not in message


def test_the_server_survives_its_children():
    good = puzzle("1").folder / "solution.py"
    for name in ("crashes", "kills_the_grader", "writes_to_the_channel"):
        grade(puzzle("1"), CHEATS[0].with_name(f"{name}.py"), seed=1, limits=QUICK)
    assert len(capture_isolated(read_submission(good, "copy"), "copy", [{"N": 5}]).programs) == 1


def understood(data: bytes, **answer) -> Captured:
    return understand({"status": 0, "cut": "", "output": "", **answer}, data, 1, QUICK)


G, P, Z = frame(GUARDS, ["limits"]), frame(PROGRAM, b"{}"), frame(END)


@pytest.mark.parametrize(
    ("data", "answer", "expected"),
    [
        (G, {"cut": "time"}, "time"),
        (G, {"status": -24}, "time"),  # SIGXCPU
        (G, {"status": -11}, "crash"),
        (G, {"status": 7}, "exit"),
        (G, {"cut": "output"}, "output"),
        (G + P + Z, {"printed_bytes": 1 << 20}, "output"),
        (G, {"cut": "result"}, "result"),
        (G + b"junk" * 5, {}, "channel"),
        (G + P[:-1], {}, "channel"),
        (G + P + P + Z, {}, "channel"),
        (G + Z, {}, "channel"),
        (G + frame(ERROR, {"reason": "raised", "message": "m", "fix": "", "line": 3, "file": "f"}), {}, "raised"),
    ],
)
def test_raw_results_are_understood(data, answer, expected):
    assert understood(data, **answer).failure.reason == expected


def test_a_proper_result_is_let_through():
    captured = understood(G + P + Z)
    assert captured.failure is None
    assert captured.programs == (b"{}",)
    assert captured.guards == ("limits",)


def test_a_fresh_process_does_the_same_where_there_is_no_fork_server(monkeypatch):
    from tilelab.grader import isolate

    monkeypatch.setattr(isolate, "can_fork", lambda: False)
    good = read_submission(puzzle("1").folder / "solution.py", "copy")
    captured = capture_isolated(good, "copy", [{"N": 5}, {"N": 7}], Limits(cpu_seconds=60, wall_seconds=120))
    assert captured.failure is None
    assert len(captured.programs) == 2
    exits = read_submission(CHEATS[0].with_name("exits.py"), "copy")
    bad = capture_isolated(exits, "copy", [{"N": 5}], Limits(cpu_seconds=60, wall_seconds=120))
    assert bad.failure.reason == "exit"

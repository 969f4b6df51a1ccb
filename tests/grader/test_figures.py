"""Figures that need no run: overlap of pipelined loops, launches and blocks; and schedules and fixes that do not hold."""

import importlib.util

import pytest

from tilelab.compiler import capture
from tilelab.course import puzzle
from tilelab.grader.grading import grade
from tilelab.grader.points import _launched, _predicted
from tilelab.sim import simulate


def program(number, file="solution.py", **sizes):
    p = puzzle(number)
    spec = importlib.util.spec_from_file_location("learners_work", p.folder / file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return capture(getattr(module, p.spec.entry), consts=sizes)


@pytest.mark.parametrize(
    ("number", "sizes"),
    [(1, {"N": 1000}), (32, {"M": 20, "N": 264, "K": 200}), (33, {"M": 130, "N": 136, "K": 64, "workers": 5})],
)
def test_launches_and_blocks_are_those_of_a_run(number, sizes):
    one = program(number, **sizes)
    counted = simulate(one, {}).counts
    assert _launched(one, {}) == {n: counted[n] for n in ("launches", "blocks")}


@pytest.mark.parametrize(("stages", "overlap"), [(0, 0), (1, 0), (2, 1), (4, 3)])
def test_overlap_is_that_of_the_stages(stages, overlap):
    spec = puzzle(26).spec
    one = program(26, **{**spec.count_sizes, "num_stages": stages})
    assert _predicted(spec, one, {"overlap"})["overlap"] == overlap


def test_a_schedule_that_overwrites_what_is_still_to_be_read_fails_by_name():
    report = grade(puzzle(28), puzzle(28).folder / "wrong" / "write_after_read.py", seed=1)
    assert not report.passed
    (found,) = [f for f in report.findings if f.severity == "error"]
    assert found.code == "TL209"
    assert "overwrites what it read in q" in found.message


def test_a_broken_kernel_with_right_values_earns_nothing_before_it_lowers():
    report = grade(puzzle(20), puzzle(20).folder / "stub.py", seed=1)
    assert report.score == 0
    assert [c.name for c in report.checks if not c.passed] == ["lowers for sm_80"]
    assert "TL402" in {f.code for f in report.findings}

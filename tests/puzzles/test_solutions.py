"""Every puzzle's solution earns everything, whatever is drawn, and its starter runs and says what is wrong."""

import dataclasses

import numpy as np
from which import EACH, GRADED

from tilelab.grader.draw import draw_cases, draw_inputs
from tilelab.grader.grading import grade


@GRADED
def test_the_solution_earns_everything(p):
    report = grade(p, p.folder / "solution.py", seed=11)
    assert report.passed, report
    assert report.clean, report
    assert report.score == report.max, report
    assert not [f for f in report.findings if f.severity == "error"]
    if p.spec.kind == "debug":
        assert report.counts["diff"].value == p.spec.debug.best, "[debug] best is what the solution changes"


@GRADED
def test_the_solution_passes_whatever_is_drawn(p):
    drawn = dataclasses.replace(p.spec.draw, count=2 * p.spec.draw.count)
    spec = dataclasses.replace(p.spec, always=() if drawn.count else p.spec.always[:1], draw=drawn)
    assert grade(spec, p.folder / "solution.py", seed=1).passed


@GRADED
def test_the_starter_runs_and_fails_instructively(p):
    report = grade(p, p.folder / "stub.py", seed=11)
    assert not report.passed
    assert report.score < 60, report
    assert not any(c.name.startswith("capture") for c in report.checks), report  # it captures
    assert report.first_wrong is not None or any(f.severity == "error" for f in report.findings) or p.spec.kind == "layout", report
    assert report.advice


@EACH
def test_the_oracle_is_float64(p):
    from tilelab.grader.judge import expected

    if p.spec.layout is not None:
        return
    for case in draw_cases(p.spec, 5):
        wanted = expected(p.spec, case, draw_inputs(p.spec, case)).outputs
        for t in p.spec.returns:
            assert wanted[t.name].shape == t.extents(case.sizes)
            assert wanted[t.name].dtype.kind == "f" or not t.dtype.startswith(("float", "bfloat"))
            assert wanted[t.name].dtype in (np.float64, np.int64, np.int32, np.int8, np.uint8, np.uint32, bool), wanted[t.name].dtype

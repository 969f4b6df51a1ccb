"""Every wrong answer that is shipped fails with the finding or the check that its name promises."""

import pytest
from which import EACH, WRONG

from tilelab.grader.grading import grade

_EXEMPT = ("38_production_gemm", "60_moe_layer")  # production: every kernel that is right is a good answer


@WRONG
def test_a_wrong_answer_fails_by_name(p, wrong):
    report = grade(p, p.folder / "wrong" / wrong.file, seed=11)
    assert not report.passed
    assert report.score < 60
    failed = {c.name for c in report.checks if not c.passed}
    assert wrong.fails in {f.code for f in report.findings if f.severity == "error"} | failed, report


@EACH
def test_every_wrong_answer_is_declared_and_there_are_two(p):
    if not (p.folder / "puzzle.py").is_file():
        pytest.fail("the wrong answers are in the repository")
    assert {w.file for w in p.spec.wrong} == {f.name for f in (p.folder / "wrong").glob("*.py")}
    assert len(p.spec.wrong) >= 2 or p.id in _EXEMPT

"""Which puzzles the tests of the course run over; grading all of them is for the slow tier, a few stand for them in the quick one."""

import pytest

from tilelab.course import puzzles

ALL = puzzles()
_QUICK = ("01_copy", "07_row_sum", "25_tiled_gemm")


def _slow(p):
    return () if p.id in _QUICK else pytest.mark.slow


EACH = pytest.mark.parametrize("p", ALL, ids=lambda p: p.id)
GRADED = pytest.mark.parametrize("p", [pytest.param(p, id=p.id, marks=_slow(p)) for p in ALL])
WRONG = pytest.mark.parametrize(
    ("p", "wrong"), [pytest.param(p, w, id=f"{p.id}-{w.file}", marks=_slow(p)) for p in ALL for w in p.spec.wrong]
)

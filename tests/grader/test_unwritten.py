"""What a kernel leaves unwritten: said as such, unchanged where it came with values, garbage where it did not."""

import numpy as np
import pytest

from tilelab import ir
from tilelab.build import _garbage
from tilelab.course import puzzle
from tilelab.grader.draw import draw_cases, draw_inputs
from tilelab.grader.grading import grade
from tilelab.grader.submission import from_text

EMPTY = """
@tilelang.jit
def {signature}
    with T.Kernel(1, threads=32):
        T.evaluate(0)
"""
HEAD = "import tilelang\nimport tilelang.language as T\n"


def emptied(number, signature):
    p = puzzle(number)
    return grade(p, from_text(HEAD + EMPTY.format(signature=signature), p.spec.entry), seed=3)


def test_an_argument_that_is_only_written_and_was_not():
    report = emptied(0, 'who_am_i(out):\n    N = T.const("N")\n    out: T.Tensor[[N], "int32"]')
    assert report.score == 0
    assert report.checks[0].message == "out is never written (all 32 elements are wrong)"
    assert report.first_wrong.index == (0,)


def test_an_argument_that_is_read_and_written_keeps_its_values():
    p = puzzle(11)
    report = emptied(11, 'histogram(X, H):\n    N = T.const("N")\n    X: T.Tensor[[N], "int32"]\n    H: T.Tensor[[64], "int32"]')
    case = draw_cases(p.spec, 3)[0]
    drawn = draw_inputs(p.spec, case)
    only = int(drawn["X"][0])  # N = 1: one counter goes up by one
    assert report.first_wrong.index == (only,)
    assert report.first_wrong.got == drawn["H"][only] == report.first_wrong.expected - 1


def test_a_nan_that_never_reaches_the_outputs_is_no_error():
    p = puzzle(16)
    source = (p.folder / "solution.py").read_text()
    guarded = 'x[i, j] = T.if_then_else(j < N, X[bx * rows + i, j], -T.infinity("float32"))'
    assert guarded in source
    rows = source.replace(guarded, guarded.replace("j < N", "j < N and bx * rows + i < M"))  # rows beyond M become −∞ − (−∞)
    report = grade(p, from_text(rows, "softmax"), seed=3)
    assert report.score == 100
    assert [f.severity for f in report.findings if f.code == "TL301"] == ["info"]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "int8"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 5)])
def test_garbage_shows(dtype, shape):
    x = ir.Buffer(
        name="x", data=ir.Var(name="x", dtype="handle"), dtype=dtype, scope="global", strides=(),
        shape=tuple(ir.Const(value=n, dtype="int32") for n in shape),
    )  # fmt: skip
    got = _garbage(x)
    assert got.shape == shape
    values = got.astype(np.float64)
    assert (np.isnan(values) | (values == -1)).all()

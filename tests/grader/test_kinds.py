"""Kinds of puzzles: each template passes its own checks, and the points of fixes and layouts are what they should be."""

import dataclasses
import shutil

import numpy as np
import pytest

from tilelab import ir
from tilelab.course import puzzle
from tilelab.course.authoring import new_puzzle
from tilelab.errors import InputError
from tilelab.grader.grading import grade, grade_kernel
from tilelab.grader.normal import changed, statements
from tilelab.grader.schema import load_spec


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A new puzzle of each kind."""
    root = tmp_path_factory.mktemp("puzzles")
    return {kind: puzzle(new_puzzle(f"my_{kind}", root, kind)) for kind in ("kernel", "debug", "layout")}


@pytest.mark.parametrize("kind", ["kernel", "debug", "layout"])
def test_a_template_passes_its_own_checks(made, kind):
    p = made[kind]
    report = grade(p, p.folder / "solution.py", seed=3)
    assert (report.score, report.max, report.clean) == (100, 100, True), report
    assert len(p.spec.wrong) >= 2
    for wrong in p.spec.wrong:
        report = grade(p, p.folder / "wrong" / wrong.file, seed=3)
        failed = {c.name for c in report.checks if not c.passed} | {f.code for f in report.findings if f.severity == "error"}
        assert wrong.fails in failed, report
        assert report.score < 60
    starter = grade(p, p.folder / "stub.py", seed=3)
    assert not starter.passed
    assert starter.advice
    assert [len(p.prose(lang).hints) for lang in ("en", "zh")] == [3, 3]


# --------------------------------------------------------------------------------------------------------- fixes
def edited(p, tmp_path, *edits):
    text = (p.folder / "solution.py").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "mine.py"
    path.write_text(text)
    return path


def test_a_larger_change_earns_less_and_a_rewrite_nothing(made, tmp_path):
    p = made["debug"]
    assert grade(p, p.folder / "solution.py", seed=1).counts["diff"].value == 1
    other = edited(p, tmp_path, ("threads=128", "threads=256"))
    report = grade(p, other, seed=1)
    assert report.counts["diff"].value == 2
    assert 75 < report.score < 100
    assert "changes 2 statements, the smallest known 1" in " ".join(report.advice)
    rewrite = tmp_path / "rewrite.py"
    rewrite.write_text(
        "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit\ndef my_debug(A):\n    N = T.const('N')\n    A: T.Tensor[[N], 'float32']\n"
        "    B = T.empty((N,), 'float32')\n    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:\n        a = T.alloc_fragment((64,), 'float32')\n"
        "        T.copy(A[bx * 64], a)\n        for i in T.Parallel(64):\n            a[i] = a[i] + a[i]\n        T.copy(a, B[bx * 64])\n    return B\n"
    )
    report = grade(p, rewrite, seed=1)
    assert report.passed
    assert report.counts["diff"].points == 0
    assert report.score == 75


def test_names_and_formatting_are_no_change(made, tmp_path):
    p = made["debug"]
    mine = edited(
        p, tmp_path, ("bx", "blk"), ("for i in", "for lane in"), ("+ i", "+ lane"), ("    return B", "    # done\n\n    return B")
    )
    report = grade(p, mine, seed=1)
    assert report.score == 100, report


def test_the_size_of_a_change_is_a_distance(made):
    def program(*names):
        body = tuple(ir.Eval(value=ir.Const(dtype="int32", value=n)) for n in names)
        return ir.Program(name="p", level="tile", params=(), body=body)

    assert statements(program(1, 2)) != statements(program(2, 1))
    for a, b, distance in [
        ((1, 2, 3), (1, 2, 3), 0),
        ((1, 2, 3), (1, 9, 3), 1),
        ((1, 2, 3), (1, 3), 1),
        ((1, 2), (2, 1), 2),
        ((), (4, 4), 2),
    ]:
        assert changed(program(*a), program(*b)) == changed(program(*b), program(*a)) == distance


def test_a_starter_that_cannot_be_captured_is_the_authors_fault(made, tmp_path):
    p = made["debug"]
    folder = tmp_path / p.id
    shutil.copytree(p.folder, folder)
    (folder / "stub.py").write_text("my_debug = 3\n")
    with pytest.raises(InputError, match=r"its stub\.py cannot be captured"):
        grade(load_spec(folder), p.folder / "solution.py", seed=1)


# ------------------------------------------------------------------------------------------------------- layouts
def layout_text(expression: str, shape: str = "(M, N)") -> str:
    return f"import tilelang.language as T\n\n\ndef my_layout(M, N):\n    return T.Layout({shape}, lambda i, j: {expression})\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def my_layout(M, N):\n    return 3\n", "it returned int, which is no layout"),
        ("def my_layout(M, N):\n    return None\n", "it returned NoneType, which is no layout"),
        ("my_layout = 3\n", "it is int, not a function of the sizes"),
        ("def my_layout(M, N):\n    raise ValueError('no')\n", "no"),
        (layout_text("i * N + j", "(M, N + 1)"), "returns a layout of 32×33; it should be 32×32"),
        (layout_text("i * N + j + 10000000"), "no block has so much room"),
        (layout_text("i * N + j - 5"), "which does not exist"),
        (layout_text("i"), "both at address 0"),
        (
            "import tilelang.language as T\n\n\ndef my_layout(M, N):\n    return T.Fragment((M, N), forward_fn=lambda i, j: (j, i))\n",
            "returns a fragment (T.Fragment); it should be a layout of shared memory",
        ),
        ("import tilelang\nimport tilelang.language as T\n@tilelang.jit\ndef my_layout(M, N):\n    pass\n", "not a function of the sizes"),
    ],
)
def test_what_is_no_such_layout_is_said(made, tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    report = grade(made["layout"], tmp_path / "mine.py", seed=1)
    assert (report.score, report.passed) == (0, False)
    assert said in " ".join(c.message for c in report.checks), report


def test_padding_is_right_too_and_costs_bytes(made, tmp_path):
    (tmp_path / "mine.py").write_text(layout_text("i * (N + 1) + j"))
    report = grade(made["layout"], tmp_path / "mine.py", seed=1)
    assert report.passed
    assert report.counts["smem_bytes"].value == 4 * (31 * 33 + 32)
    assert 75 < report.score < 100


def test_tilelabs_own_layouts_and_a_notebooks_functions_count_as_well(made):
    from tilelab.layout_make import make_shared

    report = grade_kernel(made["layout"], lambda M, N: make_shared((M, N), lambda i, j: i * N + (j ^ (i % 32)), dtype="float32"), seed=1)
    assert report.score == 100, report


def test_an_owner_map_is_held_against_the_oracle(made, tmp_path):
    """mma.m16n8k16's accumulator: thread 4 (i mod 8) + j // 2 owns it, two neighbours in each of two rows."""
    spec = made["layout"].spec
    (tmp_path / "oracle.py").write_text(
        "import numpy as np\n\n\ndef oracle():\n    i, j = np.indices((16, 8))\n    return i % 8 * 4 + j // 2, i // 8 * 2 + j % 2\n"
    )
    goal = dataclasses.replace(spec.layout, kind="fragment", shape=(16, 8), threads=32)
    from tilelab.grader.spec import AlwaysCase

    spec = dataclasses.replace(spec, layout=goal, always=(AlwaysCase(sizes={}),), count_sizes={}, require=(), folder=tmp_path)
    spec = dataclasses.replace(spec, counts=(dataclasses.replace(spec.counts[0], name="registers", start=8, best=4, floor=None),))
    right = "import tilelang.language as T\n\n\ndef my_layout():\n    return T.Fragment((16, 8), forward_fn=lambda i, j: ({}))\n"
    (tmp_path / "right.py").write_text(right.format("i % 8 * 4 + j // 2, i // 8 * 2 + j % 2"))
    assert grade(spec, tmp_path / "right.py", seed=1).score == 100
    (tmp_path / "swapped.py").write_text(right.format("i // 8 * 2 + j % 2, i % 8 * 4 + j // 2"))
    report = grade(spec, tmp_path / "swapped.py", seed=1)
    assert (report.first_wrong.output, report.first_wrong.index) == ("thread", (0, 1))
    assert (report.first_wrong.expected, report.first_wrong.got) == (0, 1)
    assert np.asarray(report.heat).shape == (16, 8)

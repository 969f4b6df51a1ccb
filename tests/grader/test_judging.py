"""Drawing, comparing, blaming, slicing: the parts of a judgement, against references of their own."""

import dataclasses
import hashlib
import hmac
import json
import os

import ml_dtypes
import numpy as np
import pytest

from tilelab.analysis.traffic import traffic
from tilelab.course import puzzle
from tilelab.errors import InputError
from tilelab.grader.blame import writer_of
from tilelab.grader.compare import compare
from tilelab.grader.draw import INPUT_KINDS, class_seed, draw_cases, draw_inputs, draw_tensor
from tilelab.grader.oracle import ruled_inputs
from tilelab.grader.spec import Tensor, Tolerance
from tilelab.grader.submission import files_of, from_text, read_submission


# ------------------------------------------------------------------------------------------------------- drawing
def test_a_seed_decides_everything_and_another_seed_differs():
    spec = puzzle("7").spec
    first, again, other = (draw_cases(spec, s) for s in (5, 5, 6))
    assert first == again
    assert [c.sizes for c in first[-3:]] != [c.sizes for c in other[-3:]]
    a, b, c = (draw_inputs(spec, x[2])["A"] for x in (first, again, other))
    assert a.tobytes() == b.tobytes()
    assert a.tobytes() != c.tobytes()


def test_draws_stay_in_their_ranges():
    spec = puzzle("25").spec
    for seed in range(200):
        for case in draw_cases(spec, seed)[len(spec.always) :]:
            assert 1 <= case.sizes["M"] <= 260
            assert case.sizes["N"] % 8 == 0
            assert 8 <= case.sizes["K"] <= 320


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_large_inputs_stay_finite(dtype):
    t = Tensor(name="A", dtype=dtype, shape=("N",))
    a = draw_tensor(t, {"N": 4000}, "large", np.random.Generator(np.random.PCG64(0)))
    assert a.dtype == np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    assert np.isfinite(a.astype(np.float64)).all()


@pytest.mark.parametrize(("kind", "has"), [("nan", np.isnan), ("-inf", np.isneginf), ("inf", np.isposinf)])
def test_special_values_are_always_there(kind, has):
    for n in (1, 7, 1000):
        assert has(INPUT_KINDS[kind](np.random.default_rng(n), (n,), 1e38)).any()


def test_inputs_that_obey_a_rule_come_from_the_oracle(tmp_path):
    rule = "def inputs(rng, drawn, N):\n    return {'table': rng.permutation(N)}\n"
    (tmp_path / "oracle.py").write_text(rule)
    drawn = {"table": np.zeros(9, np.int32), "A": np.ones(3, np.float32), "out": None}
    made = ruled_inputs(tmp_path / "oracle.py", drawn, {"N": 9, "M": 3}, np.random.default_rng(1))
    assert sorted(made["table"]) == list(range(9))
    assert made["table"].dtype == np.int32
    assert made["A"] is drawn["A"]
    assert made["out"] is None


def test_class_seeds_can_be_recomputed_by_anyone():
    seed = class_seed(b"key", "01_copy", "ada")
    assert seed == int.from_bytes(hmac.new(b"key", b"01_copy\0ada", hashlib.sha256).digest()[:8], "big")
    assert seed != class_seed(b"key", "01_copy", "bob")


# ----------------------------------------------------------------------------------------------------- comparing
def test_the_first_wrong_element_is_named():
    want = np.arange(12.0).reshape(3, 4)
    got = want.astype(np.float32)
    got[1, 2] += 1
    got[2, 0] = np.nan
    m = compare("B", got, want, Tolerance())
    assert (m.index, m.expected, m.got, m.wrong, m.total) == ((1, 2), 6.0, 7.0, 2, 12)


def test_nan_and_infinities_equal_themselves_alone():
    want = np.array([np.nan, np.inf, -np.inf, 1.0, 1.0])
    assert compare("B", want.astype(np.float32), want, Tolerance()) is None
    for i, wrong in enumerate([0.0, -np.inf, np.nan, np.inf, np.nan]):
        got = want.astype(np.float32)
        got[i] = wrong
        assert compare("B", got, want, Tolerance(rtol=1.0, atol=1.0)).index == (i,)


def test_overflow_to_the_output_dtype_is_meant():
    assert compare("B", np.array([np.inf], np.float16), np.array([1e6]), Tolerance()) is None
    assert compare("B", np.array([65504], np.float16), np.array([1e6]), Tolerance(rtol=1.0)) is not None


def test_tolerance_is_relative_to_the_magnitude_where_there_is_one():
    got, want = np.array([1e-3], np.float32), np.array([0.0])
    assert compare("B", got, want, Tolerance(rtol=1e-6)) is not None
    assert compare("B", got, want, Tolerance(rtol=1e-6), np.array([1e4])) is None


# ------------------------------------------------------------------------------------------------------- blaming
def program(number: str, sizes: dict, path: str = "solution.py"):
    from tilelab.compiler import capture

    p = puzzle(number)
    scope: dict = {}
    import linecache

    source = (p.folder / path).read_text()
    linecache.cache["submitted.py"] = (len(source), None, source.splitlines(True), "submitted.py")
    exec(compile(source, "submitted.py", "exec"), scope)
    return capture(scope[p.spec.entry], consts=sizes)


@pytest.mark.parametrize("index", [0, 127, 128, 300, 511])
def test_the_block_that_writes_an_element_of_a_copy(index):
    p = program("1", {"N": 512})
    writer = writer_of(p, p.params[1], (index,))
    assert writer.block == (index // 128, 0, 0)
    assert "T.copy(A[start" in (puzzle("1").folder / "solution.py").read_text().splitlines()[writer.loc.line - 1]


@pytest.mark.parametrize(("row", "column"), [(0, 0), (127, 128), (255, 383), (129, 5)])
def test_the_block_that_writes_an_element_of_a_product(row, column):
    p = program("25", {"M": 256, "N": 384, "K": 64})
    assert writer_of(p, p.params[2], (row, column)).block == (column // 128, row // 128, 0)


def test_no_block_writes_what_the_grid_does_not_cover():
    p = program("1", {"N": 200}, "wrong/no_ceildiv.py")
    assert writer_of(p, p.params[1], (127,)).block == (0, 0, 0)
    assert writer_of(p, p.params[1], (128,)) is None


# ------------------------------------------------------------------------------------------------------- traffic
def test_traffic_of_the_solutions():
    assert traffic(program("1", {"N": 1000})).bytes_moved == 8 * 1000
    t = traffic(program("7", {"M": 33, "N": 300}))
    assert (t.bytes_read, t.bytes_written) == (4 * 33 * 300, 4 * 33)
    m, n, k = 200, 136, 72  # two by two blocks: each tile row of A is read once for each column of blocks
    t = traffic(program("25", {"M": m, "N": n, "K": k}))
    assert (t.bytes_read, t.bytes_written) == (2 * (2 * m * k + 2 * k * n), 4 * m * n)


def test_guarded_loops_count_what_exists():
    assert traffic(program("1", {"N": 300}, "wrong/plain_range.py")).bytes_moved == 8 * 300
    t = traffic(program("7", {"M": 5, "N": 300}, "wrong/racy_accumulation.py"))
    assert t.bytes_read == 4 * 5 * 300


# --------------------------------------------------------------------------------------------------- submissions
def test_of_a_notebook_only_what_the_entry_needs_runs(tmp_path):
    cells = [
        "%load_ext tilelab\nimport math\nimport matplotlib.pyplot as plt\nSIZE = 4",
        "raise RuntimeError('a demonstration')",
        "def helper():\n    return SIZE\n\nplt.plot([1])",
        "@wraps\ndef copy():\n    return helper() + math.pi\ncopy()",
        "def broken(:",
    ]
    book = {"cells": [{"cell_type": "code", "source": c.splitlines(True)} for c in cells[:-1]]}
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps(book))
    kept = "\n".join(u.source for u in read_submission(path, "copy").units)
    assert "import math" in kept
    assert "SIZE = 4" in kept
    assert "@wraps\ndef copy" in kept
    for gone in ("matplotlib", "plt", "RuntimeError", "%load_ext", "\ncopy()"):
        assert gone not in kept


def test_lines_are_those_of_the_cell(tmp_path):
    path = tmp_path / "work.ipynb"
    path.write_text(
        json.dumps(
            {
                "cells": [
                    {"cell_type": "markdown", "source": ["x"]},
                    {"cell_type": "code", "source": ["print(1)\n", "\n", "def copy(): 1\n"]},
                ]
            }
        )
    )
    submission = read_submission(path, "copy")
    (unit,) = submission.units
    assert unit.source.split("\n")[2] == "def copy(): 1"
    assert submission.shown(unit.file) == f"{path}, cell 2"


def test_a_plain_file_runs_whole_and_a_percent_file_is_sliced(tmp_path):
    plain, cells = tmp_path / "a.py", tmp_path / "b.py"
    plain.write_text("x = 1\nprint(x)\ndef copy(): pass\n")
    cells.write_text("# %%\nprint(1)\n# %%\ndef copy(): pass\n")
    assert "print(x)" in read_submission(plain, "copy").units[0].source
    assert "print(1)" not in read_submission(cells, "copy").units[0].source


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.py", "x = (", r"a\.py:1: Python cannot parse this: '\(' was never closed"),
        ("a.ipynb", "{}", "not a Jupyter notebook"),
        ("a.txt", "", "not a submission"),
        ("a.py", "x" * (5 << 20), "larger than 4 MiB"),
        ("a.py", "-" * 100000 + "1", "Python cannot parse this"),
    ],
)
def test_bad_files_are_said_in_one_line(tmp_path, name, text, said):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said) as e:
        read_submission(tmp_path / name, "copy")
    assert "\n" not in str(e.value)


def test_text_of_a_cell():
    assert "copy" in from_text("%%time\ndef copy(): pass", "copy").units[0].source


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_not_a_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "a.py").write_text("")
    with pytest.raises(InputError, match="not a file"):
        read_submission(tmp_path / "pipe.py", "copy")
    assert [p.name for p in files_of([tmp_path])] == ["a.py"]


def test_folders_expand_sorted_without_hidden_ones(tmp_path):
    for name in ("b.py", "a.ipynb", "sub/c.py", ".ipynb_checkpoints/a.ipynb", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    assert [str(p.relative_to(tmp_path)) for p in files_of([tmp_path])] == ["a.ipynb", "b.py", "sub/c.py"]
    with pytest.raises(InputError, match="no such file"):
        files_of([tmp_path / "gone"])


def test_specs_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        puzzle("1").spec.id = "02_other"


# ------------------------------------------------------------------------------------------------------- points
def judged(spec, path="solution.py"):
    """Grade a file of puzzle 1 under a spec of its own."""
    from tilelab.grader.grading import grade

    return grade(spec, puzzle("1").folder / path, seed=2)


def test_a_warning_costs_five_points_once_and_an_allowed_one_nothing():
    spec = dataclasses.replace(puzzle("1").spec, refused=frozenset())
    report = judged(spec, "wrong/plain_range.py")
    assert report.passed
    assert not report.clean
    assert report.score == 95
    assert judged(dataclasses.replace(spec, allowed=frozenset({"TL601"})), "wrong/plain_range.py").score == 100


def test_counts_lie_between_the_start_and_the_best():
    spec = puzzle("1").spec
    for start, best, points in [(16777216, 8388608, 25), (8388608, 4194304, 0), (12582912, 4194304, 12.5), (4194304, 2097152, 0)]:
        figure = dataclasses.replace(spec.counts[0], start=start, best=best, floor=None)
        assert judged(dataclasses.replace(spec, counts=(figure,))).counts["bytes_moved"].points == points


def test_less_than_the_compulsory_work_is_a_finding():
    spec = puzzle("1").spec
    report = judged(dataclasses.replace(spec, counts=(dataclasses.replace(spec.counts[0], floor=1e9),)))
    assert report.counts["bytes_moved"].points == 0
    assert "TL604" in {f.code for f in report.findings}
    assert not report.clean


def test_what_is_not_measured_yet_costs_nothing():
    spec = puzzle("1").spec
    report = judged(dataclasses.replace(spec, counts=(*spec.counts, dataclasses.replace(spec.counts[0], name="registers"))))
    assert report.score == 100
    assert report.counts["registers"].value is None
    assert report.to_json()["counts"]["registers"] == {"value": None, "best": 8388608, "points": 0}


def test_where_lowering_is_not_possible_the_most_is_75_and_it_says_so(monkeypatch):
    from tilelab.errors import EnvironmentLacks
    from tilelab.grader import lowering

    def lacks(program, target):
        raise EnvironmentLacks("no CUDA back end here")

    monkeypatch.setattr(lowering, "lowering_facts", lacks)
    report = judged(puzzle("1").spec)
    assert (report.score, report.max, report.passed) == (75, 75, True)
    assert "75 is the most" in report.basis


def test_rules_on_operations_and_launches():
    spec = puzzle("1").spec
    for change, said in [
        ({"forbidden": frozenset({"copy"})}, "uses copy, which this puzzle does not allow"),
        ({"required": frozenset({"gemm"})}, "does not use gemm"),
        ({"launches": 0}, "launches 1 kernels; this puzzle allows 0"),
        ({"returns": (dataclasses.replace(spec.returns[0], dtype="float16"),)}, "B is (1,) float32; it should be (1,) float16"),
        ({"arguments": spec.arguments * 2}, "copy takes A; it should have"),
    ]:
        report = judged(dataclasses.replace(spec, **change))
        assert report.score == 0
        assert said in report.checks[0].message


def test_no_cuda_device_is_something_the_machine_lacks():
    import torch

    from tilelab.errors import EnvironmentLacks
    from tilelab.grader.grading import grade

    if torch.cuda.is_available():
        assert "run on" in grade(puzzle("1"), puzzle("1").folder / "solution.py", device="cuda").basis
    else:
        with pytest.raises(EnvironmentLacks):
            grade(puzzle("1"), puzzle("1").folder / "solution.py", device="cuda")


# --------------------------------------------------------------------------------------------------- strangers
@pytest.mark.parametrize("number", ["1", "7", "25"])
def test_no_program_of_a_stranger_stops_the_judge(number):
    import copy
    import random

    from tilelab import serde
    from tilelab.finding import Finding
    from tilelab.grader.grading import receive
    from tilelab.grader.judge import judge_case, simulator

    spec, rng = puzzle(number).spec, random.Random(number)
    case = draw_cases(spec, 1)[1]
    whole = json.loads(serde.dumps(program(number, dict(case.sizes))))
    leaves = list(leaves_of(whole))
    odd = [0, -1, 2, 1 << 31, True, None, "x", "float16", "global", "local.fragment", 1.5, "mul", "gemm", "fill", "parallel", [], {}]
    judged = 0
    for _ in range(300):
        data = copy.deepcopy(whole)
        path, value = rng.choice(leaves)
        at = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = rng.choice([*odd, rng.choice(leaves)[1], value + 1 if type(value) is int else value])
        received = receive(json.dumps(data).encode())
        if not isinstance(received, Finding):
            judge_case(spec, case, received, simulator(spec))
            judged += 1
    assert judged > 10
    for junk in (b"", b"\x80\x04", b"{}", b"[1]", b'{"tilelab": "Program", "version": 1, "nodes": []}', json.dumps(whole).encode()[:-5]):
        assert isinstance(receive(junk), Finding)


def leaves_of(value, path=()):
    """Every plain value within a JSON document, with the way to it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves_of(inner, (*path, key))
    if not isinstance(value, dict | list):
        yield path, value


def test_a_buffer_larger_than_any_gpu_has_is_refused(tmp_path):
    from tilelab.grader.grading import grade

    text = (
        (puzzle("1").folder / "solution.py")
        .read_text()
        .replace("        start =", '        hog = T.alloc_fragment((1 << 20, 64), "float32")\n        start =')
    )
    (tmp_path / "hog.py").write_text(text.replace("    return B", "        hog[0, 0] = 1.0\n    return B"))
    report = grade(puzzle("1"), tmp_path / "hog.py", seed=1)
    assert report.score == 0
    assert "more than any GPU has" in report.checks[0].message or "TL5" in report.checks[0].message


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("for i in T.serial(2000000000):\n            x = x + 1", "more than 2,000,000 loop turns"),
        ("while x < 1:\n            x = x * 2", "more than 2,000,000 loop turns"),
        ("T.Kernel(2000000000", "2,000,000,000 blocks"),
    ],
)
def test_a_kernel_that_would_run_for_hours_is_refused(tmp_path, more, said):
    from tilelab.grader.grading import grade

    spec = puzzle("1").spec
    if more.startswith("while"):
        spec = dataclasses.replace(spec, steps=2000)
        said = "more than 2,000 loop turns"
    text = (puzzle("1").folder / "solution.py").read_text()
    if more.startswith("T.Kernel"):
        text = text.replace("T.Kernel(T.ceildiv(N, block)", more)
    else:
        text = text.replace("        start =", f'        x = T.alloc_var("int32")\n        x = 0\n        {more}\n        start =')
    (tmp_path / "long.py").write_text(text)
    report = grade(spec, tmp_path / "long.py", seed=1)
    assert (report.score, report.passed) == (0, False)
    assert said in report.checks[0].message
    if "blocks" not in said:
        assert all(c.message == "not run: it does not end for N = 1" for c in report.checks[1:7])


def test_a_solved_notebook_is_a_submission(tmp_path):
    from tilelab.course.generate import solved
    from tilelab.grader.grading import grade

    for path, text in solved(puzzle("1"), tmp_path).items():
        path.write_text(text, "utf-8")
        assert grade(puzzle("1"), path, seed=1).score == 100

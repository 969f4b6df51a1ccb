"""Cards, checks in a notebook, hints, progress, and the conversion of sources."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tilelab.course import percent, progress, puzzle
from tilelab.errors import InputError
from tilelab.grader.report import Check, Figure, Report


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_HOME", str(tmp_path))
    return tmp_path


def kernel_of(path):
    import importlib.util

    spec = importlib.util.spec_from_file_location("learners_work", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.copy


def test_check_takes_a_kernel_a_path_or_the_source_of_a_cell(home):
    p = puzzle("1")
    right = p.folder / "solution.py"
    copy = kernel_of(right)
    for given in (copy, str(right), right, right.read_text()):
        report = p.check(given, seed=4)
        assert report.score == 100, report
    assert p.check(seed=4).passed  # `copy` is a name of this function: not found among globals…


test_check_takes_a_kernel_a_path_or_the_source_of_a_cell.__globals__["copy"] = kernel_of(puzzle("1").folder / "solution.py")


def test_check_says_what_to_run_when_there_is_no_kernel():
    with pytest.raises(InputError, match=r"nothing here is called 'row_sum'\. run the cell that defines row_sum"):
        puzzle("7").check()


def test_warm_checks_are_quick():
    p, copy = puzzle("1"), kernel_of(puzzle("1").folder / "solution.py")
    p.check(copy, seed=1)
    took = []
    for seed in range(3):
        began = time.process_time()  # what it costs, whatever else the machine does meanwhile
        p.check(copy, seed=seed)
        took.append(time.process_time() - began)
    assert min(took) < 1


def test_checks_and_hints_are_remembered(home):
    p = puzzle("1")
    p.check(p.folder / "wrong" / "no_ceildiv.py", seed=1)
    assert not progress.best()["01_copy"]["passed"]
    p.check(p.folder / "solution.py", seed=1)
    p.check(p.folder / "wrong" / "no_ceildiv.py", seed=1)
    assert p.hint(2).startswith("Hint 2")
    best = progress.best()["01_copy"]
    assert (best["passed"], best["score"], best["checks"], best["hints"]) == (True, 100, 3, 2)
    progress.append({"event": "reset", "puzzle": "01_copy"})
    assert progress.best() == {}


def test_a_torn_line_costs_only_itself(home):
    progress.append({"event": "check", "puzzle": "01_copy", "passed": True, "score": 100})
    path = home / progress.FILE
    path.write_bytes(path.read_bytes() + b'{"event": "check", "puz')
    progress.append({"event": "check", "puzzle": "07_row_sum", "passed": True, "score": 90})
    assert set(progress.best()) == {"01_copy", "07_row_sum"}


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_progress_survives_kill_9(home):
    code = "from tilelab.course import progress\nfor i in range(10**6): progress.append({'event': 'check', 'puzzle': f'p{i}', 'score': i}); print(i, flush=True)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    last = [int(child.stdout.readline()) for _ in range(20)][-1]
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    kept = progress.best()
    assert all(f"p{i}" in kept for i in range(last + 1))


def test_progress_is_never_worth_an_error(home, monkeypatch):
    monkeypatch.setenv("TILELAB_HOME", "/proc/nowhere")
    assert not progress.append({"event": "check", "puzzle": "x"})
    assert progress.best() == {}


def test_the_card_says_what_matters():
    bundle = puzzle("25")._repr_mimebundle_()
    for word in ("Tiled GEMM", "float16", "M = 16", "C: float32 (M, N)"):
        assert word in bundle["text/plain"]
        assert word in bundle["text/html"]
    assert "分块矩阵乘" in puzzle("25").text("zh")


def test_a_statement_stands_alone():
    text = puzzle("1").statement("zh")
    assert "data:image/svg+xml;base64," in text
    assert "](picture.svg)" not in text
    with pytest.raises(InputError, match="language 'fr'"):
        puzzle("1").statement("fr")


def test_a_report_escapes_what_comes_from_a_submission():
    evil = "<script>alert(1)</script>"
    report = Report(
        puzzle="01_copy",
        submission=evil,
        score=10,
        max=100,
        passed=False,
        basis=evil,
        checks=(Check(name=evil, passed=False, message=evil),),
        counts={evil: Figure(value=1, best=2, points=3)},
        advice=(evil,),
    )
    assert "<script" not in report.to_html()
    assert "&lt;script&gt;" in report.to_html()


# ------------------------------------------------------------------------------------------------------- sources
SOURCE = """# %% [markdown]
# # Title
#
# text

# %% tilelab={"role": "solution"}
def f():
    ### BEGIN SOLUTION
    #| # your turn
    #| pass
    return 1
    ### END SOLUTION


# %%
f()
"""


def test_regions():
    assert "    return 1\n" in percent.solution(SOURCE)
    assert "your turn" not in percent.solution(SOURCE)
    assert "    # your turn\n    pass\n" in percent.stub(SOURCE)
    assert "return 1" not in percent.stub(SOURCE)
    for broken in ("### BEGIN SOLUTION\n", "### END SOLUTION\n", "### BEGIN SOLUTION\n### BEGIN SOLUTION\n"):
        with pytest.raises(InputError, match="SOLUTION"):
            percent.stub(broken)


def test_cells_and_ids():
    cells = percent.parse(SOURCE)
    assert [(c.kind, c.source.split("\n")[0]) for c in cells] == [("markdown", "# Title"), ("code", "def f():"), ("code", "f()")]
    book = percent.notebook([*cells, cells[-1]])
    ids = [c["id"] for c in book["cells"]]
    assert len(set(ids)) == 4
    assert percent.notebook(percent.parse(SOURCE))["cells"][0]["id"] == ids[0]
    with pytest.raises(InputError, match="source:1: not a cell marker"):
        percent.parse("# %%nonsense {")

"""Every puzzle of the course: its solution earns everything, its wrong answers fail by name, its texts are whole."""

import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pytest

from tilelab.course import percent, puzzle, puzzles
from tilelab.course.generate import generated, main, solved
from tilelab.grader.draw import draw_cases, draw_inputs
from tilelab.grader.grading import grade

ROOT = Path(__file__).resolve().parents[2]
ALL = puzzles()
EACH = pytest.mark.parametrize("p", ALL, ids=lambda p: p.id)
WRONG = pytest.mark.parametrize(("p", "wrong"), [(p, w) for p in ALL for w in p.spec.wrong], ids=lambda x: getattr(x, "id", None) or x.file)


@EACH
def test_the_solution_earns_everything(p):
    report = grade(p, p.folder / "solution.py", seed=11)
    assert report.passed, report
    assert report.clean, report
    assert report.score == report.max, report
    assert not [f for f in report.findings if f.severity == "error"]


@EACH
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_solution_passes_whatever_is_drawn(p, seed):
    assert grade(p, p.folder / "solution.py", seed=seed).passed


@WRONG
def test_a_wrong_answer_fails_by_name(p, wrong):
    report = grade(p, p.folder / "wrong" / wrong.file, seed=11)
    assert not report.passed
    assert report.score < 60
    failed = {c.name for c in report.checks if not c.passed}
    assert wrong.fails in {f.code for f in report.findings if f.severity == "error"} | failed, report


@EACH
def test_every_wrong_answer_is_declared_and_there_are_two(p):
    assert {w.file for w in p.spec.wrong} == {f.name for f in (p.folder / "wrong").glob("*.py")}
    assert len(p.spec.wrong) >= 2


@EACH
def test_the_starter_runs_and_fails_instructively(p):
    report = grade(p, p.folder / "stub.py", seed=11)
    assert not report.passed
    assert report.score == 0, report
    assert report.first_wrong is not None  # it captured and ran: what is wrong is the values
    assert report.advice


@EACH
def test_the_oracle_is_float64(p):
    from tilelab.grader.judge import _expected

    for case in draw_cases(p.spec, 5):
        wanted = _expected(p.spec, case, draw_inputs(p.spec, case)).outputs
        for t in p.spec.returns:
            assert wanted[t.name].shape == t.extents(case.sizes)
            assert wanted[t.name].dtype == np.float64


@EACH
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_prose_is_whole(p, lang):
    prose = p.prose(lang)
    assert prose.title
    assert len(prose.hints) == p.spec.hints == 3
    assert all(title and text for title, text in prose.hints)
    assert len(prose.hints[0][1]) < len(p.source())
    pictures = re.findall(r"!\[(.+?)\]\((.+?)\)", prose.statement)
    assert pictures, "a statement has a picture, with words for those who cannot see it"
    for alt, file in pictures:
        assert len(alt) > 10
        ET.parse(p.folder / file)
    assert prose.after.startswith("## ")
    assert p.title(lang)
    assert p.idea(lang)
    assert bool(re.search(r"[\u4e00-\u9fff]", prose.statement)) == (lang == "zh")


@EACH
def test_chinese_paragraphs_are_not_hard_wrapped(p):
    lines = (p.folder / "README.zh.md").read_text("utf-8").split("\n")
    text = re.compile(r"^[^#|\-!<\s]")
    assert not [a for a, b in itertools.pairwise(lines) if text.match(a) and text.match(b)]


# ------------------------------------------------------------------------------------------------------ generated
@EACH
def test_what_is_committed_equals_what_is_generated(p):
    for path, text in generated(p, ROOT / "notebooks").items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tilelab.course.generate"


def test_the_generator_says_that_nothing_differs(capsys):
    assert main(["--check"]) == 0
    assert capsys.readouterr().out == ""


@EACH
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_notebooks_are_valid_and_their_cells_are_jupytexts(p, lang):
    book = p.notebook(lang)
    nbformat.validate(nbformat.from_dict(book))
    theirs = jupytext.reads(p.stub(), fmt="py:percent").cells
    mine = percent.parse(p.stub())
    assert [(c.cell_type, c.source) for c in theirs] == [(c.kind, c.source) for c in mine]
    assert [c.metadata.get("tilelab") for c in theirs] == [c.metadata.get("tilelab") for c in mine]
    ids = [c["id"] for c in book["cells"]]
    assert len(set(ids)) == len(ids)
    roles = [c["metadata"].get("tilelab", {}).get("role") for c in book["cells"]]
    assert roles.count("solution") == 1


@EACH
def test_no_notebook_or_stub_gives_the_solution_away(p):
    code = p.source().split(percent.BEGIN)[1].split(percent.END)[0]
    secret = [line.strip() for line in code.split("\n") if line.strip() and not line.strip().startswith((percent.STARTER, "#"))]
    assert secret
    text = p.stub() + "".join("".join(c["source"]) for c in p.notebook()["cells"] if c["cell_type"] == "code")
    assert not [line for line in secret if line in text]


@pytest.mark.slow
@EACH
def test_solved_notebooks_run(p, tmp_path):
    for path, text in solved(p, tmp_path).items():
        path.write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-p", "no:cacheprovider", str(tmp_path)]
    env = {**__import__("os").environ, "PYTHONPATH": str(ROOT), "TILELAB_HOME": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout


# --------------------------------------------------------------------------------------------------------- course
@pytest.mark.parametrize("name", ["1", 1, "01", "1_copy", "01_copy", "copy", ROOT / "puzzles" / "01_copy"])
def test_a_puzzle_by_any_of_its_names(name):
    assert puzzle(name).id == "01_copy"


def test_the_notebook_is_byte_identical_each_time():
    assert json.dumps(puzzle("1").notebook()) == json.dumps(puzzle("1").notebook())


def test_the_wheel_carries_every_puzzle_and_no_solution():
    import importlib.util

    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    carried = hook.released_puzzles(ROOT)
    for p in ALL:
        names = {Path(to).name for to in carried.values() if Path(to).parent == Path("tilelab/_puzzles") / p.id}
        assert names == {"puzzle.toml", "oracle.py", "stub.py", "README.md", "README.zh.md", "picture.svg"}


def test_a_puzzle_without_its_solution_is_whole(tmp_path):
    import shutil

    shutil.copytree(ALL[0].folder, tmp_path / ALL[0].id, ignore=shutil.ignore_patterns("puzzle.py", "solution.py", "wrong"))
    carried = puzzle(tmp_path / ALL[0].id)
    assert carried.notebook() == ALL[0].notebook()
    assert grade(carried, ALL[0].folder / "solution.py", seed=1).score == 100
    with pytest.raises(Exception, match="in the repository and not in the wheel"):
        carried.source()

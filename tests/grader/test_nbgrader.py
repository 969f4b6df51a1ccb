"""The whole way through nbgrader: an exported assignment is generated, validated, released, submitted, collected, and gets our scores."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilelab.course import percent, puzzle
from tilelab.course.authoring import export
from tilelab.course.gradebook import enter_scores
from tilelab.errors import InputError

#: nbgrader calls alembic by its name
BIN = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
ROOT = Path(__file__).resolve().parents[2]
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "tiles"
c.CourseDirectory.root = {root!r}
c.Exchange.root = {exchange!r}
c.Exchange.path_includes_course = True
"""


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", BIN)


@pytest.mark.slow
def test_an_assignment_goes_through_nbgrader(tmp_path, cli):
    p = puzzle("1")
    course, exchange, learner = (tmp_path / name for name in ("course", "exchange", "learner"))
    for folder in (course, exchange, learner):
        folder.mkdir()
    exchange.chmod(0o777)
    export(p, course, "en")
    for folder in (course, learner):
        (folder / "nbgrader_config.py").write_text(CONFIG.format(root=str(course), exchange=str(exchange)))
    environment = {
        **os.environ,
        "PATH": BIN,
        "PYTHONPATH": str(ROOT),
        "TILELAB_HOME": str(learner),
        "HOME": str(tmp_path),
        "JUPYTER_DATA_DIR": str(tmp_path / "data"),
    }

    def nbgrader(*args, cwd=course):
        command = [sys.executable, "-m", "nbgrader", *args]
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    nbgrader("generate_assignment", p.id)
    released = json.loads((course / "release" / p.id / f"{p.id}.ipynb").read_text("utf-8"))
    text = "".join("".join(c["source"]) for c in released["cells"])
    assert "BEGIN SOLUTION" not in text
    secret = [line.strip() for line in percent.solution(p.source()).split("\n") if "T.copy(A[start" in line]
    assert secret
    assert not any(line in text for line in secret)
    said = nbgrader("validate", str(course / "release" / p.id / f"{p.id}.ipynb"))
    assert "Partial credit" in said, said  # the graded cell runs, and its value is the score
    nbgrader("release_assignment", p.id)
    nbgrader("fetch_assignment", p.id, cwd=learner)
    copy = learner / "tiles" / p.id / f"{p.id}.ipynb"
    copy = copy if copy.is_file() else next(learner.rglob(f"{p.id}.ipynb"))
    book = json.loads(copy.read_text("utf-8"))
    for cell in book["cells"]:  # the learner solves it
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = percent.solution("".join(_solution_cell(p)))
    copy.write_text(json.dumps(book), "utf-8")
    assert "Success" in nbgrader("validate", str(copy), cwd=learner)
    nbgrader("submit", str(copy.parent), cwd=learner)
    nbgrader("collect", p.id)
    handed = sorted((course / "submitted").glob(f"*/{p.id}"))
    assert len(handed) == 1
    done = cli("grade", "1", *handed, "--out", tmp_path / "out", "--seed", "3")
    assert done.code == 0, done
    database = f"sqlite:///{course / 'gradebook.db'}"
    assert cli("puzzles", "gradebook", "1", "--results", tmp_path / "out" / "results.jsonl", "--db", database).code == 0
    from nbgrader.api import Gradebook

    with Gradebook(database) as gradebook:
        submission = gradebook.find_submission(p.id, handed[0].parent.name)
        assert (submission.score, submission.max_score, submission.needs_manual_grade) == (100, 100, False)


def _solution_cell(p):
    return next(c.source for c in percent.parse(p.source()) if c.metadata.get("tilelab", {}).get("role") == "solution")


@pytest.mark.slow
def test_a_gradebook_without_the_assignment_is_one_clear_line(tmp_path):
    with pytest.raises(InputError, match="has no cell 01_copy-grade in assignment 01_copy"):
        enter_scores(puzzle("1"), [], f"sqlite:///{tmp_path / 'empty.db'}")

"""``tilelab grade`` and ``tilelab puzzles``: the JSON as promised, exit codes, folders, records."""

import json
import shutil
import zipfile

import pytest

from tilelab.course import puzzle
from tilelab.grader.record import chained

KEYS = {"puzzle", "submission", "score", "max", "passed", "basis", "checks", "findings", "counts"}
FINDING = {"code", "severity", "message", "fix", "file", "line", "block", "thread", "indices", "evidence"}


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = puzzle("1").folder
    shutil.copy(folder / "solution.py", tmp_path / "right.py")
    shutil.copy(folder / "wrong" / "no_ceildiv.py", tmp_path / "wrong.py")
    return tmp_path


def test_the_json_of_a_right_and_a_wrong_submission(cli, work):
    done = cli("grade", "1", "right.py", "wrong.py", "--json", "--seed", "3")
    assert done.code == 1
    right, wrong = done.json
    for report in (right, wrong):
        assert set(report) == KEYS
        assert all(set(c) == {"name", "passed", "message"} for c in report["checks"])
        assert all(set(f) == FINDING for f in report["findings"])
    assert (right["puzzle"], right["submission"], right["passed"], right["score"], right["max"]) == ("01_copy", "right.py", True, 100, 100)
    assert right["counts"] == {"bytes_moved": {"value": 8388608, "best": 8388608, "points": 25}}
    assert not wrong["passed"]
    assert wrong["score"] < 60
    errors = {(f["code"], f["file"]) for f in wrong["findings"] if f["severity"] == "error"}
    assert errors == {
        ("TL104", "wrong.py"),
        ("TL505", "wrong.py"),
    }  # one element over 512 rounds down to no block at all, which no GPU launches


def test_exit_codes(cli, work):
    (work / "broken.py").write_text("def copy(:\n")
    assert cli("grade", "1_copy", "right.py", "--seed", "1").code == 0
    assert cli("grade", "01_copy", "wrong.py", "--seed", "1").code == 1
    for arguments, said in [
        (("1", "gone.py"), "gone.py: no such file"),
        (("1", "broken.py"), "broken.py:1: Python cannot parse this"),
        (("99", "right.py"), "there is no puzzle '99'. there are "),
        (("1", "right.py", "--seed", "-1"), "--seed -1 is negative"),
    ]:
        done = cli("grade", *arguments)
        assert done.code == 2
        assert done.out == ""
        assert said in done.err
        assert len(done.err.strip().splitlines()) == 1


def test_a_folder_is_graded_whole_whatever_is_in_it(cli, work):
    (work / "class").mkdir()
    shutil.copy("right.py", "class/ada.py")
    (work / "class" / "bob.py").write_text("def copy(:\n")
    (work / "class" / "eve.py").write_text("import os\nos._exit(0)\n")
    done = cli("grade", "1", "class", "--json", "--seed", "1")
    assert done.code == 1
    assert [(r["submission"], r["passed"]) for r in done.json] == [("class/ada.py", True), ("class/bob.py", False), ("class/eve.py", False)]
    assert [r["checks"][0]["name"] for r in done.json[1:]] == ["capture: file", "capture: exit"]


def test_the_same_seed_gives_the_same_grade(cli, work):
    a, b = (cli("grade", "1", "wrong.py", "--json", "--seed", "7").out for _ in range(2))
    assert a == b


def test_records_are_chained_and_a_broken_chain_is_refused(cli, work):
    for _ in range(2):
        cli("grade", "1", "wrong.py", "--record", "records.jsonl", "--seed", "1")
    first, second = map(json.loads, (work / "records.jsonl").read_text().splitlines())
    assert second["previous"] == first["hash"] == chained(first)
    assert first["schema"] == "tilelab.grade"
    (work / "records.jsonl").write_text(json.dumps({**first, "score": 100}) + "\n")
    done = cli("grade", "1", "wrong.py", "--record", "records.jsonl", "--seed", "1")
    assert done.code == 2
    assert "records.jsonl:1" in done.err


def test_a_scheduler_that_does_not_answer(cli, work):
    done = cli("grade", "1", "right.py", "--scheduler", "nonsense://nowhere")
    assert done.code in (2, 3)
    assert len(done.err.strip().splitlines()) == 1


def test_list_stub_and_export(cli, work):
    listed = cli("puzzles", "list", "--json").json
    assert {"01_copy", "07_row_sum", "25_tiled_gemm"} <= {p["id"] for p in listed}
    assert [p["number"] for p in listed] == sorted(p["number"] for p in listed)
    assert cli("puzzles", "stub", "1").out == puzzle("1").stub()
    assert cli("puzzles", "stub", "1", "-o", "mine.ipynb").code == 0
    assert json.loads((work / "mine.ipynb").read_text())["nbformat"] == 4
    again = cli("puzzles", "stub", "1", "-o", "mine.ipynb")
    assert again.code == 2
    assert "mine.ipynb exists" in again.err
    assert cli("puzzles", "export", "1", "-o", "out").code == 0
    names = zipfile.ZipFile(work / "out" / "01_copy.zip").namelist()
    assert "01_copy/stub.py" in names
    assert not [n for n in names if "solution" in n or "wrong" in n or n.endswith("puzzle.py")]
    book = json.loads((work / "out" / "source" / "01_copy" / "01_copy.ipynb").read_text())
    marks = [c["metadata"]["nbgrader"] for c in book["cells"] if "nbgrader" in c["metadata"]]
    assert [(m["solution"], m["grade"], m.get("points")) for m in marks] == [(True, False, None), (False, True, 100)]


def test_a_new_puzzle_passes_its_own_checks(cli, work):
    assert cli("puzzles", "new", "twice", "--folder", "mine").code == 0
    folder = work / "mine" / "61_twice"
    done = cli("grade", folder, folder / "solution.py", folder / "wrong" / "no_doubling.py", "--json", "--seed", "2")
    assert [(r["score"], r["passed"]) for r in done.json] == [(100, True), (0, False)]
    assert cli("puzzles", "new", "61_again", "--folder", "mine").code == 2

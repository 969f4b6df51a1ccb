"""What a learner sees of a check: the language, the pictures to open, their kernel beside the target, progress that can be taken along."""

import dataclasses
import importlib.util
import json
import re

import pytest

from tilelab.course import progress, puzzle
from tilelab.errors import InputError
from tilelab.grader.chinese import CODES, SENTENCES, translated
from tilelab.grader.grading import grade


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_HOME", str(tmp_path))
    return tmp_path


def kernel_of(p, path):
    spec = importlib.util.spec_from_file_location(f"work_{p.id}", p.folder / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, p.spec.entry)


# ------------------------------------------------------------------------------------------------------- Chinese
def test_every_template_turns_and_keeps_its_values():
    for english, chinese in SENTENCES.items():
        fields = re.findall(r"\{(\w+)!?\}", english)
        assert sorted(set(fields)) == sorted(set(re.findall(r"\{(\w+)\}", chinese))), english
        text = re.sub(r"\{(\w+)!?\}", lambda m: f"x{m[1]}x", english)
        turned = translated(text, "zh")
        assert re.search(r"[\u4e00-\u9fff]", turned), english
        for f in fields:
            assert f"x{f}x" in turned, english
        assert translated(text, "en") == text


def test_every_finding_code_has_a_name():
    from tilelab import finding

    assert set(finding.CODES) <= set(CODES)


@pytest.mark.parametrize(("number", "file"), [("1", "stub.py"), ("1", "wrong/no_ceildiv.py"), ("1", "solution.py"), ("25", "stub.py")])
def test_a_report_in_chinese_leaves_no_sentence_of_the_graders_in_english(number, file):
    p = puzzle(number)
    report = dataclasses.replace(grade(p, p.folder / file, seed=1), lang="zh")
    for line in (
        *report.advice,
        report.basis,
        *(c.message for c in report.checks),
        *(c.name for c in report.checks if " = " not in c.name),
    ):
        assert not line or re.search(r"[\u4e00-\u9fff]", report.say(line)), line
    assert report.to_json() == dataclasses.replace(report, lang="en").to_json()
    assert "依据" in report.to_text()
    assert "得分" in report.to_html() or report.score == report.max


def test_the_language_is_the_puzzles(home, monkeypatch):
    p = puzzle("1", lang="zh")
    assert "题目 1 · 复制" in p.text()
    assert p.hint(1).startswith("提示 1")
    assert "尚未通过" in str(p.check(p.folder / "stub.py", seed=1))
    assert "not passed" in str(puzzle("1").check(p.folder / "stub.py", seed=1))
    monkeypatch.setenv("TILELAB_LANG", "zh_CN.UTF-8")
    from tilelab.course.card import Puzzle

    assert Puzzle(p.spec).lang == "zh"
    with pytest.raises(InputError, match="language 'fr'"):
        puzzle("1", lang="fr")


def test_chinese_notebooks_ask_for_it():
    code = ["".join(c["source"]) for c in puzzle("1").notebook("zh")["cells"] if c["cell_type"] == "code"]
    assert sum('tilelab.puzzle("1", lang="zh")' in c for c in code) == 1
    assert not any("lang=" in "".join(c["source"]) for c in puzzle("1").notebook("en")["cells"] if c["cell_type"] == "code")


# ------------------------------------------------------------------------------------------------------ pictures
def test_the_picture_to_open_is_the_wrong_block_of_the_failing_case():
    p = puzzle("25")
    matmul = kernel_of(p, "stub.py")
    report = p.check(matmul, seed=1)
    (what, code), *_ = report.pictures
    assert what == "step through the block"
    assert code in report.to_text()
    import tilelab

    session = eval(code, {"tilelab": tilelab, "matmul": matmul})  # what a report says to run does run
    assert session is not None
    assert report.first_wrong.thread is not None


def test_a_thread_is_the_one_that_stores_the_element():
    import tilelab
    from tilelab.grader.lowering import writing_thread

    p = puzzle("1")
    program = tilelab.capture(kernel_of(p, "solution.py"), consts={"N": 1000})
    writes = {i: writing_thread(program, "B", (i,), (i // 128, 0, 0), "sm_80") for i in (0, 1, 5, 127, 128, 300)}
    assert all(t is not None for t in writes.values())
    assert writes[0] == writes[128] == 0  # each block begins again
    assert len(set(writes.values())) > 3


def test_a_kernel_beside_the_target():
    p = puzzle("25", lang="zh")
    shown = p.show(kernel_of(p, "stub.py"))
    assert all(mine is not None or kind == "pipeline" for kind, (mine, _) in shown.views.items())
    assert all(target is not None for _, target in shown.views.values())
    assert shown.counts["tensor_core"] == (0, 1)
    html = shown._repr_mimebundle_()["text/html"]
    assert html.count("<svg") >= 5
    assert "目标" in html
    with pytest.raises(InputError, match="nothing here is called"):
        p.show()


# ------------------------------------------------------------------------------------------------------ progress
def test_progress_is_shown_exported_and_forgotten(cli, home):
    p = puzzle("1")
    p.check(p.folder / "solution.py", seed=1)
    p.check(puzzle("7").folder / "solution.py", seed=1)
    assert "✓ 01_copy" in cli("puzzles", "progress").out
    assert cli("puzzles", "progress", "--export", str(home / "mine.json")).code == 0
    assert [e["event"] for e in json.loads((home / "mine.json").read_text())] == ["check", "check"]
    assert cli("puzzles", "progress", "--reset", "copy").code == 0
    assert progress.best() == {}
    p.check(p.folder / "stub.py", seed=1)
    assert cli("puzzles", "progress", "--reset", "all").code == 0
    assert progress.best() == {}
    assert len(list(progress.events())) == 5  # nothing is rewritten
    assert cli("puzzles", "progress", "--export", "/proc/nowhere/x").code == 2

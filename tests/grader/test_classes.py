"""A class: resumable, secret draws that anyone can check, what is alike, reports, a cluster of which a worker dies."""

import csv
import importlib.util
import io
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from tilelab.course import puzzle
from tilelab.errors import InputError
from tilelab.grader import classes, pool
from tilelab.grader.class_report import histogram, mistakes, page, table
from tilelab.grader.classes import grade_class, jobs_of, read_results
from tilelab.grader.secret import load_key, new_key
from tilelab.grader.similar import Pair, Work, groups, similar
from tilelab.grader.submission import files_of


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A class of six, one of them twice, with odd names."""
    monkeypatch.chdir(tmp_path)
    folder = puzzle("1").folder
    made = {
        "ada.py": (folder / "solution.py").read_text(),
        "bob.py": (folder / "wrong" / "no_ceildiv.py").read_text(),
        "eve/work.py": "import os\nos._exit(3)\n",
        "=cmd()|'x'!A1.py": "def copy(:\n",
        "陈 小姐/01.py": (folder / "solution.py").read_text(),
        "<script>alert(1)<!--.py": "raise ValueError('<b>')\n",
    }
    for name, text in made.items():
        (tmp_path / "class" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / name).write_text(text)
    return tmp_path


def graded(work, **kw):
    spec = puzzle("1").spec
    folder = work / "class"
    return grade_class(spec, jobs_of(spec, folder, files_of([folder]), kw.pop("key", None), kw.pop("seed", 3)), work / "out", **kw)


def test_each_submission_gets_its_own_result_whatever_the_others_do(work):
    results = {r["student"]: r["report"] for r in graded(work)}
    assert {s for s, r in results.items() if r["passed"]} == {"ada", "陈 小姐"}
    assert results["eve"]["checks"][0]["name"] == "capture: exit"
    assert len(results) == 6


def test_a_second_run_grades_only_what_is_new(work, monkeypatch):
    first = graded(work)
    asked = []
    monkeypatch.setattr(classes, "grade_many", lambda spec, paths, **kw: asked.extend(paths) or pool.grade_many(spec, paths, **kw))
    assert graded(work) == first
    assert asked == []
    (work / "class" / "bob.py").write_text((work / "class" / "ada.py").read_text())
    again = {r["student"]: r["report"]["passed"] for r in graded(work)}
    assert [p.name for p in asked] == ["bob.py"]
    assert again["bob"]


def test_a_run_that_is_cut_off_loses_nothing_that_was_graded(work, monkeypatch):
    real = pool.grade_many

    def dies(spec, paths, **kw):
        for n, item in enumerate(real(spec, paths, **kw)):
            if n == 3:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr(classes, "grade_many", dies)
    with pytest.raises(KeyboardInterrupt):
        graded(work)
    path = work / "out" / "results.jsonl"
    assert len(list(read_results(path))) == 3
    path.write_bytes(path.read_bytes() + b'{"schema": "tilelab.cl')  # and the power went
    asked = []
    monkeypatch.setattr(classes, "grade_many", lambda spec, paths, **kw: asked.extend(paths) or real(spec, paths, **kw))
    assert len(graded(work)) == 6
    assert len(asked) == 3


def test_what_the_grader_itself_failed_at_is_graded_again(work, monkeypatch):
    real = pool.grade_one

    def broken(spec, item, device):
        if item[1].endswith("ada.py"):
            return pool._lost(spec, item, "the grader itself failed: OSError")
        return real(spec, item, device)

    monkeypatch.setattr(pool, "grade_one", broken)
    assert not {r["student"]: r for r in graded(work)}["ada"]["report"]["passed"]
    monkeypatch.setattr(pool, "grade_one", real)
    assert {r["student"]: r for r in graded(work)}["ada"]["report"]["passed"]


def test_a_full_disk_is_one_clear_line(work, monkeypatch):
    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(classes.os, "write", full)
    with pytest.raises(InputError, match=r"cannot be written: No space left on device\. make room and run again"):
        graded(work)


# -------------------------------------------------------------------------------------------------------- secrets
def test_a_key_is_the_owners_alone_and_never_replaced(tmp_path):
    key = new_key(tmp_path / "key.json")
    assert load_key(tmp_path / "key.json") == key
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "key.json").stat().st_mode) == 0o600
    with pytest.raises(InputError, match="exists"):
        new_key(tmp_path / "key.json")
    data = json.loads((tmp_path / "key.json").read_text())
    (tmp_path / "other.json").write_text(json.dumps({**data, "nonce": "00" * 16}))
    with pytest.raises(InputError, match="do not fit the commitment"):
        load_key(tmp_path / "other.json")
    for text in ("", "[]", "{}", '{"key": 3}', json.dumps({**data, "key": "zz"})):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match="not a key file"):
            load_key(tmp_path / "bad.json")


def test_names_are_compared_as_people_read_them(tmp_path):
    key = new_key(tmp_path / "key.json")
    assert key.seed("01_copy", "Jos\u00e9") == key.seed("01_copy", "Jose\u0301")
    assert key.seed("01_copy", "ada") != key.seed("02_vector_add", "ada")


def test_anyone_recomputes_any_grade(cli, work):
    done = cli("puzzles", "commit", "key.json")
    commitment = done.out.strip()
    assert cli("puzzles", "commit", "key.json").out.strip() == commitment
    assert cli("grade", "1", "class", "--key", "key.json", "--out", "out").code == 1
    check = ("puzzles", "verify", "1", "class", "--results", "out/results.jsonl", "--key", "key.json", "--commitment")
    done = cli(*check, commitment)
    assert (done.code, done.out.strip()) == (0, "all 6 grades are as published")
    assert cli(*check, commitment, "--only", "ada").out.strip() == "all 1 grades are as published"
    assert "does not fit the commitment" in cli(*check, "0" * 64).out
    path = work / "out" / "results.jsonl"
    honest = path.read_text()
    path.write_text(honest.replace('"score":100', '"score":75'))
    done = cli(*check, commitment)
    assert done.code == 1
    assert "ada.py: score is 100, and 75 was published" in done.out
    lines = [json.loads(line) for line in honest.splitlines()]
    path.write_text("".join(json.dumps({**line, "seed": 1}) + "\n" for line in lines))
    assert "its seed is not what the key gives" in cli(*check, commitment).out
    (work / "class" / "ada.py").write_text("x = 1\n")
    assert "is not the one that was graded" in cli(*check, commitment).out


# ---------------------------------------------------------------------------------------------------------- alike
def text_of(*lines):
    return "\n".join(f"    value_{line} = combine({line}, {line})" for line in lines)


def test_copies_are_alike_and_what_everybody_has_says_nothing():
    common = [f"common{i}" for i in range(20)]
    class_ = [Work(name=f"s{i}", statements=(), text=text_of(*common, *(f"own{i}x{j}" for j in range(6)))) for i in range(30)]
    copy = Work(name="copy", statements=(), text=class_[7].text.replace("    ", "\t") + "\n# mine\n")
    pairs = similar([*class_, copy])
    assert [(p.a, p.b) for p in pairs] == [("s7", "copy")]
    assert similar(class_) == []


def test_what_the_starter_gave_says_nothing():
    starter = Work(name="", statements=("a", "b"), text=text_of(*range(30)))
    assert similar([Work(name=n, statements=("a", "b"), text=starter.text) for n in "xy"], starter) == []


def test_the_same_long_text_is_told_however_many_have_it():
    same = [Work(name=f"s{i}", statements=(), text=text_of(*range(30))) for i in range(9)]
    other = [Work(name=f"o{i}", statements=(), text=text_of(*(f"z{i}y{j}" for j in range(30)))) for i in range(9)]
    pairs = similar([*same, *other])
    assert groups(pairs) == [[f"s{i}" for i in range(9)]]


def test_renaming_does_not_hide_a_copied_program():
    long = [f"statement {i} of one" for i in range(20)]
    works = [Work(name=f"s{i}", statements=tuple(f"{s} {i}" for s in long), text="") for i in range(12)]
    pairs = similar([*works, Work(name="copy", statements=works[3].statements, text="# all renamed")])
    assert [(p.a, p.b, p.why) for p in pairs] == [("s3", "copy", "Programs of the same statements")]


# -------------------------------------------------------------------------------------------------------- reports
def test_reports_of_a_class(cli, work):
    done = cli("grade", "1", "class", "--out", "out", "--seed", "3")
    assert done.code == 1
    assert "6 submissions, 2 passed" in done.out
    rows = list(csv.DictReader(io.StringIO((work / "out" / "grades.csv").read_text("utf-8"))))
    assert {r["student"] for r in rows} >= {"ada", "bob", "eve", "陈 小姐", "'=cmd()|'x'!A1"}  # no spreadsheet runs it
    data = json.loads((work / "out" / "grades.json").read_text("utf-8"))
    assert (data["submissions"], data["passed"], sum(data["distribution"])) == (6, 2, 6)
    assert {m["what"].split(" ")[0] for m in data["mistakes"]} >= {"TL104", "capture:"}
    html = (work / "out" / "report.html").read_text("utf-8")
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "isolation: limits" in html
    assert cli("grade", "1", "class", "--out", "class/out").code == 2


def test_the_distribution_and_the_mistakes():
    assert histogram([0, 4.9, 5, 99.9, 100]) == [2, 1, *[0] * 17, 2]

    def result(name, *checks, codes=()):
        findings = [{"code": c, "severity": "error"} for c in codes]
        report = {"checks": [{"name": n, "passed": False, "message": m} for n, m in checks], "findings": findings, "score": 0, "max": 100,
                  "passed": False, "basis": "b"}  # fmt: skip
        return {"submission": name, "student": name, "report": report, "seed": 1, "sha256": ""}

    results = [
        result("a", ("N = 1", "TL104: not written"), codes=("TL104",)),
        result("b", ("N = 1", "B[0]: expected 1, got 2")),
        result("c", ("N = 1", "B[0]: expected 1, got 2"), ("N = 2", "TL104: x"), codes=("TL104",)),
        result("d", ("capture: time", "it did not finish")),
    ]
    assert mistakes(results) == [("TL104 output not written", 2, "a"), ("N = 1", 1, "b"), ("capture: time", 1, "d")]
    assert page(puzzle("1").spec, results, [Pair(a="a", b="b", share=0.9, why="w")]).count("<tr class=") == 4
    assert table([]).count("\n") == 1


# ------------------------------------------------------------------------------------------------------ leaderboard
def test_a_leaderboard_never_mixes_predicted_and_measured(cli, work):
    from tilelab.grader.leaderboard import tables
    from tilelab.grader.record import chained

    shutil.copy("class/ada.py", "right.py")
    for _ in range(2):
        assert cli("grade", "1", "right.py", "--record", "a.jsonl", "--seed", "1").code == 0
    record = json.loads((work / "a.jsonl").read_text().splitlines()[0])
    fast = {
        **record,
        "previous": "",
        "device": "cuda",
        "hardware": "NVIDIA H200",
        "counts": {"speed": {"value": 0.9, "best": 1, "points": 20}},
    }
    slow = {**fast, "submission_sha256": "00", "counts": {"speed": {"value": 0.5, "best": 1, "points": 5}}}
    fast["hash"] = chained(fast)
    slow["previous"] = fast["hash"]
    slow["hash"] = chained(slow)
    (work / "b.jsonl").write_text("".join(json.dumps(r) + "\n" for r in (fast, slow)))
    found = tables([record, slow, fast])
    assert list(found) == [("01_copy", "measured", "NVIDIA H200"), ("01_copy", "predicted", "simulator")]
    assert [r["hash"] for r in found["01_copy", "measured", "NVIDIA H200"]] == [fast["hash"], slow["hash"]]
    assert cli("puzzles", "leaderboard", "a.jsonl", "b.jsonl", "-o", "board.html").code == 0
    html = (work / "board.html").read_text()
    assert html.count("<h2") == 2
    assert html.count("0.900 × the baseline") == 1
    (work / "b.jsonl").write_text((work / "b.jsonl").read_text().replace("0.5", "0.99"))
    done = cli("puzzles", "leaderboard", "a.jsonl", "b.jsonl", "-o", "board.html")
    assert done.code == 2
    assert "b.jsonl:2" in done.err


# --------------------------------------------------------------------------------------------------------- cluster
@pytest.mark.slow
def test_a_cluster_loses_nothing_when_a_worker_is_killed(tmp_path):
    spec = importlib.util.spec_from_file_location("class_bar", Path(__file__).with_name("class_bar.py"))
    bar = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bar)
    said = bar.run(60, 2, "1", tmp_path)
    assert (said["results"], said["wrong"], said["killed"]) == (60, 0, True)


def test_killed_workers_of_the_local_pool_lose_nothing(work, monkeypatch):
    victims = work / "victims"
    victims.mkdir()
    for i in range(10):
        text = (work / "class" / "ada.py").read_text()
        (victims / f"s{i}.py").write_text(text)
    spec = puzzle("1").spec
    killed = []
    got = {}
    for i, report in pool.grade_many(spec, files_of([victims]), seeds=[1] * 10, workers=2):
        got[i] = report.passed
        if not killed:
            import multiprocessing

            killed.append(multiprocessing.active_children()[0])
            killed[0].kill()
    assert got == dict.fromkeys(range(10), True)

"""Odd things: puzzle.toml broken in every place, packs that are broken, submissions that nobody meant, names that are no ASCII."""

import copy
import json
import os
import random
import shutil
import sys
import tomllib

import pytest

from tilelab.course import catalog, puzzle
from tilelab.errors import InputError, TileLabError
from tilelab.grader.grading import grade
from tilelab.grader.pool import grade_many
from tilelab.grader.schema import load_spec, parse_spec

GOOD = tomllib.loads((puzzle("1").folder / "puzzle.toml").read_text("utf-8"))
ODD = [
    0,
    -1,
    1 << 70,
    1.5,
    float("nan"),
    float("inf"),
    True,
    "",
    "x" * 5000,
    "N // 0",
    "../../etc",
    "名字",
    [],
    [[]],
    {},
    {"x": 1},
    [None],
    [1, "a"],
    {"N": -1},
]


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def changed(data, path, value):
    data = copy.deepcopy(data)
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


@pytest.mark.parametrize("number", ["1", "7", "25"])
def test_whatever_stands_in_a_puzzle_toml_it_loads_or_is_one_line(number):
    good = tomllib.loads((puzzle(number).folder / "puzzle.toml").read_text("utf-8"))
    loaded, said = 0, []
    for path in places(good):
        for value in ODD if path else []:
            try:
                parse_spec(changed(good, path, value), puzzle(number).folder)
                loaded += 1
            except InputError as e:
                said.append(str(e))
    assert all("puzzle.toml" in text and "\n" not in text for text in said)
    assert len(said) > 500
    assert loaded  # some of it is meaningless and harmless: a hint that is none, a title of digits


def test_a_puzzle_toml_that_is_no_text(tmp_path):
    for data in (b"\xff\xfe\x00", b"a = " + b"[" * 3000, b"\x00", b"id = '01_copy'\nid = 'x'"):
        (tmp_path / "puzzle.toml").write_bytes(data)
        with pytest.raises(InputError, match=r"puzzle\.toml"):
            load_spec(tmp_path)


def test_a_broken_pack_does_not_take_the_course_with_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "61_broken").mkdir()
    (tmp_path / "61_broken" / "puzzle.toml").write_text("schema = 7\n")
    own = catalog.roots()
    monkeypatch.setattr(catalog, "roots", lambda: [*own, tmp_path])
    assert "01_copy" in {p.id for p in catalog.puzzles()}
    assert "61_broken" in capsys.readouterr().err
    with pytest.raises(InputError, match="61_broken"):
        puzzle("61")


def test_a_pack_that_cannot_be_imported_is_told_and_left_out(monkeypatch, capsys):
    class Entry:
        name = "mine"

        def load(self):
            raise ImportError("no module named mine")

    monkeypatch.setattr(catalog, "entry_points", lambda group: [Entry()])
    assert catalog.roots()
    assert "mine" in capsys.readouterr().err


def test_a_pack_plugs_in(tmp_path, monkeypatch):
    from tilelab.course.authoring import new_puzzle

    folder = new_puzzle("77_packed", tmp_path / "pack")
    (tmp_path / "pack" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))

    class Entry:
        name = "pack"

        def load(self):
            import importlib

            return importlib.import_module("pack")

    monkeypatch.setattr(catalog, "entry_points", lambda group: [Entry()])
    p = puzzle("77")
    assert p.folder == folder.resolve()
    assert p in catalog.puzzles() or p.id in {q.id for q in catalog.puzzles()}
    assert p.check(folder / "solution.py", seed=1).score == 100


# ----------------------------------------------------------------------------------------------------- submissions
RIGHT = (puzzle("1").folder / "solution.py").read_text("utf-8")
SUBMISSIONS = {
    "empty.py": b"",
    "null.py": b"\x00\x00",
    "latin1.py": "# -*- coding: latin-1 -*-\n# \u00e9\n".encode("latin-1") + RIGHT.encode(),
    "bom.py": b"\xef\xbb\xbf" + RIGHT.encode(),
    "crlf.py": RIGHT.replace("\n", "\r\n").encode(),
    "tabs.py": RIGHT.replace("    ", "\t").encode(),
    "two.py": (RIGHT + "\n\n" + RIGHT.split("import tilelang.language as T")[1]).encode(),
    "class.py": b"class copy:\n    pass\n",
    "lambda.py": b"copy = lambda A: A\n",
    "async.py": b"async def copy(A):\n    return A\n",
    "generator.py": b"def copy(A=None):\n    yield 1\n",
    "recursive.py": b"def copy(A=None):\n    return copy()\n",
    "names.py": RIGHT.replace("start", "\u8d77\u70b9").encode(),
    "walrus.py": ("x = [y := 3]\n" + RIGHT).encode(),
    "list.ipynb": b"[]",
    "cells.ipynb": b'{"cells": [{"cell_type": "code", "source": 3}]}',
    "nul.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": "\x00"}]}).encode(),
    "surrogate.ipynb": b'{"cells": [{"cell_type": "code", "source": "x = \\"\\ud800\\""}]}',
    "old.ipynb": b'{"worksheets": [{"cells": []}], "nbformat": 3}',
    "deep.ipynb": b'{"cells": ' + b"[" * 100000,
    "magics.ipynb": json.dumps(
        {"cells": [{"cell_type": "code", "source": "%%bash\nrm -rf /\n"}, {"cell_type": "code", "source": RIGHT}]}
    ).encode(),
}
PASSING = {"crlf.py", "tabs.py", "two.py", "names.py", "walrus.py", "magics.ipynb", "bom.py"}


def test_odd_submissions_each_get_a_report(tmp_path):
    for name, data in SUBMISSIONS.items():
        (tmp_path / name).write_bytes(data)
    os.symlink(tmp_path / "gone", tmp_path / "dangling.py")
    os.symlink(tmp_path, tmp_path / "loop")
    (tmp_path / "folder.py").mkdir()
    paths = [*(tmp_path / n for n in SUBMISSIONS), tmp_path / "dangling.py", tmp_path / "folder.py"]
    reports = {paths[i].name: r for i, r in grade_many(puzzle("1").spec, paths, seeds=[1] * len(paths), workers=1)}
    assert len(reports) == len(paths)
    for name, report in reports.items():
        assert report.passed == (name in PASSING), report
        assert report.to_text()
        assert json.dumps(report.to_json())
        assert not any("grader" in c.name for c in report.checks), report
        assert all(c.message for c in report.checks if not c.passed), report


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes are Linux's")
def test_names_of_any_kind(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "class").mkdir()
    for name in ("\u5b66\u751f \u4e00.py", "e\u0301.py", "a'b\"c.py", "-x.py", "new\nline.py", "[bold].py", "%s{0}.py"):
        (tmp_path / "class" / name).write_text(RIGHT)
    with open(os.fsencode(tmp_path / "class") + b"/\xff\xfe.py", "w") as f:
        f.write(RIGHT)
    done = cli("grade", "1", "class", "--out", "out", "--seed", "1")
    assert done.code == 0, done
    assert "8 submissions, 8 passed" in done.out
    again = cli("grade", "1", "class", "--out", "out", "--seed", "1", "--json")
    assert [r["passed"] for r in again.json] == [True] * 8
    assert cli("grade", "1", "class", "--seed", "1").code == 0
    assert cli("grade", "1", "class", "--seed", "1", "--json").code == 0


def test_the_duplicates_of_a_class_of_two_hundred_are_found_and_nothing_else():
    p, rng = puzzle("25"), random.Random(4)
    text = (p.folder / "solution.py").read_text("utf-8")
    own = {}
    for i in range(200):
        block, stages = rng.choice((64, 128)), rng.choice((1, 2, 3))
        mine = text.replace("block_m: int = 128", f"block_m: int = {block}").replace("num_stages=2", f"num_stages={stages}")
        notes = "".join(f"    # note {rng.random():.9f} of mine, step {k}\n" for k in range(6))
        own[f"s{i:03d}"] = mine.replace("    M, N, K = T.const", f"{notes}    M, N, K = T.const")
    for i in range(190, 200):
        own[f"s{i:03d}"] = own[f"s{i - 180:03d}"].replace("bx", "column").replace("\n\n", "\n")
    from tilelab.grader.similar import Work, groups, similar

    works = [Work(name=n, statements=(), text=t) for n, t in own.items()]
    found = {tuple(g) for g in groups(similar(works, Work(name="", statements=(), text=p.stub())))}
    assert found == {(f"s{i - 180:03d}", f"s{i:03d}") for i in range(190, 200)}


def test_a_full_disk_while_grading_is_the_graders_fault_and_not_the_students(tmp_path, monkeypatch):
    from tilelab.grader import grading, pool

    def full(*args, **kw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(grading, "capture_isolated", full)
    (tmp_path / "a.py").write_text(RIGHT)
    spec = puzzle("1").spec
    report = pool.grade_one(spec, pool.read(spec, tmp_path / "a.py", 1), "sim")
    assert report.checks[0].name == "capture: grader"
    assert "No space left" in report.checks[0].message


def test_the_fork_server_comes_back_when_it_is_killed(tmp_path):
    from tilelab.grader.isolate import fork_server

    assert grade(puzzle("1"), puzzle("1").folder / "solution.py", seed=1).passed
    process = fork_server()._process
    if process is None:
        return  # this system has none
    process.kill()
    process.wait()  # a server that is still dying may take a request with it
    assert grade(puzzle("1"), puzzle("1").folder / "solution.py", seed=1).passed


def test_commands_with_nonsense_are_one_line(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(RIGHT)
    (tmp_path / "key.json").write_text("{}")
    for arguments in [
        ("grade", "1", "a.py", "--key", "none.json"),
        ("grade", "1", "a.py", "--key", "key.json"),
        ("grade", "1", "a.py", "--seed", "1", "--key", "key.json"),
        ("grade", "1", "a.py", "--workers", "0"),
        ("grade", "1", "a.py", "--out", "/proc/nowhere"),
        ("grade", "1", "a.py", "--out", "a.py"),
        ("puzzles", "verify", "1", ".", "--results", "none.jsonl"),
        ("puzzles", "verify", "1", "none", "--results", "a.py"),
        ("puzzles", "gradebook", "1", "--results", "none.jsonl"),
        ("puzzles", "leaderboard", "a.py", "-o", "x.html"),
        ("puzzles", "leaderboard", "none.jsonl", "-o", "x.html"),
        ("puzzles", "commit", "/proc/nowhere/key"),
        ("puzzles", "progress", "--reset", "999"),
        ("puzzles", "new", "UPPER"),
        ("puzzles", "new", "x", "--kind", "poem"),
        ("puzzles", "stub", "1", "-o", "a.txt"),
        ("puzzles", "export", "1", "-o", "/proc/nowhere"),
        ("grade", "1", "a.py", "--record", "/proc/nowhere/r"),
    ]:
        done = cli(*arguments)
        assert done.code == 2, arguments
        assert len(done.err.strip().splitlines()) == 1, (arguments, done.err)
        assert "Traceback" not in done.err


def test_a_puzzle_whose_own_files_are_broken_says_so(tmp_path):
    source = puzzle("1").folder
    for broken, said in [("def oracle(:\n", "oracle.py"), ("def other(): pass\n", "oracle"), ("def oracle(A): return A, A\n", "oracle")]:
        folder = tmp_path / "01_copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        (folder / "oracle.py").write_text(broken)
        with pytest.raises(TileLabError, match=said):
            grade(load_spec(folder), source / "solution.py", seed=1)

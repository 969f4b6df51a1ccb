"""The learner's folder: where it is, and that nothing in it is ever replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilelab.course import progress
from tilelab.errors import InputError
from tilelab.lab.shelf import Shelf, learner_home, place


def test_home_is_the_named_folder_only_when_the_server_can_serve_it(tmp_path, monkeypatch):
    monkeypatch.delenv("TILELAB_HOME", raising=False)
    assert learner_home(tmp_path) == tmp_path / "tilelab-puzzles"
    monkeypatch.setenv("TILELAB_HOME", str(tmp_path / "mine"))
    assert learner_home(tmp_path) == tmp_path / "mine"
    monkeypatch.setenv("TILELAB_HOME", str(tmp_path.parent / "elsewhere"))
    assert learner_home(tmp_path) == tmp_path / "tilelab-puzzles"


def test_each_language_has_its_own_copy(tmp_path, monkeypatch):
    monkeypatch.setenv("TILELAB_HOME", str(tmp_path))
    shelf = Shelf(root=tmp_path)
    assert shelf.open("1", "en")["path"] == "01_copy.ipynb"
    assert shelf.open("1", "zh")["path"] == "01_copy.zh.ipynb"
    texts = ["".join(json.loads(p.read_text("utf-8"))["cells"][0]["source"]) for p in sorted(tmp_path.glob("*.ipynb"))]
    assert len(texts) == 2
    assert "复制" in texts[1]
    assert "复制" not in texts[0]
    assert {p["id"]: p["path"] for p in shelf.listing("zh")["puzzles"]}["01_copy"] == "01_copy.zh.ipynb"


def test_progress_is_read_where_kernels_write_it(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setenv("TILELAB_HOME", str(elsewhere))
    assert progress.append({"event": "check", "puzzle": "01_copy", "passed": True, "score": 90, "max": 100})
    first = next(p for p in Shelf(root=tmp_path / "served").listing("en")["puzzles"] if p["id"] == "01_copy")
    assert (first["state"], first["score"]) == ("solved", 90)


@pytest.mark.parametrize("links", [True, False], ids=["links", "no-links"])
def test_place_keeps_what_is_there(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr("os.link", _refuse)
    path = tmp_path / "deep" / "a.ipynb"
    assert place(path, {"cells": ["新"]})
    assert json.loads(path.read_text("utf-8")) == {"cells": ["新"]}
    assert not place(path, {"cells": ["other"]})
    assert json.loads(path.read_text("utf-8")) == {"cells": ["新"]}
    assert [p.name for p in path.parent.iterdir()] == ["a.ipynb"]


def _refuse(*_):
    raise OSError("no links here")


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match=r"cannot write .*a\.ipynb.*TILELAB_HOME"):
        place(Path(tmp_path, "file", "a.ipynb"), {})

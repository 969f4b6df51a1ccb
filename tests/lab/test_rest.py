"""The REST interface, over a real server that finds the extension through the shipped configuration alone."""

from __future__ import annotations

import json

import pytest


@pytest.mark.parametrize("request_", [("tilelab/api/puzzles",), ("tilelab/api/progress",), ("tilelab/api/open", {"puzzle": "1"})])
def test_strangers_are_turned_away(server, request_):
    status, _ = server.ask(*request_, token=None)
    assert status == 403
    assert not (server.root / "tilelab-puzzles").exists()


def test_the_list_is_in_the_language_asked_for(server):
    _, english = server.ask("tilelab/api/puzzles?lang=en")
    _, chinese = server.ask("tilelab/api/puzzles?lang=zh")
    first_en, first_zh = (next(p for p in listed["puzzles"] if p["number"] == 1) for listed in (english, chinese))
    assert (english["schema"], english["version"], english["folder"]) == ("tilelab.lab.puzzles", 1, "tilelab-puzzles")
    assert (first_en["id"], first_en["number"], first_en["title"], first_en["part"], first_en["partTitle"]) == (
        "01_copy",
        1,
        "Copy",
        "A",
        "Tiles",
    )
    assert (first_zh["id"], first_zh["title"], first_zh["partTitle"]) == ("01_copy", "复制", "分块")
    assert [p["number"] for p in english["puzzles"]] == sorted(p["number"] for p in english["puzzles"])
    assert {7, 25} <= {p["number"] for p in english["puzzles"]}


def test_opening_copies_once_and_never_overwrites(server):
    status, first = server.ask("tilelab/api/open", {"puzzle": "7", "lang": "en"})
    path = server.root / first["path"]
    assert (status, first) == (200, {"id": "07_row_sum", "path": "tilelab-puzzles/07_row_sum.ipynb", "created": True})
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"]["tilelab"]["puzzle"] == "07_row_sum"
    assert any(c["metadata"].get("tilelab", {}).get("role") == "solution" for c in notebook["cells"])

    path.write_text("the learner's own work", "utf-8")
    _, again = server.ask("tilelab/api/open", {"puzzle": "07_row_sum", "lang": "en"})
    assert again == first | {"created": False}
    assert path.read_text("utf-8") == "the learner's own work"
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".") and p.is_file()] == []  # no temporary file is left

    entry = {p["number"]: p for p in server.ask("tilelab/api/puzzles")[1]["puzzles"]}[7]
    assert (entry["state"], entry["path"], entry["score"]) == ("started", first["path"], None)


def test_progress_is_what_the_checks_wrote(server):
    file = server.root / "tilelab-puzzles" / ".tilelab" / "progress.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    checks = [("01_copy", True, 85), ("01_copy", False, 40), ("25_tiled_gemm", False, 30)]
    lines = [json.dumps({"event": "check", "puzzle": p, "passed": ok, "score": s, "max": 100}) for p, ok, s in checks]
    file.write_text("\n".join([*lines, '{"event": "check", "puz']), "utf-8")  # the last line was torn by a power cut
    status, progress = server.ask("tilelab/api/progress")
    assert status == 200
    assert progress["solved"] == 1
    assert progress["total"] == len(progress["puzzles"])
    assert progress["puzzles"]["01_copy"] == {"state": "solved", "score": 85, "max": 100}
    assert progress["puzzles"]["25_tiled_gemm"] == {"state": "started", "score": 30, "max": 100}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"puzzle": "999"}, 404, "999"),
        ({"puzzle": "../../etc"}, 404, "not the name of a puzzle"),
        ({"puzzle": "1", "lang": "fr"}, 400, "fr"),
        ({"puzzle": 1}, 400, "JSON object"),
        ([1], 400, "JSON object"),
    ],
)
def test_bad_requests_get_one_sentence(server, body, status, words):
    got, answer = server.ask("tilelab/api/open", body)
    assert got == status
    assert words in answer["message"]
    assert "\n" not in answer["message"]


def test_an_unknown_language_of_the_list(server):
    status, answer = server.ask("tilelab/api/puzzles?lang=xx")
    assert (status, "en, zh" in answer["message"]) == (400, True)

"""The trace view: each lowering shows the same step, values survive their packing, nothing is larger than was said."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.views import traces
from tilelab.debugger import Session
from tilelab.errors import InputError
from tilelab.trace import Trace
from tilelab.views import View, html, prints, trace
from tilelab.views.trace_model import Model


@pytest.fixture
def view():
    return trace(traces.small(), watches=["acc[1]", "k"], breaks=[13, "acc[0] > 9"])


def same(a, b):
    return np.array_equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b)) and np.array_equal(np.ma.filled(a, 0), np.ma.filled(b, 0), equal_nan=True)


def test_json_round_trip_keeps_every_value(view):
    back = View.from_json(json.loads(json.dumps(view.to_json())))
    assert back.to_json() == view.to_json()
    model, session = Model(back.data), Session(traces.small(), block=(1, 0, 0))
    for step in range(len(session)):
        for name, value in session.values(step).items():
            shown = model.value(name, step)
            assert not shown.late
            assert same(shown.array, value), (name, step)


def test_shown_first_is_the_nan(view):
    assert view.data["at"] == 9
    assert view.data["selected"] == "acc"
    text = view.to_text()
    assert "acc[0] becomes NaN at step 9" in text
    assert "from acc[0] = 12" in text
    assert "→ 4          x[i] = x[i] / s" in text
    assert "acc[1] = 7.5" in text
    assert "TL301 kernel.py:4" in text


def test_what_changed_is_what_differs():
    model = Model(trace(traces.small()).data)
    assert model.value("tile", 2).changed.tolist() == [[True] * 4, [False] * 4]
    assert model.value("tile", 4).changed.tolist() == [[False] * 4, [True] * 4]
    assert model.value("tile", 3).changed is None
    assert model.value("acc", 9).changed.tolist() == [True, True, True, True]
    assert model.value("acc", 3).changed.tolist() == [False, True, True, True]
    assert model.value("out", 9) is None


def test_unwritten_elements_are_not_nan():
    view = trace(traces.small(), at=2, buffer="tile")
    assert "unwritten 4" in view.to_text()
    assert "·" in view.to_text()
    assert "NaN" not in view.to_text().split("becomes")[0]


def test_svg_says_what_it_shows_and_stands_alone(view):
    root = ET.fromstring(view.to_svg())
    assert root.get("role") == "img"
    assert view.title in root[0].text
    assert "step 9 of 10" in root[1].text
    for text in (view.to_svg(), view.to_html(), prints(traces.small()).to_html()):
        addresses = set(re.findall(r"https?://[^\s\"'<)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set()
        assert "@import" not in text
    assert "default-src 'none'" in view.to_html()


def test_table_lists_the_steps(view):
    header, rows = view.table()
    assert header == ["step", "line", "loops", "role", "statement", "wrote"]
    assert rows[4] == ["4", "12", "k = 1", "threads 32–63", "T.copy(A[k, 0], tile[k % 2, :])", "tile"]
    assert rows[5][5] == "acc, n"
    assert len(rows) == 11
    assert [row[0] for row in view.table(3)[1]] == ["8", "9", "10"]


def test_prints_are_one_typed_table():
    view = prints(traces.small())
    header, rows = view.table()
    assert [row[1] for row in rows] == ["1,0,0", "0,0,0"]
    assert rows[0] == ["14", "1,0,0", "tile", "", "acc", "float32", "[4] 12 15 18 21"]
    assert header[-1] == "value"
    assert "T.print: 5 records" in view.to_text()
    assert "and 3 more" in view.to_text()
    assert (view.data["prints"][1]["value"] == view.data["prints"][0]["value"] + 1).all()
    assert trace(traces.small()).data["prints"][0]["step"] == 8
    assert trace(traces.small()).data["prints"][1]["step"] == -1


def test_words_are_chinese_where_asked():
    text = trace(traces.small(), lang="zh").to_text()
    assert "在第 9 步变为 NaN" in text
    assert 'lang="zh-CN"' in trace(traces.small(), lang="zh").to_html()
    assert "行" in trace(traces.small(), lang="zh").to_svg() or "步" in trace(traces.small(), lang="zh").to_svg()


def test_matplotlib_draws_the_values(view):
    assert view.to_matplotlib().axes[0].images


# ------------------------------------------------------------------------------------------------ many steps
def test_a_bound_on_size_is_kept_and_said():
    whole = trace(traces.long(), limit_bytes=64 << 20)
    assert whole.data["notes"] == []
    small = trace(traces.long(), limit_bytes=200_000)
    assert len(small.render("json")) < 450_000 < 1_500_000 < len(whole.render("json"))
    assert re.match(r"\d+ values are left out", small.data["notes"][0])


def test_what_is_left_out_is_spread_evenly_and_said_with_the_value():
    trace_ = traces.long()
    model = Model(trace(trace_, limit_bytes=200_000).data)
    kept = [int(s) for s, v in zip(model.buffer("x")["steps"], model.buffer("x")["values"], strict=True) if v >= 0]
    assert 8 < len(kept) < 100
    assert kept[0] == 0
    assert kept[-1] == 399
    assert np.diff(kept).max() <= 64
    for step in range(0, 400, 7):
        shown = model.value("x", step)
        assert shown.late == (shown.step != step)
        assert (shown.array == trace_.events[shown.step].after["x"]).all()
        assert (model.value("count", step).array == trace_.events[step].after["count"]).all()  # small changes are all kept


def test_steps_that_matter_keep_their_values():
    view = trace(traces.long(), at=201, limit_bytes=100_000)
    assert not Model(view.data).value("x", 201).late


def test_a_large_tensor_is_shown_where_the_block_writes():
    model = Model(trace(traces.long()).data)
    buffer = model.buffer("big")
    assert (buffer["origin"], buffer["extent"]) == ([64, 16], [8, 16])
    assert model.value("big", 350).array.shape == (8, 16)
    assert (model.value("big", 350).array == 301).all()
    assert "[64:72, 16:32]" in trace(traces.long(), buffer="big", at=300).to_text()


# ------------------------------------------------------------------------------------------------- mistakes
def test_what_cannot_be_shown_is_said_in_one_line():
    with pytest.raises(InputError, match="no step of block"):
        trace(Trace(outputs={}))
    with pytest.raises(InputError, match=r"recorded: \(1, 0, 0\)"):
        trace(traces.small(), block=(0,))
    with pytest.raises(InputError, match="no value of 'zz' was recorded"):
        trace(traces.small(), buffer="zz")
    with pytest.raises(InputError, match="steps are 0 to 10"):
        trace(traces.small(), at=11)
    with pytest.raises(InputError, match="lines that ran"):
        trace(traces.small(), breaks=[1])


def test_a_session_shows_itself(monkeypatch, tmp_path):
    session = Session(traces.small(), block=(1, 0, 0))
    session.goto(4)
    bundle = session._repr_mimebundle_()
    assert "step 4 of 10" in bundle["text/plain"]
    assert "<svg" in bundle["text/html"]
    assert session.view().data["at"] == 4
    monkeypatch.setattr(html, "STATIC", tmp_path)
    assert "<script" not in session._repr_mimebundle_()["text/html"]


def test_the_page_cannot_be_broken_out_of():
    from dataclasses import replace

    made = traces.small()
    events = tuple(replace(e, text="</script><b>") for e in made.events)
    page = trace(replace(made, events=events, kernel="</script><b>")).to_html()
    assert "</script><b>" not in page

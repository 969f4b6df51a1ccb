"""The live widget: what the front end asks moves the session; what moves the session reaches the front end."""

from __future__ import annotations

import numpy as np
import pytest

from tests.views import traces
from tilelab.debugger import Session
from tilelab.errors import EnvironmentLacks
from tilelab.views import html
from tilelab.views.encode import decode


@pytest.fixture
def session():
    return Session(traces.small(), block=(1, 0, 0))


@pytest.fixture
def widget(session, monkeypatch, tmp_path):
    monkeypatch.setattr(html, "STATIC", tmp_path)
    with pytest.raises(EnvironmentLacks, match="not built"):
        session.widget()
    (tmp_path / "trace.js").write_text("export default { render() {} };")
    made = session.widget()
    yield made
    made.close()


def test_commands_are_those_of_the_terminal(session, widget):
    for command, at in (("s", 1), ("s", 2), ("b", 1), ("g 5", 5), ("o", 8), ("k 13", 8), ("r", 7), ("r", 5), ("c", 7)):
        widget.receive({"command": command})
        assert session.here.index == widget.session["at"] == at
    assert widget.session["hit"]["line"] == 13
    widget.receive({"command": "K 1"})
    assert widget.session["breakpoints"] == []


def test_moves_made_in_python_reach_the_front_end(session, widget):
    session.goto(6)
    session.watch("acc[1]")
    assert widget.session["at"] == 6
    assert widget.session["watches"] == [{"text": "acc[1]", "value": "6"}]
    session.unwatch("acc[1]")
    session.break_at("nan")
    assert widget.session["watches"] == []
    assert widget.session["breakpoints"][0]["event"] == "nan"


@pytest.mark.parametrize("command", ["", "x", "g", "g x", "s -1", "K y", "q", "p acc"])
def test_what_is_no_command_changes_nothing(session, widget, command):
    session.goto(3)
    widget.receive({"command": command})
    assert session.here.index == 3
    assert widget.session["message"] == ""


def test_mistakes_are_said(session, widget):
    widget.receive({"command": "k zz > 1"})
    assert "no buffer or variable 'zz'" in widget.session["message"]
    widget.receive({"command": "g 99"})
    assert "steps are 0 to 10" in widget.session["message"]
    widget.receive({"command": "s"})
    assert widget.session["message"] == ""


def test_a_value_that_the_view_lacks_is_fetched(session, widget):
    widget.receive({"fetch": "tile", "step": 2})
    value = widget.fetched["value"]
    array, empty = decode(value["array"]), decode(value["empty"])
    assert (widget.fetched["name"], widget.fetched["step"]) == ("tile", 2)
    assert array.dtype == np.float16
    assert array[0].tolist() == [0, 1, 2, 3]
    assert empty.tolist() == [[0] * 4, [1] * 4]
    widget.receive({"fetch": "secret", "step": 2})
    assert widget.fetched["name"] == "tile"


def test_a_closed_widget_lets_go(session, widget):
    widget.close()
    session.step()
    assert widget.session["at"] == 0

"""The session over a trace whose every value is known by hand: acc += k for k = 0…3, NaN at the end."""

from __future__ import annotations

import io

import numpy as np
import pytest

from tilelab.debugger import Session
from tilelab.debugger.terminal import Terminal
from tilelab.errors import InputError
from tilelab.finding import finding
from tilelab.ir import SourceLoc
from tilelab.trace import Event, PrintRecord, Trace

SOURCE = "clear(acc)\nfor k in range(4):\n    load(s)\n    acc += s\nstore(acc)\n"
BLOCK = (1, 0, 0)


def _event(index: int, line: int, text: str, after: dict[str, object], caller: SourceLoc | None = None, **loops: int) -> Event:
    arrays = {name: np.array(value, dtype=np.float32) for name, value in after.items()}
    loc = SourceLoc(file="k.py", line=line, caller=caller)
    return Event(index=index, block=BLOCK, role="", text=text, loc=loc, loops=loops, after=arrays)


@pytest.fixture
def session() -> Session:
    events = [_event(0, 1, "clear", {"acc": [0, 0]})]
    total = 0
    for k in range(4):
        events.append(_event(len(events), 3, "load", {"s": [k, 10 * k]}, caller=SourceLoc(file="k.py", line=3), k=k))
        total += k
        events.append(_event(len(events), 4, "add", {"acc": [total, 10 * total]}, k=k))
    events.append(_event(len(events), 5, "store", {"acc": [np.nan, 60]}))
    prints = (PrintRecord(message="", name="acc", dtype="float32", values=np.zeros(2), loc=events[0].loc, block=BLOCK, thread=None),)
    trace = Trace(outputs={}, events=tuple(events), prints=prints, findings=(finding("TL301", "NaN", line=5, block=BLOCK),))
    return Session(trace, block=BLOCK)


def test_values_are_those_of_the_step_in_both_directions(session: Session) -> None:
    assert session.step(4).values["acc"].tolist() == [1, 10]
    assert session.back(2).values["acc"].tolist() == [0, 0]
    assert "s" not in session.goto(0).values
    assert session.goto(-2).values["acc"].tolist() == [6, 60]


def test_ends_are_firm(session: Session) -> None:
    assert session.back(5).index == 0
    assert session.step(100).index == len(session) - 1 == 9
    with pytest.raises(InputError, match="steps are 0 to 9"):
        session.goto(10)


def test_condition_stops_where_it_becomes_true_forward_and_back(session: Session) -> None:
    session.break_at("acc[1] > 15 and k >= 2")
    assert session.cont().index == 6
    assert session.here.values["acc"].tolist() == [3, 30]
    assert session.cont().index == 9  # true all the while, so no further stop
    assert session.reverse().index == 6


def test_line_breakpoints_stop_at_each_visit(session: Session) -> None:
    session.break_at("k.py:4")
    assert [session.cont().index for _ in range(5)] == [2, 4, 6, 8, 9]
    with pytest.raises(InputError, match="lines that ran: 1, 3–5"):
        session.break_at(2)


def test_first_nan_and_finding(session: Session) -> None:
    session.break_at("nan")
    stop = session.cont()
    assert stop.index == 9
    assert stop.hit is not None
    session.clear()
    session.goto(0)
    session.break_at("finding")
    assert session.cont().loc.line == 5


def test_over_and_out(session: Session) -> None:
    assert session.over().index == 9  # from outside the loop: over all its iterations
    session.goto(2)
    assert session.over().index == 4  # the load is in a macro: over it
    session.goto(2)
    assert session.out().index == 9


def test_history_and_watch(session: Session) -> None:
    assert [(i, v.item()) for i, v in session.history("acc[0]")][:4] == [(0, 0), (4, 1), (6, 3), (8, 6)]
    assert session.watch("s[1]") is None
    session.goto(7)
    assert session.watched()["s[1]"] == 30


@pytest.mark.parametrize("text", ["acc[0", "__import__('os')", "acc.dtype", "lambda: 1", "[1,2]", "open('x')"])
def test_conditions_are_a_closed_language(session: Session, text: str) -> None:
    with pytest.raises(InputError):
        session.break_at(text)


def test_unknown_names_say_what_is_there(session: Session) -> None:
    with pytest.raises(InputError, match="here are: acc"):
        session.value("missing + 1")


def test_other_block(session: Session) -> None:
    with pytest.raises(InputError, match=r"recorded: \(1, 0, 0\)"):
        Session(session.trace)


def test_terminal_is_driven_by_lines(session: Session) -> None:
    out = io.StringIO()
    Terminal(session, {"k.py": SOURCE}, out).run(["k acc[1] > 15", "c", "p acc", "t", "f", "zz", "q", "s"])
    text = out.getvalue()
    assert "stopped at #1 if acc[1] > 15" in text
    assert "→ 4      acc += s" in text
    assert "acc: float32[2]  min 3  max 30" in text
    assert "error" not in text
    assert "warning TL301" in text
    assert "no command 'zz'" in text
    assert session.here.index == 6

"""Goldens of the trace view that the TypeScript tests read too: what a session of the debugger does and says, step by step."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.views import traces
from tilelab.debugger import Session
from tilelab.errors import InputError
from tilelab.views import View, prints, trace

ROOT = Path(__file__).resolve().parents[2]

CONDITIONS = [
    "acc[0]", "acc[-1] > 9", "acc > 9", "max(acc) - min(acc)", "sum(acc)", "mean(acc)", "k", "k >= 1 and acc[1] > 5", "not k", "-acc[1] ** 2",
    "acc[1:3]", "acc[::-1]", "tile[0, 1]", "tile[1]", "tile[:, 2] * 2", "isnan(acc[0])", "isfinite(acc)", "7 // 2 + 7 % 3 - 1.5e1", "1 < acc[1] <= 15",
    "abs(-3)", "any(acc > 14)", "all(acc >= 0)", "tile + acc", "(acc[0] + 1) * 2", "acc[k]", "acc[9]", "True", "n == k",
]  # fmt: skip
REFUSED = ["acc[0", "__import__('os')", "acc.dtype", "lambda: 1", "[1,2]", "open('x')", "", "1 +", "acc[0][", "x if y else z", "acc[,]"]
MOVES = ["b", "s", "s", "n", "s", "n", "o", "g 2", "o", "r", "k 13", "c", "c", "r", "K 1", "k acc[1] > 5", "c", "r", "K 2", "k nan", "g 0", "c", "K 3",
         "k TL301", "g 0", "c", "K 4", "k 15", "g 0", "c", "c", "K 5", "k oob", "c", "K 6", "k kernel.py:4", "g 0", "c", "n"]  # fmt: skip


def listed(value):
    """A value as JSON: numbers, None where nobody has written, words for what JSON lacks."""
    array = np.asanyarray(value)
    empty = np.ma.getmaskarray(array)
    data = np.ma.getdata(array).astype(np.float64)
    numbers = [None if e else x if np.isfinite(x) else "NaN" if np.isnan(x) else "Inf" if x > 0 else "-Inf" for x, e in zip(data.flat, empty.flat, strict=True)]
    return {"shape": list(array.shape), "data": numbers}


def asked(session, text, step):
    session.goto(step)
    try:
        return listed(session.value(text))
    except InputError:
        return None


def moved(session, command):
    from tilelab.widgets.session import act

    act(session, command)
    hit = session.here.hit
    return [command, session.here.index, hit.number if hit else 0]


def test_session_view_and_conditions(golden):
    steps = len(traces.small().events)
    session = Session(traces.small(), block=(1, 0, 0))
    values = {text: {str(k): asked(session, text, k) for k in (0, 3, 5, 7, 9)} for text in CONDITIONS}
    after = []
    for k in range(steps):
        session.goto(k)
        after.append({"wrote": sorted(session.here.changed), "values": {n: listed(v) for n, v in session.values(k).items()}})
    walker = Session(traces.small(), block=(1, 0, 0))
    moves = [moved(walker, command) for command in MOVES]
    view = trace(traces.small(), watches=["acc[0]", "k"], breaks=[13])
    golden("views/trace_small", {"view": view.to_json(), "conditions": values, "refused": REFUSED, "moves": moves, "after": after, "table": view.table(64)[1]})


@pytest.mark.parametrize("text", REFUSED)
def test_refused_conditions_are_refused(text):
    from tilelab.debugger.condition import Condition

    with pytest.raises(InputError):
        Condition(text)


def test_prints_alone(golden):
    golden("views/trace_prints", {"view": prints(traces.small()).to_json()})


def test_the_example_is_a_view_of_today():
    record = json.loads((ROOT / "visualizers" / "trace" / "example.json").read_text())
    assert View.from_json(record).to_json() == record

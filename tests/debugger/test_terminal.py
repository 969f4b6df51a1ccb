"""The terminal: keys and words, filters of what was printed, heat maps; and lines of statements within T.ws."""

import io
from pathlib import Path

import numpy as np
import pytest

from tests.debugger import kernels
from tilelab.debugger import debug
from tilelab.debugger.terminal import WORDS, Terminal
from tilelab.errors import InputError
from tilelab.views.trace_text import heat_text, read_filter

SOURCE = Path(kernels.__file__).read_text().splitlines()


def line_of(text: str) -> int:
    return 1 + next(i for i, line in enumerate(SOURCE) if text in line)


@pytest.fixture
def talk():
    x = np.arange(128, dtype=np.int32).reshape(8, 16)
    session = debug(kernels.talking, x, block=(1,))
    out = io.StringIO()
    terminal = Terminal(session, session.trace.sources, out)

    def say(*commands: str) -> str:
        out.truncate(out.seek(0))
        terminal.run(commands)
        return out.getvalue()

    say.session = session
    return say


def test_each_word_does_what_its_key_does(talk):
    for word, key in WORDS.items():
        if key in "qgpmwWhkK":
            continue
        talk.session.goto(2)
        by_word = talk(word)
        talk.session.goto(2)
        assert by_word == talk(key), word
    talk.session.goto(0)
    assert "s: int32[4, 16] shared" in talk("step 2", "print s")
    assert talk.session.here.index == 2
    assert "no command 'walk'" in talk("walk")


def test_an_empty_line_repeats_the_last_move(talk):
    talk("g 0", "step 2", "where", "", "v", "")
    assert talk.session.here.index == 6


def test_prints_are_filtered_by_line_iteration_block_and_name(talk):
    rows = [line for line in talk("t").splitlines() if line.startswith(str(line_of("T.print(s")))]
    assert len(rows) == 3
    assert all("1,0,0" in row for row in rows)
    assert talk("t k=1").count("k=1") == 1
    assert talk("t block=all").count("k=0") == 2
    assert talk("t block=0 k=2").count("0,0,0") == 1
    assert talk("prints name=tile").count("tile") >= 3
    assert "no T.print record passes that, of 3" in talk("t 1")
    assert "filters nothing" in talk("t colour=red")
    one = talk("t k=2")
    assert "from 67 (·) to 130 (█)" in one, "a single tile comes with its heat map"


def test_filters_are_read():
    assert read_filter("16 name=acc thread=3 k=-2") == {"line": 16, "name": "acc", "thread": (3, 0, 0), "loops": {"k": -2}}
    assert read_filter("block=1,2 line=4") == {"block": (1, 2, 0), "line": 4}
    for bad in ("=3", "block=x", "block=1,2,3,4", "k=", "thread=-1"):
        with pytest.raises(InputError, match="filters nothing"):
            read_filter(bad)


def test_a_heat_map_shows_low_high_bad_and_unwritten():
    array = np.ma.MaskedArray(np.array([[0.0, 4.0], [np.nan, 9.0]]), mask=[[False, False], [False, True]])
    assert heat_text("x", array).splitlines() == ["x: [2, 2] from 0 (·) to 4 (█)", "  ·█", "  ! "]
    large = heat_text("y", np.add.outer(np.zeros(64), np.arange(128.0))).splitlines()
    assert len(large) == 17
    assert "a character is 4×2 elements" in large[0]
    assert large[1].strip()[0] == "·"
    assert large[1].strip()[-1] == "█"
    assert all(len(line) == 66 for line in large[1:])


def test_a_breakpoint_that_is_not_met_is_said(talk):
    assert "no breakpoint was met: this is the last step" in talk("k s[0, 0] > 1000", "continue")
    assert "no breakpoint was met: this is the first step" in talk("reverse")


def test_watches_come_and_go(talk):
    talk.session.goto(len(talk.session) - 1)
    assert "s[0, 0] = 67 (int32)" in talk("watch s[0, 0]", "w s[1, 0]")
    assert list(talk.session.watched()) == ["s[0, 0]", "s[1, 0]"]
    assert "watching s[1, 0]" in talk("unwatch s[0, 0]")
    assert "watching nothing" in talk("W s[1, 0]")


def test_an_infinity_that_is_meant_stops_nobody():
    session = debug(kernels.masked, np.ones(16, np.float32))
    session.break_at("nan")
    stop = session.cont()
    assert stop.loc.line == line_of("x[i] = (x[i] - x[i]) / (x[i] - x[i])") - 1
    assert session.cont().index == len(session) - 1


def test_statements_within_ws_have_their_own_lines():
    a = np.random.default_rng(0).standard_normal((128, 32)).astype(np.float32)
    session = debug(kernels.two_roles, a)
    lines = {step.loc.line: step.event.role or step.event.threads for step in session}
    first = line_of("with T.ws(1):")
    for text in ("T.copy(A, s)", "T.clear(f)", "T.mbarrier_wait_parity(full, 0)", "T.copy(f, B)"):
        line = next(n for n in range(first, first + 9) if text in SOURCE[n - 1])
        assert line in lines, f"no step on line {line}: {text}"
    assert {role for line, role in lines.items() if line > first} == {"threads 128–255", "threads 0–127"}
    np.testing.assert_array_equal(session.trace.result, a)

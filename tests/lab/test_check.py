"""What the Check button runs in the kernel."""

from __future__ import annotations

import sys
import types

import pytest

import tilelab.course
from tilelab.errors import InputError
from tilelab.finding import finding
from tilelab.lab import check


class Shell:
    """As much of IPython as the check touches."""

    def __init__(self, **names):
        self.user_ns = names
        self.shown = []
        self.display_pub = types.SimpleNamespace(publish=self.shown.append)


@pytest.fixture
def shell(monkeypatch):
    made = Shell()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: made))
    return made


class JITImpl:
    __module__ = "tilelang.jit"


def test_kernels_are_the_names_bound_in_the_cell_in_order():
    made = JITImpl()
    source = "def first(A): ...\nhelper = 3\nsecond = build(64)\nfor i in range(3):\n    inside = i\nfirst = first\n"
    names = {"first": made, "helper": 3, "second": made, "inside": made, "elsewhere": made}
    assert check.kernels_in(source, names) == ["first", "second"]
    assert check.kernels_in("%%time\nnot python", names) == []


def test_a_cell_without_kernels_says_so_in_either_language(shell):
    check.check_cell(None, "en", "x = 1")
    check.check_cell(None, "zh", "x = 1")
    english, chinese = shell.shown
    assert english["text/plain"] == "This cell defines no TileLang kernel."
    assert "没有定义" in chinese["text/plain"]
    assert english[check.REPORT] == {"puzzle": None, "passed": False, "score": None, "max": None}


def test_findings_of_a_cell_are_shown_and_escaped(shell, monkeypatch):
    shell.user_ns["k"] = JITImpl()
    found = (finding("TL101", "A[<9>] lies outside", fix="guard it", file="c.py", line=4), finding("TL102", "masked"))
    monkeypatch.setattr("tilelab.api.check", lambda kernel: found)
    check.check_cell(None, "en", "k = 1")
    (shown,) = shell.shown
    assert shown[check.REPORT]["passed"] is False
    assert "A[&lt;9&gt;] lies outside" in shown["text/html"]
    assert "A[<9>]" not in shown["text/html"]
    assert "line 4" in shown["text/html"]
    assert shown["text/plain"].splitlines()[0] == "k: c.py:4: error TL101: A[<9>] lies outside Try: guard it"

    monkeypatch.setattr("tilelab.api.check", lambda kernel: found[1:])
    check.check_cell(None, "zh", "k = 1")
    assert shell.shown[1][check.REPORT]["passed"] is True  # a note is no error
    assert "提示 TL102" in shell.shown[1]["text/html"]


def test_a_puzzle_whose_kernel_is_missing(shell):
    check.check_cell("01_copy", "en", "")
    assert "`copy`" in shell.shown[0]["text/plain"]
    assert shell.shown[0][check.REPORT] == {"puzzle": "01_copy", "passed": False, "score": None, "max": None}


def test_the_report_of_a_puzzle_and_its_verdict(shell, monkeypatch):
    report = types.SimpleNamespace(
        to_json=lambda: {"passed": True, "score": 85, "max": 100}, _repr_mimebundle_=lambda: {"text/plain": "well done"}
    )
    asked = []
    puzzle = types.SimpleNamespace(id="01_copy", spec=types.SimpleNamespace(entry="copy"), check=lambda k: asked.append(k) or report)
    monkeypatch.setattr(tilelab.course, "puzzle", lambda name, lang: puzzle, raising=False)
    shell.user_ns["copy"] = "the learner's kernel"
    check.check_cell("1", "en", "")
    assert asked == ["the learner's kernel"]
    assert shell.shown == [{"text/plain": "well done", check.REPORT: {"puzzle": "01_copy", "passed": True, "score": 85, "max": 100}}]


def test_an_input_error_is_shown_not_raised(shell, monkeypatch):
    def refuse(name, lang):
        raise InputError("no such puzzle <x>", fix="try 1")

    monkeypatch.setattr(tilelab.course, "puzzle", refuse, raising=False)
    check.check_cell("x", "en", "")
    assert shell.shown[0]["text/plain"] == "no such puzzle <x>. try 1"
    assert "&lt;x&gt;" in shell.shown[0]["text/html"]

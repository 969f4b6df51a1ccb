"""Malformed scripts and kernels: ``tilelab check`` says in plain words what is wrong, with the right exit code, and never hangs.

Each script in ``scripts/`` begins with what must come of it::

    # exit: 1
    # says: TL701 | copy_of_other_rank.py:11
    # args: --seconds 1          (options, if any)
    # build seconds: 1           (patience with its Python, if not the default)
"""

import re
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(p.stem for p in SCRIPTS.glob("*.py"))


def test_there_are_many():
    assert len(NAMES) >= 40


@pytest.mark.parametrize("name", NAMES)
def test_what_is_wrong_is_said(cli, monkeypatch, name):
    text = (SCRIPTS / f"{name}.py").read_text()
    wanted = dict(re.findall(r"^# (exit|says|args|build seconds): *(.*)$", text, re.M))
    monkeypatch.chdir(SCRIPTS)
    if "build seconds" in wanted:
        monkeypatch.setenv("TILELAB_BUILD_SECONDS", wanted["build seconds"])
    began = time.monotonic()
    done = cli("check", f"{name}.py::k", *wanted.get("args", "").split())
    said = done.out + done.err
    assert done.code == int(wanted["exit"]), said
    for part in filter(None, map(str.strip, wanted.get("says", "").split("|"))):
        assert part in said
    assert "Traceback" not in said
    assert "fault of TileLab" not in said
    if done.code == 2:
        assert done.out == ""
        assert len(done.err.strip().splitlines()) == 1, done.err
    for line in said.splitlines():
        if re.search(r"(error|warning|info) TL\d+:|^tilelab: ", line):
            assert len(line) < 900
            assert str(SCRIPTS) not in line  # files are named as they were typed
            assert "site-packages" not in line
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "name", ["syntax", "missing_name_in_a_builder", "negative_shape", "copy_of_other_rank", "endless_loop_in_the_kernel"]
)
def test_json_has_the_same_to_say(cli, monkeypatch, name):
    """What is wrong with the kernel is a finding in the JSON; what is wrong with the file is a line on stderr, and no JSON."""
    name = "unclosed_bracket" if name == "syntax" else name
    text = (SCRIPTS / f"{name}.py").read_text()
    wanted = dict(re.findall(r"^# (exit|args): *(.*)$", text, re.M))
    monkeypatch.chdir(SCRIPTS)
    done = cli("check", f"{name}.py::k", "--json", *wanted.get("args", "").split())
    assert done.code == int(wanted["exit"])
    if done.code == 2:
        assert done.out == ""
    else:
        assert any(f["severity"] == "error" for f in done.json["findings"])

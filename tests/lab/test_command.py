"""`tilelab lab`: what it refuses, each in one line. What it opens is tested in a browser."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--puzzle", "999"], "999"),
        (["--port", "0"], "--port 0"),
        (["--folder", "/dev/null/p"], "cannot make the folder /dev/null/p"),
        (["--lang", "fr"], "--lang"),
    ],
)
def test_what_cannot_be_opened_is_one_line(shell, options, words):
    done = shell("lab", "--no-browser", *options)
    assert done.code == 2
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""

"""``tilelab view trace``: a page, a picture, text or JSON of one block's steps."""

from __future__ import annotations

import json
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1] / "debugger" / "kernels.py"


def test_text_of_a_step(cli):
    done = cli("view", "trace", f"{KERNELS}::softmax", "--const", "M=8", "--const", "N=16", "--block", "1", "--step", "2", "--watch", "max(top)")
    assert done.code == 0, done.err
    assert "softmax, block (1, 0, 0) · 7 steps" in done.out
    assert "T.reduce_max(x, top, dim=1)" in done.out
    assert "max(top) = " in done.out


def test_json_and_page(cli, tmp_path):
    options = (f"{KERNELS}::matmul", "--const", "M=32", "--const", "N=32", "--const", "K=32", "--break", "c[0, 0] != 0")
    record = cli("view", "trace", *options, "--json").json
    assert (record["kind"], record["data"]["count"]) == ("trace", 9)
    assert record["data"]["breakpoints"][0]["condition"] == "c[0, 0] != 0"
    assert {b["name"] for b in record["data"]["buffers"]} == {"A", "B", "C", "a", "b", "c"}
    assert cli("view", "trace", *options, "-o", tmp_path / "trace.html").code == 0
    assert json.dumps(str(KERNELS.parent)) not in (tmp_path / "trace.html").read_text()


def test_mistakes_are_one_line(cli):
    size = ("--const", "M=8", "--const", "N=16")
    for more, said in ((("--block", "9"), "no step of block"), (("--step", "99"), "steps are 0 to 6"), (("--buffer", "zz"), "no value of 'zz'")):
        done = cli("view", "trace", f"{KERNELS}::softmax", *size, *more)
        assert done.code == 2
        assert said in done.err
        assert "Traceback" not in done.err

"""``tilelab run``: unmodified scripts, each of which checks itself against torch on cuda tensors."""

import json
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent / "scripts"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("softmax", "softmax ok"),
        ("gemm", "gemm ok"),
        ("lazy_prim_func", "lazy ok"),
        pytest.param("autotune", "autotune ok", marks=pytest.mark.slow),
        pytest.param("par_compile", "par_compile ok", marks=pytest.mark.slow),
    ],
)
def test_scripts_run_as_they_are(shell, tmp_path, script, said):
    done = shell("run", SCRIPTS / f"{script}.py")
    assert done.code == 0, done.err
    assert said in done.out
    if script == "gemm":  # it prints a latency
        assert "(simulated)" in done.out
        assert "not a GPU's" in done.err
    assert list(tmp_path.iterdir()) == [], "nothing may be left in the working folder"


@pytest.mark.slow
def test_arguments_and_target_reach_the_script(shell):
    done = shell("run", "--target", "sm_80", SCRIPTS / "softmax.py", "--flag", "7")
    assert done.code == 0, done.err
    assert "simulator (sm_80)" in done.out
    assert "['--flag', '7']" in done.out


def test_findings_decide_only_when_checked(shell, tmp_path):
    script = str(SCRIPTS / "racy.py")
    assert shell("run", script).code == 0
    done = shell("run", "--check", "--json", "report.json", script)
    assert done.code == 1
    assert done.out == "ran\n"
    report = json.loads((tmp_path / "report.json").read_text())
    assert [f["code"] for f in report["findings"]] == ["TL201"]
    assert (report["findings"][0]["file"], report["findings"][0]["line"]) == (script, 12)
    assert "TL201" in done.err


@pytest.mark.parametrize(("body", "code"), [("import sys; sys.exit(5)", 5), ("raise ValueError('x')", 1)])
def test_exit_status_is_the_scripts_own(shell, tmp_path, body, code):
    (tmp_path / "s.py").write_text(body)
    done = shell("run", "s.py")
    assert done.code == code
    if "ValueError" in body:
        assert done.err.splitlines()[0].startswith("Traceback")
        assert "tilelab/" not in done.err

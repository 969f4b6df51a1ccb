"""What is shipped: the wheel carries puzzles without their answers and the front ends built; the sdist carries everything."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built):
    return zipfile.ZipFile(next(built.glob("*.whl")))


def test_the_wheel_carries_no_answers(wheel):
    names = [n for n in wheel.namelist() if not n.startswith("tilelab/course/templates/")]  # of puzzles yet to be written
    assert [n for n in names if n.endswith(("solution.py", "puzzle.py")) or "/wrong/" in n] == []
    for puzzle in ("01_copy", "07_row_sum", "25_tiled_gemm"):
        assert {f"tilelab/_puzzles/{puzzle}/{f}" for f in ("puzzle.toml", "stub.py", "README.md", "README.zh.md")} <= set(names)


def test_the_wheel_carries_the_front_ends_once(wheel):
    names = wheel.namelist()
    assert len(names) == len(set(names))
    assert "tilelab/static/layout.js" in names
    assert len([n for n in names if n.endswith("share/jupyter/labextensions/tilelab/package.json")]) == 1
    assert not [n for n in names if n.startswith(("tests/", "visualizers/", "node_modules", "tilelab/labextension"))]


def test_the_sdist_carries_everything(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {n.partition("/")[2] for n in archive.getnames()}
    for name in (
        "puzzles/01_copy/solution.py",
        "puzzles/01_copy/wrong",
        "Makefile",
        ".ci/run",
        "tests/conftest.py",
        "visualizers/package.json",
        "tilelab/static/layout.js",
    ):
        assert name in names or any(n.startswith(f"{name}/") for n in names), name
    assert not [n for n in names if "node_modules" in n or n.startswith((".venv", "build/"))]


def test_the_wheel_works_without_node(built, tmp_path):
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"PATH": "/nonexistent", "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run([sys.executable, "-m", "tilelab", "puzzles", "list"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "01_copy" in done.stdout or "opy" in done.stdout
    where = subprocess.run(
        [sys.executable, "-c", "import tilelab; print(tilelab.__file__)"], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert where.stdout.startswith(str(tmp_path))

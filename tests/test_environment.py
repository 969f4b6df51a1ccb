"""The script behind `make venv`: which torch it takes, and that a second run has nothing to do."""

import importlib.util
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def environment():
    spec = importlib.util.spec_from_file_location("environment", ROOT / ".ci" / "environment.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("requirements", "cuda"),
    [
        (["filelock", "sympy>=1.13"], False),
        (["filelock", "nvidia-cublas==13.1; platform_system == 'Linux'"], True),
        (["cuda-bindings>=13; platform_system == 'Linux'"], True),
        (["triton==3.7; platform_system == 'Linux'"], True),
        ([], False),
    ],
)
def test_a_cuda_build_is_known_by_what_it_requires(environment, requirements, cuda):
    assert environment.brings_cuda(requirements) is cuda


def test_the_torch_that_is_here_fits_the_machine(environment):
    assert environment.brings_cuda(metadata.requires("torch") or ()) <= environment.has_gpu() or sys.platform != "linux"


def test_the_stamp_follows_what_is_installed(environment, monkeypatch, tmp_path):
    before = environment._stamp()
    assert environment._stamp() == before
    changed = tmp_path / "constraints.txt"
    changed.write_text("torch==2.6.0\n")
    monkeypatch.setattr(environment, "CONSTRAINTS", changed)
    assert environment._stamp() != before


def test_a_ready_environment_takes_no_time(environment, monkeypatch, tmp_path):
    python = tmp_path / "python"
    python.write_text("")
    stamp = tmp_path / "stamp"
    stamp.write_text(environment._stamp())
    monkeypatch.setattr(environment, "PYTHON", python)
    monkeypatch.setattr(environment, "STAMP", stamp)
    monkeypatch.setattr(environment, "_make", lambda: pytest.fail("it sets up again"))
    assert environment.main() == 0


def test_ci_installs_nothing_but_through_apt_and_make():
    text = (ROOT / ".ci" / "run").read_text()
    assert "make test" in text
    assert "pip install" not in text
    assert subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=False).returncode == 0

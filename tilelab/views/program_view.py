"""The program view: Python ↔ tile IR ↔ lowered IR ↔ generated source ↔ PTX ↔ SASS, linked by line; pass by pass; variants side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import combinations
from pathlib import PurePath
from typing import Any

import numpy as np

from tilelab import ir, ir_text
from tilelab.artifact import Artifact
from tilelab.errors import InputError
from tilelab.machine import canonical_target, is_nvidia
from tilelab.views import program_link
from tilelab.views.program_passes import Texts, differences, history
from tilelab.views.schema_program import ProgramPane, ProgramPlace, ProgramVariant
from tilelab.views.view import View
from tilelab.views.words import word

PANES = ("python", "tile", "lowered", "source", "ptx", "sass")
_MOST = 8  # variants of one view


def program(
    *kernels: Any,
    target: str | Sequence[str] = "sm_80",
    consts: Mapping[str, Any] | None = None,
    passes: bool = True,
    assemble: bool = False,
    show: Sequence[str] = ("python", "lowered", "source"),
    lang: str = "en",
) -> View:
    """Show what a kernel becomes on its way to the machine, every line linked to the user's.

    Args:
        kernels: What :func:`tilelab.lower` takes, Artifacts, or what :func:`tilelab.whatif` returned; several are shown side by side.
        target: What kernels are lowered for; with several targets, each. Default: ``"sm_80"``.
        consts: Constants of the kernels.
        passes: Keep what each compiler pass changed. Default: True.
        assemble: Compile for PTX and SASS as well; takes nvcc. Default: False.
        show: The panes shown first, among ``python tile lowered source ptx sass``.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Raises:
        InputError: There is no kernel, no such pane, or too many variants.
        KernelRefused: TileLang refuses a kernel.
    """
    unknown = [key for key in show if key not in PANES]
    if unknown or not show:
        raise InputError(f"no pane is called {', '.join(map(repr, unknown)) or 'nothing'}", fix=f"there are {', '.join(PANES)}")
    artifacts = [a for kernel in kernels for a in _artifacts(kernel, target, consts, passes, assemble)]
    if not 0 < len(artifacts) <= _MOST:
        raise InputError(f"{len(artifacts)} programs cannot be shown side by side", fix=f"give 1 to {_MOST}")
    texts, places = Texts(), _Places()
    variants = [_variant(name, a, places, texts, assemble, lang) for name, a in artifacts]
    _tell_apart(variants)
    kernel = variants[0]["kernel"]
    targets = ", ".join(dict.fromkeys(v["target"] for v in variants))
    data = {
        "kernel": kernel,
        "files": places.files,
        "places": places.records,
        "texts": texts.lines,
        "variants": variants,
        "diffs": _diffs(variants),
        "selected": 0,
        "beside": 1 if len(variants) > 1 else -1,
        "shown": [key for key in PANES if key in show],
    }
    return View(kind="program", title=word("program_of", lang, kernel=kernel, targets=targets), data=data, lang=lang)


def _artifacts(kernel: Any, target: Any, consts: Any, passes: bool, assemble: bool) -> list[tuple[str, Artifact]]:
    if isinstance(kernel, Artifact):
        return [("", kernel)]
    if hasattr(kernel, "variants"):  # of what-if
        return [(", ".join(f"{k}={v}" for k, v in one.edits.items()), one.artifact) for one in kernel.variants if one.artifact is not None]
    lower = import_module("tilelab.compiler").lower
    targets = [target] if isinstance(target, str) else list(target)
    return [
        ("", lower(kernel, target=t, consts=consts, history=passes, assemble=assemble and is_nvidia(canonical_target(t)))) for t in targets
    ]


def _tell_apart(variants: Sequence[ProgramVariant]) -> None:
    """Number the variants that would otherwise be called the same."""
    titles = [(v["kernel"], v["target"], v["name"]) for v in variants]
    for k, title in enumerate(titles):
        if titles.count(title) > 1:
            variants[k]["name"] = f"{title[2]} #{titles[: k + 1].count(title)}".strip()


class _Places:
    """User lines, each held once; files are named as short as they can be told apart."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.records: list[ProgramPlace] = []
        self._files: dict[str, int] = {}
        self._at: dict[tuple[int, int, int], int] = {}

    def file(self, name: str) -> int:
        if name not in self._files:
            self._files[name] = len(self.files)
            short = PurePath(name.replace("\\", "/")).name
            self.files.append(name if short in self.files else short)
        return self._files[name]

    def of(self, loc: ir.SourceLoc | None) -> int:
        if loc is None:
            return -1
        key = (self.file(loc.file), loc.line, self.of(loc.caller))
        if key not in self._at:
            self._at[key] = len(self.records)
            self.records.append(ProgramPlace(file=key[0], line=key[1], caller=key[2]))
        return self._at[key]


def _variant(name: str, a: Artifact, places: _Places, texts: Texts, assemble: bool, lang: str) -> ProgramVariant:
    tile, lowered = ir_text.listing(a.tile), ir_text.listing(a.program)
    source = a.source.splitlines()
    of_source = [places.of(loc) for loc in program_link.places(a.program, a.source)]
    panes = [
        _pane("tile", "python", [x.text for x in tile], [places.of(x.loc) for x in tile]),
        _pane("lowered", "python", [x.text for x in lowered], [places.of(x.loc) for x in lowered]),
        _pane("source", _language(a), source, of_source),
    ]
    for key, text in (("ptx", a.ptx), ("sass", a.sass)):
        if text:
            lines = a.lines.get(key, ())
            known = [of_source[n - 1] if 0 < n <= len(of_source) else -1 for n in lines]
            panes.append(_pane(key, key, text.splitlines(), known))
    stmts = [s for s in ir.walk(a.program) if isinstance(s, ir.Stmt)]
    return ProgramVariant(
        name=name,
        target=a.target,
        kernel=a.tile.name,
        panes=[_python(a, places), *panes],
        passes=history(a.passes, texts, a.start),
        note=word("no_ptx", lang, target=a.target) if assemble and not a.target.startswith("sm_") else "",
        located=round(sum(s.loc is not None for s in stmts) / max(1, len(stmts)), 4),
    )


def _pane(key: str, language: str, lines: list[str], place: Sequence[int]) -> ProgramPane:
    return ProgramPane(key=key, language=language, lines=lines, place=np.array([*place][: len(lines)], dtype=np.int32))


def _python(a: Artifact, places: _Places) -> ProgramPane:
    """The files that statements name, one after the other; a line that some statement names is a place."""
    sources = {**a.tile.sources, **a.program.sources}
    named: dict[str, set[int]] = {}
    for p in (a.tile, a.program):
        for s in ir.walk(p):
            loc = s.loc if isinstance(s, ir.Stmt) else None
            while loc is not None:
                named.setdefault(loc.file, set()).add(loc.line)
                loc = loc.caller
    lines: list[str] = []
    place: list[int] = []
    files = [f for f in named if f in sources]
    for file in files:
        if len(files) > 1:
            lines.append(f"# {'-' * 20} {places.files[places.file(file)]}")
            place.append(-1)
        for number, line in enumerate(sources[file].splitlines(), 1):
            lines.append(line.rstrip())
            place.append(places.of(ir.SourceLoc(file=file, line=number)) if number in named[file] else -1)
    return _pane("python", "python", lines, place)


def _language(a: Artifact) -> str:
    return next((name for start, name in _LANGUAGES if a.target.startswith(start)), "C")


_LANGUAGES = (("sm_", "CUDA"), ("gfx", "HIP"), ("metal", "Metal"), ("webgpu", "WGSL"), ("ascend", "Ascend C"), ("cutedsl", "CuTe DSL"))


def _diffs(variants: Sequence[ProgramVariant]) -> list[dict[str, Any]]:
    """Where the texts of each two variants differ."""
    out: list[dict[str, Any]] = []
    for a, b in combinations(range(len(variants)), 2):
        of_b = {p["key"]: p["lines"] for p in variants[b]["panes"]}
        for p in variants[a]["panes"]:
            if p["key"] in of_b:
                found = [list(h) for h in differences(p["lines"], of_b[p["key"]])]
                out.append({"a": a, "b": b, "key": p["key"], "hunks": found})
    return out

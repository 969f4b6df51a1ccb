"""Grading, the whole way: read a submission, capture it in isolation, verify the Programs, and judge them."""

from __future__ import annotations

import dataclasses
import secrets
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from tilelab import ir
from tilelab.errors import EnvironmentLacks, InputError, VerifyError
from tilelab.finding import Finding, finding
from tilelab.grader import wire
from tilelab.grader.draw import Case, draw_cases
from tilelab.grader.isolate import Captured, Failure, capture_isolated, finding_of
from tilelab.grader.judge import Runner, judge, simulator
from tilelab.grader.report import Check, Report
from tilelab.grader.sandbox import Limits
from tilelab.grader.spec import Spec
from tilelab.grader.submission import Submission, read_submission

DEVICES = ("sim", "cuda")


def grade(
    puzzle: Any, submission: str | Path | Submission, *, device: str = "sim", seed: int | None = None, limits: Limits | None = None
) -> Report:
    """Grade one submission.

    Args:
        puzzle: A :class:`~tilelab.grader.spec.Spec`, or a puzzle of :mod:`tilelab.course`.
        submission: A ``.py`` or ``.ipynb`` file, or one already read.
        device: ``"sim"``, or ``"cuda"`` to run on the GPU that is here.
        seed: Decides the hidden cases. Default: a fresh one.
        limits: What the confined process may use.

    Raises:
        InputError: No such file, or Python cannot parse it.
        EnvironmentLacks: ``device="cuda"`` with no GPU, or TileLang is missing.
    """
    spec = spec_of(puzzle)
    run, where = runner(spec, device)
    if not isinstance(submission, Submission):
        submission = read_submission(submission, spec.entry)
    seed = secrets.randbits(63) if seed is None else seed
    cases = draw_cases(spec, seed)
    sizes = _sizes(spec, cases, device)
    captured = capture_isolated(submission, spec.entry, sizes, limits, layout=spec.layout is not None)
    basis = f"{where}; isolation: {', '.join(captured.guards) or 'a process of its own'}"
    return with_shown_files(_report(spec, submission.name, cases, captured, run, basis, seed), submission)


def grade_kernel(puzzle: Any, kernel: Any, *, name: str = "kernel", device: str = "sim", seed: int | None = None) -> Report:
    """Grade a kernel object of this very process, as a notebook does. Here too only serialised Programs reach the judge."""
    from tilelab.grader.worker import capture_one

    spec = spec_of(puzzle)
    run, where = runner(spec, device)
    seed = secrets.randbits(63) if seed is None else seed
    cases = draw_cases(spec, seed)
    sizes = _sizes(spec, cases, device)
    frames = [wire.parse(capture_one(kernel, dict(s), layout=spec.layout is not None))[0] for s in sizes]
    captured = Captured(programs=tuple(read_frame(tag, body) for tag, body in frames))
    return _report(spec, name, cases, captured, run, f"{where}; isolation: none, the kernel is this process's own", seed)


def _sizes(spec: Spec, cases: Sequence[Case], device: str) -> list[Mapping[str, int]]:
    """What is captured: each case's sizes, the counted ones, and on a GPU those that are timed."""
    timed = spec.speed.sizes if spec.speed is not None and device == "cuda" else ()
    return [*(c.sizes for c in cases), spec.count_sizes, *timed]


def with_shown_files(report: Report, submission: Submission) -> Report:
    """Name files as the learner did."""
    findings = tuple(dataclasses.replace(f, file=submission.shown(f.file)) for f in report.findings)
    wrong = report.first_wrong and dataclasses.replace(report.first_wrong, file=submission.shown(report.first_wrong.file))
    checks = tuple(dataclasses.replace(c, message=_shorten(c.message, submission)) for c in report.checks)
    return dataclasses.replace(report, findings=findings, first_wrong=wrong, checks=checks)


def _shorten(text: str, submission: Submission) -> str:
    for unit in submission.units:
        text = text.replace(unit.file, submission.shown(unit.file) or unit.file)
    return text


def spec_of(puzzle: Any) -> Spec:
    """Return the Spec of what is a Spec, or has one."""
    spec = puzzle if isinstance(puzzle, Spec) else getattr(puzzle, "spec", None)
    if not isinstance(spec, Spec):
        raise InputError(f"{puzzle!r} is no puzzle", fix='use tilelab.puzzle("1")')
    return spec


def runner(spec: Spec, device: str) -> tuple[Runner, str]:
    """Return what runs Programs on ``device``, and the words for the basis."""
    if device not in DEVICES:
        raise InputError(f"device {device!r} is unknown", fix=f"use {' or '.join(DEVICES)}")
    if device == "cuda":
        from tilelab.grader.native import native_runner

        return native_runner(spec)
    return simulator(spec), f"simulated at tile level, counts predicted for {spec.arch}"


def read_frame(tag: bytes, body: bytes) -> bytes | Finding:
    """Return a frame's Program (as bytes) or the finding that refused it."""
    import json

    return body if tag == wire.PROGRAM else finding_of(json.loads(body))


def receive(item: bytes | Finding) -> ir.Program | Finding:
    """Let a Program in: parse it, hold it to the grammar and the closed lists, and refuse everything else by name."""
    from tilelab import serde
    from tilelab.verify import verify

    if isinstance(item, Finding):
        return item
    try:
        program = serde.loads(item, ir.Program)
        if program.level != "tile":
            raise VerifyError("it is not a tile-level Program")
        return verify(program)
    except VerifyError as e:
        return finding("TL702", f"refused: {e.message}", fix=e.fix or "a submission is a kernel and nothing else")
    except (InputError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, OverflowError) as e:
        return finding("TL702", f"refused: what came out of the submission is no Program ({type(e).__name__})")


def failed(spec: Spec, name: str, failure: Failure, *, basis: str = "", seed: int | None = None) -> Report:
    """Return the report of a submission that gave no Program at all."""
    where = f" ({failure.file}:{failure.line})" if failure.file and failure.line else ""
    check = Check(name=f"capture: {failure.reason}", passed=False, message=f"{failure.message}{where}")
    advice = (failure.fix,) if failure.fix else ()
    return Report(puzzle=spec.id, submission=name, score=0, max=100, passed=False, basis=basis, checks=(check,), advice=advice, seed=seed)


def _report(spec: Spec, name: str, cases: Sequence[Case], captured: Captured, run: Runner, basis: str, seed: int) -> Report:
    if captured.failure is not None:
        return failed(spec, name, captured.failure, basis=basis, seed=seed)
    programs = [receive(p) for p in captured.programs]
    known, timed = programs[: len(cases) + 1], programs[len(cases) + 1 :]
    timer = None
    if timed:
        from tilelab.grader.speed import measured_ratio

        timer = partial(measured_ratio, spec, timed, seed)
        basis = basis.replace(f"counts predicted for {spec.arch}", "speed measured against the baseline in the same run")
    return judge(spec, name, cases, known, run=run, basis=basis, seed=seed, broken=_broken(spec), timer=timer)


def _broken(spec: Spec) -> ir.Program | None:
    """Return the Program of a debug puzzle's starter, at the counted sizes."""
    return own_program(spec, "stub.py") if spec.kind == "debug" else None


def own_program(spec: Spec, file: str) -> ir.Program:
    """Return the Program of a file of the puzzle's own (its starter, its solution), at the counted sizes.

    Raises:
        InputError: There is no such file, or it cannot be captured.
    """
    path = spec.folder / file
    try:
        stamp = path.stat().st_mtime_ns
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", fix="a puzzle has a stub.py, and in the repository a solution.py") from None
    return _own_program(spec.id, path, stamp, spec.entry, tuple(sorted(spec.count_sizes.items())), spec.layout is not None)


@lru_cache(maxsize=64)
def _own_program(puzzle: str, path: Path, stamp: int, entry: str, sizes: tuple[tuple[str, int], ...], layout: bool) -> ir.Program:
    submission = read_submission(path, entry)
    if "tilelang" in sys.modules:  # our own file: it needs no isolation, and where TileLang is here already this is quicker
        from tilelab.grader.worker import capture_one, run_units

        namespace = run_units([dataclasses.asdict(u) for u in submission.units])
        item = read_frame(*wire.parse(capture_one(namespace[entry], dict(sizes), layout=layout))[0])
    else:
        captured = capture_isolated(submission, entry, [dict(sizes)], layout=layout)
        if captured.failure is not None:
            raise InputError(f"{puzzle}: its {path.name} cannot be captured: {captured.failure.message}", fix="tell the author")
        item = captured.programs[0]
    program = receive(item)
    if isinstance(program, Finding):
        raise InputError(f"{puzzle}: its {path.name} cannot be captured: {program.message}", fix="tell the author")
    return program


__all__ = ["DEVICES", "EnvironmentLacks", "failed", "grade", "grade_kernel", "own_program", "receive", "runner", "spec_of"]

"""Grading a class: every submission below a folder, resumable, with one line on disk for each as soon as it is graded."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelab.errors import InputError
from tilelab.grader.pool import grade_many
from tilelab.grader.record import versions
from tilelab.grader.report import Report
from tilelab.grader.secret import Key
from tilelab.grader.spec import Spec
from tilelab.reports import plain

SCHEMA, VERSION = "tilelab.class", 1
FILE = "results.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One submission of a class: its file, its name below the class's folder, whose it is, and its seed (None: a fresh one)."""

    path: Path
    name: str
    student: str
    seed: int | None

    @property
    def sha256(self) -> str:
        """Hash of the file; empty where it cannot be read."""
        try:
            return hashlib.sha256(self.path.read_bytes()).hexdigest()
        except OSError:
            return ""


def jobs_of(spec: Spec, folder: Path, paths: Sequence[Path], key: Key | None, seed: int | None = None) -> list[Job]:
    """Return the jobs of a class. A student is the first part of the way from ``folder`` to a file: ``ada.py``, ``ada/01.ipynb``."""
    out = []
    for path in paths:
        below = path.absolute().relative_to(folder.absolute())
        student = unicodedata.normalize("NFC", below.parts[0] if len(below.parts) > 1 else below.stem)
        out.append(Job(path=path, name=below.as_posix(), student=student, seed=key.seed(spec.id, student) if key else seed))
    return out


def grade_class(
    spec: Spec,
    jobs: Sequence[Job],
    out: Path,
    *,
    device: str = "sim",
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[dict[str, Any]]:
    """Grade what ``out`` has no result of yet, and return the results of all jobs in their order.

    A result counts again when file, puzzle, device, versions and (with a key) seed are the same. What the grader itself failed at
    is graded anew.

    Raises:
        InputError: The folder cannot be written; what was graded before stays.
    """
    about = {"puzzle": spec.id, "puzzle_sha256": puzzle_digest(spec), "device": device, "versions": versions()}
    hashes = [j.sha256 for j in jobs]
    known = {_identity(r): r for r in read_results(out / FILE)}
    results: dict[int, dict[str, Any]] = {}
    for i, (job, digest) in enumerate(zip(jobs, hashes, strict=True)):
        found = known.get((job.name, digest, spec.id, about["puzzle_sha256"], device, json.dumps(about["versions"], sort_keys=True)))
        if found is not None and job.seed in (None, found["seed"]) and not _grader_failed(found):
            results[i] = found
    todo = [i for i in range(len(jobs)) if i not in results]
    progress(len(results), len(jobs))
    if todo:
        seeds = [secrets.randbits(63) if jobs[i].seed is None else jobs[i].seed for i in todo]
        graded = grade_many(spec, [jobs[i].path for i in todo], device=device, seeds=seeds, scheduler=scheduler, workers=workers)
        with _appending(out / FILE) as write:
            for at, report in graded:
                i = todo[at]
                results[i] = _result(about, jobs[i], hashes[i], seeds[at], report)
                write(results[i])
                progress(len(results), len(jobs))
    return [results[i] for i in range(len(jobs))]


def _result(about: Mapping[str, Any], job: Job, digest: str, seed: int | None, report: Report) -> dict[str, Any]:
    graded = plain(report.to_json()) | {"submission": job.name, "advice": list(report.advice)}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        **about,
        "submission": job.name,
        "student": job.student,
        "sha256": digest,
        "seed": seed,
        "report": graded,
        "statements": list(report.statements),
    }


def _identity(r: Mapping[str, Any]) -> tuple[Any, ...]:
    return (r["submission"], r["sha256"], r["puzzle"], r["puzzle_sha256"], r["device"], json.dumps(r["versions"], sort_keys=True))


def _grader_failed(result: Mapping[str, Any]) -> bool:
    return any(c["name"] == "capture: grader" for c in result["report"]["checks"])


def puzzle_digest(spec: Spec) -> str:
    """Return a hash of what decides a grade: ``puzzle.toml``, the oracle and (debug puzzles) the starter."""
    h = hashlib.sha256()
    for name in ("puzzle.toml", "oracle.py", "stub.py"):
        path = spec.folder / name
        if path.is_file() and (name != "stub.py" or spec.kind == "debug"):
            h.update(path.read_bytes())
    return h.hexdigest()


def read_results(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the results of a file; a line that was torn by a power cut is no result."""
    try:
        text = path.read_text("utf-8", "replace")
    except FileNotFoundError:
        return
    except OSError as e:
        raise InputError(f"{path}: cannot be read: {e.strerror}", fix="give the folder of an earlier run, or a new one") from None
    for line in text.split("\n"):
        try:
            result = json.loads(line)
            if result["schema"] == SCHEMA and result["version"] == VERSION and _identity(result) and result["report"]["checks"] is not None:
                yield result
        except (ValueError, KeyError, TypeError):
            continue


class _appending:
    """Appends one synced line for each result."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Callable[[Mapping[str, Any]], None]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
            size = os.fstat(self.fd).st_size
            if size and hasattr(os, "pread") and os.pread(self.fd, 1, size - 1) != b"\n":
                self._put(b"\n")  # a torn last line stays alone on its own
        except OSError as e:
            raise self._cannot(e) from None
        return self.write

    def write(self, result: Mapping[str, Any]) -> None:
        try:
            self._put((json.dumps(result, separators=(",", ":")) + "\n").encode())
            os.fsync(self.fd)
        except OSError as e:
            raise self._cannot(e) from None

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view) :]

    def _cannot(self, e: OSError) -> InputError:
        return InputError(f"{self.path} cannot be written: {e.strerror}", fix="make room and run again: what is graded already is kept")

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def verify(spec: Spec, results: Sequence[Mapping[str, Any]], folder: Path, key: Key | None, commitment: str | None) -> list[str]:
    """Grade every submission of ``results`` again with its seed and return what does not fit, a sentence each; empty: all of it fits.

    Args:
        spec: The puzzle.
        results: What was published.
        folder: The submissions.
        key: The revealed key; None where seeds were drawn freely.
        commitment: What was published before the deadline.
    """
    wrong = []
    if key is not None and commitment is not None and key.commitment != commitment.strip().lower():
        wrong.append("the key does not fit the commitment: it was chosen after the deadline, or it is another key")
    if results and results[0]["puzzle_sha256"] != puzzle_digest(spec):
        wrong.append(f"{spec.id} is not what was graded: puzzle.toml or oracle.py differs")
    for r in results:
        if key is not None and r["seed"] != key.seed(spec.id, r["student"]):
            wrong.append(f"{r['submission']}: its seed is not what the key gives {r['student']}")
        path = folder / r["submission"]
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != r["sha256"]:
            wrong.append(f"{r['submission']}: the file is missing or is not the one that was graded")
    at = [folder / r["submission"] for r in results if (folder / r["submission"]).is_file()]
    given = [r for r in results if (folder / r["submission"]).is_file()]
    for i, report in grade_many(spec, at, device=given[0]["device"] if given else "sim", seeds=[r["seed"] for r in given]):
        mine, theirs = plain(report.to_json()), given[i]["report"]
        for what in ("score", "max", "passed", "counts"):
            if mine[what] != theirs[what]:
                wrong.append(f"{given[i]['submission']}: {what} is {mine[what]}, and {theirs[what]} was published")
    return wrong

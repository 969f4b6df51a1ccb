"""Records of grades: comparable, one JSON object a line, each chained to the one before by its hash."""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tilelab.errors import InputError
from tilelab.grader.report import Report

SCHEMA, VERSION = "tilelab.grade", 1


def append_records(path: Path, reports: Sequence[Report], *, device: str) -> None:
    """Append a record of each report to ``path``.

    Raises:
        InputError: The file holds something else, or its chain is broken, or it cannot be written.
    """
    last = _last_hash(path)
    lines = []
    for report in reports:
        record = {
            "schema": SCHEMA,
            "version": VERSION,
            "time": round(time.time(), 3),
            "device": device,
            "versions": versions(),
            "seed": report.seed,
            "submission_sha256": _digest(report.submission),
            **{k: v for k, v in report.to_json().items() if k != "findings"},
            "findings": sorted({f.code for f in report.findings}),
            "previous": last,
        }
        last = chained(record)
        lines.append(json.dumps({**record, "hash": last}, ensure_ascii=False) + "\n")
    try:
        with path.open("a", encoding="utf-8") as f:
            f.write("".join(lines))
    except OSError as e:
        raise InputError(
            f"{path} cannot be written: {e.strerror}", fix="give --record a file in a folder that exists and is yours"
        ) from None


def chained(record: Mapping[str, Any]) -> str:
    """Return the hash of a record (without its own ``hash``), which the next one carries."""
    plain = {k: v for k, v in record.items() if k != "hash"}
    return hashlib.sha256(json.dumps(plain, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, str]:
    """Return the versions on which a grade depends."""
    out = {"python": platform.python_version()}
    for name in ("tilelab", "tilelang", "numpy", "torch"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            continue
    return out


def _last_hash(path: Path) -> str:
    if not path.is_file():
        return ""
    last = ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(line)
            ok = record["schema"] == SCHEMA and record["previous"] == last and record["hash"] == chained(record)
        except (ValueError, KeyError, TypeError):
            ok = False
        if not ok:
            raise InputError(f"{path}:{number}: not a grade record, or the chain of hashes is broken there", fix="give --record a new file")
        last = record["hash"]
    return last


def _digest(submission: str) -> str | None:
    path = Path(submission)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None

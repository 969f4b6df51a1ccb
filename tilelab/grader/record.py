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
    known = read_records(path, "give --record a new file") if path.exists() else []
    last = known[-1]["hash"] if known else ""
    lines = []
    for report in reports:
        record = {
            "schema": SCHEMA,
            "version": VERSION,
            "time": round(time.time(), 3),
            "device": device,
            "hardware": _hardware(device),
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


def read_records(path: Path, fix: str) -> list[dict[str, Any]]:
    """Return the records of a file, in order.

    Raises:
        InputError: It cannot be read, holds something else, or the chain of hashes is broken; ``fix`` is what to try.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        raise InputError(f"{path}: cannot be read: {e}", fix=fix) from None
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, 1):
        last = records[-1]["hash"] if records else ""
        try:
            record = json.loads(line)
            ok = record["schema"] == SCHEMA and record["previous"] == last and record["hash"] == chained(record)
        except (ValueError, KeyError, TypeError):
            ok = False
        if not ok:
            raise InputError(f"{path}:{number}: not a grade record, or the chain of hashes is broken there", fix=fix)
        records.append(record)
    return records


def _hardware(device: str) -> str:
    """What the kernels ran on: the GPU by name, or the simulator, which is the same everywhere."""
    if device != "cuda":
        return "simulator"
    import torch

    return str(torch.cuda.get_device_name())


def _digest(submission: str) -> str | None:
    path = Path(submission)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None

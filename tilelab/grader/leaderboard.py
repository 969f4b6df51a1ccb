"""A leaderboard of grade records: a static page in which predicted and measured results are tables of their own, never mixed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilelab.grader.record import read_records
from tilelab.grader.report import amount, whole


def merge(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the records of several files, each once.

    Raises:
        InputError: A file cannot be read, or its chain of hashes is broken.
    """
    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        for record in read_records(path, "leave the file out"):
            found.setdefault(record["hash"], record)
    return list(found.values())


def tables(records: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str, str], list[Mapping[str, Any]]]:
    """Return (puzzle, ``"predicted"`` or ``"measured"``, hardware) → its records, the best first; each submission with its best only."""
    out: dict[tuple[str, str, str], dict[str, Mapping[str, Any]]] = {}
    for r in records:
        if r["passed"]:
            best = out.setdefault(_key(r), {})
            who = str(r.get("submission_sha256") or r["submission"])
            if who not in best or _rank(r) < _rank(best[who]):
                best[who] = r
    return {key: sorted(best.values(), key=_rank) for key, best in sorted(out.items())}


def _key(r: Mapping[str, Any]) -> tuple[str, str, str]:
    measured = "speed" in r["counts"]
    return str(r["puzzle"]), "measured" if measured else "predicted", str(r.get("hardware") or r["device"])


def _rank(r: Mapping[str, Any]) -> tuple[float, ...]:
    ratio = (r["counts"].get("speed") or {}).get("value")
    return (-(ratio or 0.0), -r["score"], r["time"])


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page; it needs no network, and whatever comes from a record is escaped."""
    head = f'<meta charset="utf-8"><title>TileLab leaderboard</title>{_STYLE}'
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{"".join(_parts(records))}</body></html>\n'


def _parts(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "<h1>TileLab leaderboard</h1><p>Measured and predicted results are not comparable, nor are those of different machines.</p>"
    for (puzzle, kind, hardware), rows in tables(records).items():
        yield f'<h2 data-kind="{kind}">{escape(puzzle)} · {kind} · {escape(hardware)}</h2><table><tr>'
        yield "".join(
            f"<th>{h}</th>" for h in ("", "submission", "score", "speed" if kind == "measured" else "counts", "versions", "record")
        )
        yield "</tr>" + "".join(_row(i, r, kind) for i, r in enumerate(rows, 1)) + "</table>"


def _row(place: int, r: Mapping[str, Any], kind: str) -> str:
    if kind == "measured":
        figure = f"{r['counts']['speed']['value'] or 0:.3f} × the baseline"
    else:
        figure = ", ".join(f"{n} {amount(c['value'])}" for n, c in r["counts"].items())
    versions = ", ".join(f"{n} {v}" for n, v in r["versions"].items())
    cells = (place, r["submission"], f"{whole(r['score'])} / {whole(r['max'])}", figure, versions, r["hash"][:12])
    return f"<tr>{''.join(f'<td>{escape(str(c))}</td>' for c in cells)}</tr>"


_STYLE = """<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color-scheme:light dark}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.2em .8em .2em 0;border-bottom:1px solid #8883;overflow-wrap:anywhere}
</style>"""

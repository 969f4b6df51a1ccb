"""What a teacher gets of a class: CSV, JSON, and an HTML page with the distribution, the common mistakes and what is alike."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from tilelab.files import write_text
from tilelab.finding import CODES
from tilelab.grader.similar import Pair, groups
from tilelab.grader.spec import Spec

Results = Sequence[Mapping[str, Any]]
_COLUMNS = ("student", "submission", "score", "max", "passed", "first_failure", "findings", "alike", "seed", "sha256", "basis")
_BINS = 20


def write_reports(out: Path, spec: Spec, results: Results, pairs: Sequence[Pair], commitment: str = "") -> list[Path]:
    """Write ``grades.csv``, ``grades.json`` and ``report.html`` into ``out``."""
    made = {
        "grades.csv": table(results, pairs),
        "grades.json": json.dumps(summary(spec, results, pairs, commitment), indent=1) + "\n",
        "report.html": page(spec, results, pairs, commitment),
    }
    for name, text in made.items():
        write_text(out / name, text)
    return [out / name for name in made]


def table(results: Results, pairs: Sequence[Pair] = ()) -> str:
    """Return the results as CSV; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    alike = _alike(pairs)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for r in results:
        g = r["report"]
        findings = " ".join(sorted({f["code"] for f in g["findings"]}))
        row = (r["student"], r["submission"], g["score"], g["max"], "yes" if g["passed"] else "no", first_failure(g), findings,
               " ".join(alike.get(r["submission"], ())), r["seed"], r["sha256"], g["basis"])  # fmt: skip
        rows.writerow([_harmless(cell) for cell in row])
    return text.getvalue().encode("utf-8", "replace").decode()


def _harmless(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def first_failure(report: Mapping[str, Any]) -> str:
    """Return the first check that failed, in a few words; empty if none did."""
    failed = next((c for c in report["checks"] if not c["passed"]), None)
    return f"{failed['name']}: {failed['message']}"[:160] if failed else ""


def summary(spec: Spec, results: Results, pairs: Sequence[Pair], commitment: str) -> dict[str, Any]:
    """Return all of it as JSON values."""
    scores = [r["report"]["score"] for r in results]
    return {
        "schema": "tilelab.class.report",
        "version": 1,
        "puzzle": spec.id,
        "commitment": commitment or None,
        "submissions": len(results),
        "passed": sum(bool(r["report"]["passed"]) for r in results),
        "mean": round(sum(scores) / len(scores), 2) if scores else None,
        "distribution": histogram(scores),
        "mistakes": [{"what": what, "submissions": n, "example": example} for what, n, example in mistakes(results)],
        "alike": [asdict(p) for p in pairs],
        "results": [{k: v for k, v in r.items() if k != "statements"} for r in results],
    }


def histogram(scores: Sequence[float]) -> list[int]:
    """Return how many scores lie in each twentieth of 0 to 100."""
    bins = [0] * _BINS
    for s in scores:
        bins[min(_BINS - 1, max(0, int(s * _BINS / 100)))] += 1
    return bins


def mistakes(results: Results) -> list[tuple[str, int, str]]:
    """Return (mistake, submissions, one of them), the most common first: finding codes of errors, and checks that failed without one."""
    count: Counter[str] = Counter()
    example: dict[str, str] = {}
    for r in results:
        own = {_titled(f["code"]) for f in r["report"]["findings"] if f["severity"] == "error"}
        for c in r["report"]["checks"]:
            if not c["passed"] and not c["message"].startswith("TL"):
                own.add(c["name"] if c["name"].startswith("capture") or not own else "")
        for what in own - {""}:
            count[what] += 1
            example.setdefault(what, r["submission"])
    return [(what, n, example[what]) for what, n in sorted(count.items(), key=lambda item: (-item[1], item[0]))]


def _titled(code: str) -> str:
    return f"{code} {CODES[code][0]}" if code in CODES else code


def _alike(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for p in pairs:
        out.setdefault(p.a, []).append(p.b)
        out.setdefault(p.b, []).append(p.a)
    return out


# ------------------------------------------------------------------------------------------------------ the page
def page(spec: Spec, results: Results, pairs: Sequence[Pair], commitment: str = "") -> str:
    """Return a page that stands alone; whatever comes from a submission is escaped."""
    title = f"{spec.id}: {len(results)} submissions"
    body = "".join(_parts(spec, results, pairs, commitment))
    head = f'<meta charset="utf-8"><title>{escape(title)}</title>{_STYLE}'
    text = f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    return text.encode("utf-8", "replace").decode()


def _parts(spec: Spec, results: Results, pairs: Sequence[Pair], commitment: str) -> Iterator[str]:
    scores = [r["report"]["score"] for r in results]
    passed = sum(bool(r["report"]["passed"]) for r in results)
    yield f"<h1>{escape(spec.id)} · {escape(spec.title['en'])}</h1>"
    mean = f"{sum(scores) / len(scores):.1f}" if scores else "–"
    yield f"<p>{len(results)} submissions, {passed} passed, mean score {mean}.</p>"
    bases = Counter(r["report"]["basis"] for r in results)
    yield f"<p>Basis of the grades: {'; or '.join(escape(b) for b, _ in bases.most_common(3))}.</p>"
    if commitment:
        yield f"<p>Seeds are drawn with the key whose commitment is <code>{escape(commitment)}</code>.</p>"
    yield "<h2>Distribution</h2>" + _bars(histogram(scores))
    found = mistakes(results)
    if found:
        rows = ((what, n, _link(example)) for what, n, example in found[:25])
        yield "<h2>Common mistakes</h2>" + _table(("mistake", "submissions", "for example"), rows)
    if pairs:
        yield "<h2>Alike</h2><p>These share what few others have. That is a reason to look, no verdict.</p>"
        for group in groups(pairs)[:50]:
            names = set(group)
            inside = [p for p in pairs if p.a in names]
            why = ", ".join(sorted({p.why for p in inside}))
            shown = ", ".join(map(_link, group[:40])) + (" …" if len(group) > 40 else "")
            yield f"<p>{shown}: {escape(why)} ({max(p.share for p in inside):.0%})</p>"
    yield "<h2>Submissions</h2>"
    yield "<table><tr><th>student</th><th>submission</th><th>score</th><th>first failure</th></tr>"
    yield from map(_row, results)
    yield "</table>"


def _row(r: Mapping[str, Any]) -> str:
    g = r["report"]
    kind = "ok" if g["passed"] else "no"
    checks = "".join(f"<li class={'ok' if c['passed'] else 'no'}>{escape(c['name'])} {escape(c['message'])}</li>" for c in g["checks"])
    advice = "".join(f"<li>{escape(a)}</li>" for a in g.get("advice", ()))
    more = f"<details><summary>{escape(first_failure(g)) or 'all checks passed'}</summary><ul>{checks}</ul><ul>{advice}</ul></details>"
    name = escape(r["submission"])
    cells = (escape(r["student"]), name, f"{g['score']} / {g['max']}", more)
    return f'<tr class="{kind}" id="{name}">{"".join(f"<td>{c}</td>" for c in cells)}</tr>'


def _link(name: str) -> str:
    return f'<a href="#{escape(name)}">{escape(name)}</a>'


def _table(head: Sequence[str], rows: Iterator[tuple[Any, ...]]) -> str:
    """A table whose last cell of each row is HTML already."""
    lines = "".join(f"<tr>{''.join(f'<td>{escape(str(v))}</td>' for v in row[:-1])}<td>{row[-1]}</td></tr>" for row in rows)
    return f"<table><tr>{''.join(f'<th>{h}</th>' for h in head)}</tr>{lines}</table>"


def _bars(bins: Sequence[int]) -> str:
    """The distribution: how many scores in each five points."""
    most, width, height = max(bins) or 1, 30, 120
    parts = []
    for i, n in enumerate(bins):
        tall = round(height * n / most)
        x = i * width
        label = f'<text x="{x + width / 2:g}" y="{height - tall + 10}" text-anchor="middle">{n}</text>' if n else ""
        parts.append(f'<rect x="{x + 2}" y="{height - tall + 14}" width="{width - 4}" height="{tall}"/>{label}')
        if i % 4 == 0:
            parts.append(f'<text x="{x}" y="{height + 30}">{i * 5}</text>')
    parts.append(f'<text x="{len(bins) * width}" y="{height + 30}" text-anchor="end">100</text>')
    box = f'width="{len(bins) * width}" height="{height + 36}" viewBox="0 0 {len(bins) * width} {height + 36}"'
    return f'<svg {box} role="img" aria-label="Distribution of scores">{"".join(parts)}</svg>'


_STYLE = """<style>
body{font:15px/1.45 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color-scheme:light dark}
table{border-collapse:collapse;width:100%}td,th{text-align:left;vertical-align:top;padding:.2em .8em .2em 0;border-bottom:1px solid #8883}
svg rect{fill:#4a7fd6}svg text{font:11px system-ui,sans-serif;fill:currentColor}
tr.ok td:nth-child(3),li.ok{color:#2e8b57}tr.no td:nth-child(3),li.no{color:#d9534f}
details ul{padding-left:1.2em}code{overflow-wrap:anywhere}
</style>"""

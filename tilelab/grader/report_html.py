"""The HTML of a report: one fragment with its own style, in which everything that comes from a submission is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

from tilelab.grader.report import amount, whole

if TYPE_CHECKING:
    from tilelab.grader.report import Check, Report


def fragment(r: Report) -> str:
    """Return the report as an HTML fragment that follows the page's light or dark colours."""
    return "".join(_parts(r))


def _parts(r: Report) -> Iterator[str]:
    state = "passed" if r.passed and r.clean else "almost" if r.passed else "failed"
    score, most = whole(r.score), whole(r.max)
    yield f'<div class="tl-report tl-{state}" data-score="{score}" data-passed="{str(r.passed).lower()}">{_STYLE}'
    yield f'<div class="tl-head"><b>{escape(r.puzzle)}</b> <span class="tl-score">{score} / {most}</span></div>'
    yield f'<div class="tl-bar" role="meter" aria-label="score" aria-valuemin="0" aria-valuemax="{most}" aria-valuenow="{score}">'
    yield f'<i style="width:{100 * r.score / r.max if r.max else 0:.0f}%"></i></div>'
    yield f"<ul>{''.join(_check(c, r.say) for c in r.checks)}</ul>"
    if r.first_wrong:
        case, said = escape(r.first_wrong.case), escape(r.say(str(r.first_wrong)))
        yield f'<p class="tl-wrong">{r.say("first wrong element").capitalize()} ({case}): <code>{said}</code></p>'
    if r.heat:
        yield _heat(r.heat, r.say("Where the output is wrong"))
    if r.findings:
        yield _table(
            tuple(map(r.say, ("code", "line", "what", "what to try"))),
            ((f.severity, (_coded(r, f.code), f.line or "", f.message, f.fix)) for f in r.findings),
        )
    if r.counts:
        points = {n: r.say(f"{whole(f.points)} of {whole(f.most)} points") for n, f in r.counts.items()}
        rows = ((n, amount(f.value), amount(f.best), f"{points[n]} {r.say(f.note)}") for n, f in r.counts.items())
        yield _table(tuple(map(r.say, ("count", "yours", "best known", "points"))), (("count", row) for row in rows))
    if r.advice:
        advice = "".join(f"<li>{escape(r.say(a))}</li>" for a in r.advice)
        yield f"<p>{r.say('to gain the next points').capitalize()}:</p><ul>{advice}</ul>"
    if r.pictures:
        rows_ = "".join(f"<li>{escape(r.say(what))}: <code>{escape(code)}</code></li>" for what, code in r.pictures)
        yield f'<p>{r.say("look at").capitalize()}:</p><ul class="tl-pictures">{rows_}</ul>'
    yield f'<p class="tl-basis">{escape(r.say(r.basis))}</p></div>'


def _coded(r: Report, code: str) -> str:
    from tilelab.grader.chinese import CODES

    return f"{code} {CODES.get(code, '')}".strip() if r.lang.startswith("zh") else code


def _check(c: Check, say: Callable[[str], str]) -> str:
    mark, kind = ("✓", "ok") if c.passed else ("✗", "no")
    return f'<li class="{kind}"><span aria-hidden="true">{mark}</span> <b>{escape(say(c.name))}</b> {escape(say(c.message))}</li>'


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, tuple[object, ...]]]) -> str:
    top = "".join(f"<th>{h}</th>" for h in head)
    body = (f'<tr class="tl-{escape(kind)}">{"".join(f"<td>{escape(str(v))}</td>" for v in row)}</tr>' for kind, row in rows)
    return f"<table><tr>{top}</tr>{''.join(body)}</table>"


def _heat(rows: tuple[tuple[float, ...], ...], label: str) -> str:
    """Where a two-dimensional output is wrong: a cell is the redder, the more of its elements are."""
    cells = "".join(_cell(x, y, v) for y, row in enumerate(rows) for x, v in enumerate(row))
    width, height = 10 * len(rows[0]), 10 * len(rows)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label="{escape(label)}">{cells}</svg>'


def _cell(x: int, y: int, share: float) -> str:
    colour, opacity = ("#d9534f", 0.25 + 0.75 * share) if share else ("#8a8", 0.35)
    return f'<rect x="{10 * x}" y="{10 * y}" width="9" height="9" fill="{colour}" fill-opacity="{opacity:.2f}"/>'


_STYLE = """<style>
.tl-report{border-left:4px solid #888;padding:.4em 1em;max-width:60em;overflow-wrap:anywhere}
.tl-report.tl-passed{border-color:#2e8b57}.tl-report.tl-almost{border-color:#d9a400}.tl-report.tl-failed{border-color:#d9534f}
.tl-report .tl-head{font-size:1.15em}.tl-report .tl-score{float:right}
.tl-report .tl-bar{height:.4em;background:#8884;border-radius:.2em}
.tl-report .tl-bar i{display:block;height:100%;background:#2e8b57;border-radius:.2em}
.tl-report ul{padding-left:.2em;list-style:none}.tl-report .ok span{color:#2e8b57}.tl-report .no span{color:#d9534f}
.tl-report .tl-basis{opacity:.7;font-size:.9em}
/* Thrice, to outweigh what notebooks say of tables: right-aligned columns of equal width. */
.tl-report.tl-report.tl-report table{table-layout:auto;margin:.4em 0}.tl-report.tl-report.tl-report tr{background:none}
.tl-report.tl-report.tl-report :is(td,th){text-align:left;vertical-align:top;padding:.1em 1em .1em 0;max-width:none}
.tl-report.tl-report.tl-report :is(td,th):first-child{white-space:nowrap}
.tl-report.tl-report.tl-report :is(td,th):nth-child(2){overflow-wrap:normal}
</style>"""

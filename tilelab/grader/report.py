"""The Report: what a submission earned, why, and how to gain the next points. Plain data with a text and an HTML form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from tilelab.finding import Finding
from tilelab.grader.compare import number


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was checked: a hidden case, the lowering, and so on."""

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A counted figure: its value (None: not measured), the best known one, and the points earned."""

    value: float | None
    best: float
    points: float
    most: float = 0.0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongElement:
    """The first wrong element of a failed case, with the block and line that should have written it where known."""

    case: str
    output: str
    index: tuple[int, ...]
    expected: float
    got: float
    wrong: int
    total: int
    block: tuple[int, int, int] | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """One sentence."""
        at = ", ".join(map(str, self.index))
        where = f", block {self.block}" if self.block else ""
        if self.file and self.line:  # a cell has no name that a reader would know
            where += f", line {self.line} of the cell" if "ipykernel_" in self.file else f", {self.file}:{self.line}"
        return f"{self.output}[{at}]: expected {number(self.expected)}, got {number(self.got)}{where}; {self.wrong} of {self.total} elements are wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of grading one submission.

    Attributes:
        puzzle: The puzzle's id.
        submission: What was graded, as it was given.
        score: Points earned.
        max: Points that could be earned on this machine: 100, or 75 where lowering is not possible.
        passed: Whether every correctness case passed.
        basis: What the score rests on: simulated or measured, the target, the isolation.
        checks: In the order of checking.
        findings: Of all cases, each (code, line) once.
        counts: By name.
        first_wrong: The first wrong element, if any.
        advice: How to gain the next points, most useful first.
        heat: For the first failed two-dimensional output: the share of wrong elements by cell, at most 16×32.
        seed: The seed from which the hidden cases were drawn.
    """

    puzzle: str
    submission: str
    score: float
    max: float
    passed: bool
    basis: str
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, Figure] = field(default_factory=dict)
    first_wrong: WrongElement | None = None
    advice: tuple[str, ...] = ()
    heat: tuple[tuple[float, ...], ...] = ()
    seed: int | None = None

    @property
    def clean(self) -> bool:
        """Whether every check passed."""
        return all(c.passed for c in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the element of the list that ``tilelab grade --json`` prints."""
        return {
            "puzzle": self.puzzle,
            "submission": self.submission,
            "score": _whole(self.score),
            "max": _whole(self.max),
            "passed": self.passed,
            "basis": self.basis,
            "checks": [{"name": c.name, "passed": c.passed, "message": c.message} for c in self.checks],
            "findings": [f.to_json() for f in self.findings],
            "counts": {n: {"value": _whole(f.value), "best": _whole(f.best), "points": _whole(f.points)} for n, f in self.counts.items()},
        }

    def to_text(self) -> str:
        """Return the report for a terminal."""
        head = f"{self.puzzle}: {_whole(self.score)} of {_whole(self.max)} points" + (", passed" if self.passed else ", not passed yet")
        lines = [head]
        lines += [f"  {'✓' if c.passed else '✗'} {c.name}{f': {c.message}' if c.message else ''}" for c in self.checks]
        if self.first_wrong:
            lines += ["  first wrong element:", f"    {self.first_wrong}"]
        if self.findings:
            lines.append("  findings:")
            lines += [f"    {f}" for f in self.findings]
        if self.counts:
            lines.append("  counts:")
            lines += [f"    {n}: {_figure(f)}" for n, f in self.counts.items()]
        if self.advice:
            lines.append("  to gain the next points:")
            lines += [f"    – {a}" for a in self.advice]
        lines.append(f"  basis: {self.basis}")
        return "\n".join(lines)

    def to_html(self) -> str:
        """Return the report as an HTML fragment; everything that comes from a submission is escaped."""
        state = "passed" if self.passed and self.clean else "almost" if self.passed else "failed"
        width = 0 if not self.max else 100 * self.score / self.max
        parts = [
            f'<div class="tl-report tl-{state}" data-score="{_whole(self.score)}" data-passed="{str(self.passed).lower()}">{_STYLE}',
            f'<div class="tl-head"><b>{escape(self.puzzle)}</b> <span class="tl-score">{_whole(self.score)} / {_whole(self.max)}</span></div>',
            f'<div class="tl-bar" role="meter" aria-valuemin="0" aria-valuemax="{_whole(self.max)}" aria-valuenow="{_whole(self.score)}" '
            f'aria-label="score"><i style="width:{width:.0f}%"></i></div>',
            "<ul>",
            *(
                f'<li class="{"ok" if c.passed else "no"}"><span aria-hidden="true">{"✓" if c.passed else "✗"}</span> '
                f"<b>{escape(c.name)}</b> {escape(c.message)}</li>"
                for c in self.checks
            ),
            "</ul>",
        ]
        if self.first_wrong:
            parts.append(
                f'<p class="tl-wrong">First wrong element ({escape(self.first_wrong.case)}): <code>{escape(str(self.first_wrong))}</code></p>'
            )
        if self.heat:
            parts.append(_heat(self.heat))
        if self.findings:
            parts.append("<table><tr><th>code</th><th>line</th><th>what</th><th>what to try</th></tr>")
            parts += [
                f'<tr class="tl-{escape(f.severity)}"><td>{escape(f.code)}</td><td>{f.line or ""}</td><td>{escape(f.message)}</td><td>{escape(f.fix)}</td></tr>'
                for f in self.findings
            ]
            parts.append("</table>")
        if self.counts:
            parts.append("<table><tr><th>count</th><th>yours</th><th>best known</th><th>points</th></tr>")
            parts += [
                f"<tr><td>{escape(n)}</td><td>{_amount(f.value)}</td><td>{_amount(f.best)}</td>"
                f"<td>{_whole(f.points)} of {_whole(f.most)} {escape(f.note)}</td></tr>"
                for n, f in self.counts.items()
            ]
            parts.append("</table>")
        if self.advice:
            parts.append("<p>To gain the next points:</p><ul>" + "".join(f"<li>{escape(a)}</li>" for a in self.advice) + "</ul>")
        parts.append(f'<p class="tl-basis">{escape(self.basis)}</p></div>')
        return "".join(parts)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def __str__(self) -> str:
        """The text form."""
        return self.to_text()


def _whole(value: float | None) -> float | int | None:
    """Points and counts as people write them: whole where they are whole, otherwise one decimal."""
    if value is None:
        return None
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def _amount(value: float | None) -> str:
    return "–" if value is None else f"{_whole(value):,}".replace(",", " ")


def _figure(f: Figure) -> str:
    note = f" ({f.note})" if f.note else ""
    return f"{_amount(f.value)}, best known {_amount(f.best)}: {_whole(f.points)} of {_whole(f.most)} points{note}"


def _heat(rows: tuple[tuple[float, ...], ...]) -> str:
    cells = "".join(
        f'<rect x="{10 * x}" y="{10 * y}" width="9" height="9" fill="{"#d9534f" if v else "#8a8"}" fill-opacity="{0.25 + 0.75 * v if v else 0.35:.2f}"/>'
        for y, row in enumerate(rows)
        for x, v in enumerate(row)
    )
    width, height = 10 * len(rows[0]), 10 * len(rows)
    return f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" aria-label="Where the output is wrong">{cells}</svg>'


_STYLE = (
    "<style>.tl-report{border-left:4px solid #888;padding:.4em 1em;max-width:60em;overflow-wrap:anywhere}.tl-report.tl-passed{border-color:#2e8b57}"
    ".tl-report.tl-almost{border-color:#d9a400}.tl-report.tl-failed{border-color:#d9534f}.tl-report .tl-head{font-size:1.15em}"
    ".tl-report .tl-score{float:right}.tl-report .tl-bar{height:.4em;background:#8884;border-radius:.2em}"
    ".tl-report .tl-bar i{display:block;height:100%;background:#2e8b57;border-radius:.2em}.tl-report ul{padding-left:.2em;list-style:none}"
    ".tl-report .ok span{color:#2e8b57}.tl-report .no span{color:#d9534f}"
    # Thrice, to outweigh what notebooks say of tables: right-aligned columns of equal width.
    ".tl-report.tl-report.tl-report table{table-layout:auto;margin:.4em 0}.tl-report.tl-report.tl-report tr{background:none}"
    ".tl-report.tl-report.tl-report :is(td,th){text-align:left;vertical-align:top;padding:.1em 1em .1em 0;max-width:none}"
    ".tl-report.tl-report.tl-report :is(td,th):first-child{white-space:nowrap}.tl-report.tl-report.tl-report :is(td,th):nth-child(2){overflow-wrap:normal}"
    ".tl-report .tl-basis{opacity:.7;font-size:.9em}</style>"
)

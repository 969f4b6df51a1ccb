"""The Report: what a submission earned, why, and how to gain the next points. Plain data with a text and an HTML form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    thread: int | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """One sentence."""
        at = ", ".join(map(str, self.index))
        where = f", block {self.block}" if self.block else ""
        where += f", thread {self.thread}" if self.thread is not None else ""
        if self.file and self.line:  # a cell has no name that a reader would know
            where += f", line {self.line} of the cell" if "ipykernel_" in self.file else f", {self.file}:{self.line}"
        said = f"{self.output}[{at}]: expected {number(self.expected)}, got {number(self.got)}{where}"
        return f"{said}; {self.wrong} of {self.total} elements are wrong"


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
        statements: The counted Program, normalised: what similarity is looked for in.
        pictures: What to look at: what a picture shows, and the Python that draws it.
        lang: The language in which it is shown, ``"en"`` or ``"zh"``; ``to_json`` is always English.
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
    statements: tuple[str, ...] = ()
    pictures: tuple[tuple[str, str], ...] = ()
    lang: str = "en"

    @property
    def clean(self) -> bool:
        """Whether every check passed."""
        return all(c.passed for c in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return the element of the list that ``tilelab grade --json`` prints."""
        return {
            "puzzle": self.puzzle,
            "submission": self.submission,
            "score": whole(self.score),
            "max": whole(self.max),
            "passed": self.passed,
            "basis": self.basis,
            "checks": [{"name": c.name, "passed": c.passed, "message": c.message} for c in self.checks],
            "findings": [f.to_json() for f in self.findings],
            "counts": {n: {"value": whole(f.value), "best": whole(f.best), "points": whole(f.points)} for n, f in self.counts.items()},
        }

    def to_text(self) -> str:
        """Return the report for a terminal."""
        say = self.say
        points, state = f"{whole(self.score)} of {whole(self.max)} points", "passed" if self.passed else "not passed yet"
        lines = [f"{self.puzzle}: {say(points)}, {say(state)}"]
        lines += [f"  {'✓' if c.passed else '✗'} {say(c.name)}{f': {say(c.message)}' if c.message else ''}" for c in self.checks]
        if self.first_wrong:
            lines += [f"  {say('first wrong element')}:", f"    {say(str(self.first_wrong))}"]
        if self.findings:
            lines.append(f"  {say('findings')}:")
            lines += [f"    {say(str(f))}" for f in self.findings]
        if self.counts:
            lines.append(f"  {say('counts')}:")
            lines += [f"    {n}: {self._figure(f)}" for n, f in self.counts.items()]
        if self.advice:
            lines.append(f"  {say('to gain the next points')}:")
            lines += [f"    – {say(a)}" for a in self.advice]
        if self.pictures:
            lines.append(f"  {say('look at')}:")
            lines += [f"    {say(what)}: {code}" for what, code in self.pictures]
        lines.append(f"  {say('basis')}: {say(self.basis)}")
        return "\n".join(lines)

    def say(self, text: str) -> str:
        """Return a sentence of this report in its language."""
        from tilelab.grader.chinese import translated

        return translated(text, self.lang)

    def _figure(self, f: Figure) -> str:
        note = f" ({self.say(f.note)})" if f.note else ""
        points = self.say(f"{whole(f.points)} of {whole(f.most)} points")
        return f"{amount(f.value)}, {self.say('best known')} {amount(f.best)}: {points}{note}"

    def to_html(self) -> str:
        """Return the report as an HTML fragment; everything that comes from a submission is escaped."""
        from tilelab.grader.report_html import fragment

        return fragment(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def __str__(self) -> str:
        """The text form."""
        return self.to_text()


def whole(value: float | None) -> float | int | None:
    """Return points and counts as people write them: whole where they are whole, otherwise one decimal."""
    if value is None:
        return None
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def amount(value: float | None) -> str:
    """Return a count with its digits in groups; a dash where it is not known."""
    return "–" if value is None else f"{whole(value):,}".replace(",", " ")

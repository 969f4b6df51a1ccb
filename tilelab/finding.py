"""Findings: coded, located explanations of what is wrong with a kernel and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Severity = Literal["error", "warning", "info"]

#: code → (short name, default severity). New kinds get new codes; a code never changes its meaning.
CODES: Mapping[str, tuple[str, Severity]] = {
    "TL101": ("out of bounds", "error"),
    "TL102": ("masked access", "info"),
    "TL103": ("uninitialised read", "error"),
    "TL104": ("output not written", "error"),
    "TL105": ("misaligned vector access", "error"),
    "TL106": ("index wraps in int32", "error"),
    "TL201": ("data race", "error"),
    "TL202": ("missing or misplaced barrier", "error"),
    "TL203": ("barrier under a divergent condition", "error"),
    "TL204": ("missing or too weak async wait", "error"),
    "TL205": ("wrong barrier phase, count or bytes", "error"),
    "TL206": ("deadlock", "error"),
    "TL207": ("missing proxy fence", "error"),
    "TL208": ("order-dependent float atomics", "warning"),
    "TL209": ("a schedule breaks a dependence", "error"),
    "TL301": ("first NaN or Inf", "warning"),
    "TL302": ("overflow on a cast", "error"),
    "TL303": ("integer divided by zero", "error"),
    "TL401": ("fragment read by a thread that does not own it", "error"),
    "TL402": ("layouts conflict", "error"),
    "TL403": ("no layout for this shape and threads", "error"),
    "TL404": ("layout not injective", "error"),
    "TL501": ("shared memory over budget", "error"),
    "TL502": ("threads over budget", "error"),
    "TL503": ("registers over budget", "error"),
    "TL504": ("instruction the chosen GPU lacks", "error"),
    "TL505": ("no such grid", "error"),
    "TL601": ("work repeated by every thread", "warning"),
    "TL602": ("bank conflicts", "warning"),
    "TL603": ("wasted sectors", "warning"),
    "TL604": ("compulsory work skipped", "error"),
    "TL701": ("shapes or dtypes of a tile operation do not fit", "error"),
    "TL702": ("refused by TileLang", "error"),
    "TL703": ("not simulated yet", "error"),
    "TL801": ("tile level and thread level disagree", "error"),
    "TL802": ("compiled by TileLang to something else", "warning"),
    "TL901": ("the compiled kernel is older than its captured globals", "error"),
    "TL902": ("device assertion failed", "error"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing found. ``message`` says what is wrong in the learner's words, ``fix`` what to try.

    ``block`` and ``thread`` are (x, y, z); ``indices`` names loop variables and buffer indices; ``evidence`` holds
    what a view draws (JSON values only). ``file`` is as it was given by the user.
    """

    code: str
    message: str
    fix: str = ""
    severity: Severity = "error"
    file: str | None = None
    line: int | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    indices: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``check --json`` prints."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "fix": self.fix,
            "file": self.file,
            "line": self.line,
            "block": list(self.block) if self.block else None,
            "thread": list(self.thread) if self.thread else None,
            "indices": dict(self.indices),
            "evidence": dict(self.evidence),
        }

    def __str__(self) -> str:
        """One line: ``file:line: severity TL101: message Try: fix``."""
        where = f"{self.file}:{self.line}: " if self.file and self.line else ""
        hint = f" Try: {self.fix}" if self.fix else ""
        return f"{where}{self.severity} {self.code}: {self.message}{hint}"


def finding(code: str, message: str, **kw: Any) -> Finding:
    """Make a Finding of ``code`` with its default severity unless ``severity`` is given."""
    kw.setdefault("severity", CODES[code][1])
    return Finding(code=code, message=message, **kw)


class KernelRefused(Exception):
    """The kernel cannot be captured or lowered; ``finding`` says why (exit code 1)."""

    exit_code = 1

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding

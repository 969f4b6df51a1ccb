"""A puzzle as a learner meets it: its card in a notebook, its hints, and ``check()``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from tilelab.course import percent, progress
from tilelab.course.pictures import pictures
from tilelab.course.prose import Prose, read_prose
from tilelab.errors import InputError
from tilelab.grader.draw import case_name
from tilelab.grader.report import Report
from tilelab.grader.spec import Spec


class Puzzle:
    """One puzzle of the course.

    Attributes:
        spec: What ``puzzle.toml`` says.
        folder: Where it lies.
        lang: The language of its card, hints and reports.
    """

    def __init__(self, spec: Spec, lang: str | None = None) -> None:
        self.spec = spec
        self.folder: Path = spec.folder
        told = os.environ.get("TILELAB_LANG", "en").split("_")[0].split("-")[0]
        self.lang = _language(lang) if lang else told if told in _WORDS else "en"

    def in_language(self, lang: str) -> Puzzle:
        """Return this puzzle in a language, ``"en"`` or ``"zh"``."""
        return self if lang == self.lang else Puzzle(self.spec, lang)

    @property
    def id(self) -> str:
        """The folder's name, ``"01_copy"``."""
        return self.spec.id

    @property
    def number(self) -> int:
        """The number on the road."""
        return self.spec.number

    @property
    def part(self) -> str:
        """The letter of the part of the course."""
        return self.spec.part

    def title(self, lang: str = "en") -> str:
        """Return the title."""
        return self.spec.title[_language(lang)]

    def idea(self, lang: str = "en") -> str:
        """Return the one new idea, a short sentence."""
        return self.spec.idea[_language(lang)]

    def prose(self, lang: str = "en") -> Prose:
        """Return the README in parts."""
        return read_prose(self.folder, _language(lang))

    def statement(self, lang: str = "en") -> str:
        """Return the statement in Markdown, with its pictures inside."""
        return self.prose(lang).inlined()

    def hint(self, n: int = 1, lang: str | None = None) -> str:
        """Return hint ``n``, from 1 (a nudge) to the last (nearly the answer). Hints are counted and cost nothing.

        Raises:
            InputError: There is no such hint.
        """
        hints = self.prose(lang or self.lang).hints
        if not 1 <= n <= len(hints):
            raise InputError(f"puzzle {self.number} has no hint {n}", fix=f"ask for 1 to {len(hints)}")
        progress.append({"event": "hint", "puzzle": self.id, "hint": n})
        title, text = hints[n - 1]
        return f"{title}\n\n{text}"

    # ----------------------------------------------------------------------------------------------- sources
    def source(self) -> str:
        """Return the authored ``puzzle.py`` with its solutions (in a checkout only).

        Raises:
            InputError: The wheel carries no solutions.
        """
        path = self.folder / "puzzle.py"
        if not path.is_file():
            raise InputError(f"{self.id}: solutions are in the repository and not in the wheel", fix="clone the repository to see them")
        return path.read_text("utf-8")

    def stub(self) -> str:
        """Return the starter as py:percent."""
        path = self.folder / "stub.py"
        return path.read_text("utf-8") if path.is_file() else percent.stub(self.source())

    def notebook(self, lang: str = "en", *, solved: bool = False) -> dict[str, Any]:
        """Return the puzzle's notebook: the statement, the starter (or the solution), and the check."""
        text = percent.solution(self.source()) if solved else self.stub()
        prose = self.prose(lang)
        statement = percent.Cell(kind="markdown", source=prose.inlined().strip())  # JupyterLab shows no SVG that is an attachment
        cells = [
            statement,
            *(_translated(c, lang) for c in percent.parse(text, f"{self.id}/puzzle.py") if c.metadata.get("lang", lang) == lang),
        ]
        if prose.after.strip():
            cells.append(percent.Cell(kind="markdown", source=prose.after.strip()))
        return percent.notebook(cells, {"tilelab": {"lang": lang, "puzzle": self.id}})

    # ----------------------------------------------------------------------------------------------- checking
    def check(self, kernel: Any = None, *, device: str = "sim", seed: int | None = None) -> Report:
        """Grade a solution and remember the result.

        Args:
            kernel: The kernel; or the path of a ``.py`` or ``.ipynb`` file; or the source of a cell. Default: the
                kernel that the caller's notebook or module defines under the puzzle's name.
            device: ``"sim"``, or ``"cuda"`` to run on the GPU that is here.
            seed: Decides the hidden cases. Default: a fresh one each time.

        Raises:
            InputError: There is no kernel to check.
        """
        if kernel is None:
            kernel = self._find(sys._getframe(1).f_globals)
        report = replace(self._graded(kernel, device, seed), lang=self.lang)
        report = replace(report, pictures=pictures(self.spec, report))
        event = {
            "event": "check",
            "puzzle": self.id,
            "passed": report.passed,
            "score": round(report.score, 1),
            "max": report.max,
            "device": device,
        }
        progress.append(event)
        return report

    def _graded(self, kernel: Any, device: str, seed: int | None) -> Report:
        from tilelab.grader.grading import grade, grade_kernel
        from tilelab.grader.submission import from_text

        if isinstance(kernel, str) and "\n" in kernel:
            return grade(self.spec, from_text(kernel, self.spec.entry), device=device, seed=seed)
        if isinstance(kernel, str | Path):
            return grade(self.spec, kernel, device=device, seed=seed)
        return grade_kernel(self.spec, kernel, name=self.spec.entry, device=device, seed=seed)

    def show(self, kernel: Any = None) -> Any:
        """Show a kernel beside the target: its layouts, its pipeline and its resources, and the best known counts.

        Args:
            kernel: As in :meth:`check`. Where the solution is at hand (in a checkout) the target's pictures are beside those of
                the kernel; elsewhere only its figures.
        """
        from tilelab.course.beside import Beside

        if kernel is None:
            kernel = self._find(sys._getframe(1).f_globals)
        return Beside(self, kernel)

    def _find(self, namespace: Mapping[str, Any]) -> Any:
        shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
        for where in (namespace, getattr(shell, "user_ns", {})):
            if self.spec.entry in where:
                return where[self.spec.entry]
        raise InputError(
            f"nothing here is called {self.spec.entry!r}", fix=f"run the cell that defines {self.spec.entry}, then check again"
        )

    # ----------------------------------------------------------------------------------------------- the card
    def __repr__(self) -> str:
        return f"<Puzzle {self.id}: {self.title()}>"

    def text(self, lang: str | None = None) -> str:
        """Return the card as text: the title, the idea, the signature and the sizes it will meet."""
        lang = lang or self.lang
        spec, words = self.spec, _WORDS[_language(lang)]
        rows = [f"{words['puzzle']} {self.number} · {self.title(lang)}", self.idea(lang), ""]
        rows += [f"  {t.name}: {t.dtype} ({', '.join(map(str, t.shape))})" for t in spec.arguments]
        rows += [f"  → {t.name}: {t.dtype} ({', '.join(map(str, t.shape))})" for t in spec.returns]
        rows += [f"  {words['sizes']}: {'; '.join(case_name(v) for v in spec.visible)}"]
        state = progress.best().get(self.id)
        if state:
            rows.append(f"  {words['best']}: {state['score']:g} / {state['max']:g}")
        return "\n".join(rows)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        text = self.text()
        head, *rest = text.split("\n")
        body = f"<b>{escape(head)}</b><pre>{escape(chr(10).join(rest))}</pre>"
        html = f'<div class="tl-card" style="border-left:4px solid #4a7fd6;padding:.4em 1em">{body}</div>'
        return {"text/plain": text, "text/html": html}


_WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {"puzzle": "Puzzle", "sizes": "sizes to try", "best": "your best so far"},
    "zh": {"puzzle": "题目", "sizes": "可先试的尺寸", "best": "目前最好成绩"},
}


def _language(lang: str) -> str:
    if lang not in _WORDS:
        raise InputError(f"language {lang!r} is not one of the course's", fix=f"use {' or '.join(_WORDS)}")
    return lang


def _translated(cell: percent.Cell, lang: str) -> percent.Cell:
    """Drop the mark by which a cell belongs to one language, and ask for the puzzle in that language."""
    source = cell.source
    if lang != "en" and cell.kind == "code":
        source = re.sub(r'(tilelab\.puzzle\("\w+")\)', rf'\1, lang="{lang}")', source)
    return replace(cell, source=source, metadata={k: v for k, v in cell.metadata.items() if k != "lang"})

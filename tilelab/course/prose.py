"""A puzzle's README: the statement, the graded hints (in ``<details>``), and what to read next."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path

from tilelab.errors import InputError

LANGUAGES = {"en": "README.md", "zh": "README.zh.md"}
_DETAILS = re.compile(r"<details>\s*<summary>(?P<title>.*?)</summary>(?P<body>.*?)</details>\s*", re.DOTALL)
_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<file>[\w./-]+\.(?P<kind>svg|png))\)")
_MIME = {"svg": "image/svg+xml", "png": "image/png"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prose:
    """The parts of a README, in Markdown. ``hints`` are (title, text), from a nudge to nearly the answer."""

    title: str
    statement: str
    hints: tuple[tuple[str, str], ...]
    after: str
    folder: Path

    def inlined(self) -> str:
        """Return the statement with its pictures as data URIs, so that it stands alone."""

        def data(m: re.Match[str]) -> str:
            try:
                content = base64.b64encode((self.folder / m["file"]).read_bytes()).decode()
            except OSError as e:
                raise InputError(
                    f"{self.folder / m['file']}, which the README shows: {e.strerror}", fix="make it, or leave it out"
                ) from None
            return f"![{m['alt']}](data:{_MIME[m['kind']]};base64,{content})"

        return _IMAGE.sub(data, self.statement)


def read_prose(folder: Path, lang: str) -> Prose:
    """Read the README of a puzzle in ``lang``.

    Raises:
        InputError: There is no such language or file, or the README has no title.
    """
    if lang not in LANGUAGES:
        raise InputError(f"language {lang!r} is not one of the course's", fix=f"use {' or '.join(LANGUAGES)}")
    path = folder / LANGUAGES[lang]
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", fix="a puzzle has a README.md and a README.zh.md") from None
    if not text.startswith("# "):
        raise InputError(f"{path}: has no title", fix="begin it with '# '")
    hints = tuple((m["title"].strip(), m["body"].strip()) for m in _DETAILS.finditer(text))
    found = list(_DETAILS.finditer(text))
    head = text[: found[0].start()] if found else text
    head = re.sub(r"\n## [^\n]*\n\s*\Z", "\n", head)  # the heading over the hints
    after = text[found[-1].end() :] if found else ""
    title = text.split("\n", 1)[0].removeprefix("# ").strip()
    return Prose(title=title, statement=head.strip() + "\n", hints=hints, after=after.strip() + "\n", folder=folder)

"""The book's table of findings says what the program says: every code, its name and its severity, and nothing else."""

import re
from pathlib import Path

from tilelab.finding import CODES

PAGE = Path(__file__).resolve().parents[2] / "book" / "findings.md"


def test_every_code_is_in_the_book_as_it_is():
    rows = re.findall(r"^\| (TL\d+) \| (.+?) \| (\w+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {code: (name, severity) for code, name, severity in rows} == dict(CODES)
    assert [code for code, _, _ in rows] == sorted(CODES)


def test_the_page_is_in_the_table_of_contents():
    assert "\nfindings\n" in (PAGE.parent / "index.md").read_text(encoding="utf-8")

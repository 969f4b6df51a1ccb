"""The quick-start notebooks are what their source says; `pytest --update-golden` writes them."""

from pathlib import Path

import pytest

from tilelab.course import percent

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


@pytest.mark.parametrize(("lang", "folder"), [("en", "."), ("zh", "zh")])
def test_notebook_is_generated(request, lang, folder):
    cells = percent.parse((NOTEBOOKS / "quick_start.py").read_text(encoding="utf-8"), "quick_start.py")
    kept = [c for c in cells if c.metadata.get("lang", lang) == lang]
    text = percent.dump(percent.notebook([percent.Cell(kind=c.kind, source=c.source) for c in kept]))
    path = NOTEBOOKS / folder / "quick_start.ipynb"
    if request.config.getoption("--update-golden"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text

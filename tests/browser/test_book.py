"""The book's pages, opened from disk with the network off: live pictures, no request to anywhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    out = tmp_path_factory.mktemp("book") / "pages"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "tilelab", "book", "check", str(ROOT / "book"), "-o", str(out)], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("name", ["index", "quick_start", "puzzles", "puzzle_01", "puzzle_07", "puzzle_25"])
def test_pages_open_offline(chromium, book, name):
    context = chromium.new_context(offline=True)
    asked, errors = [], []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((book / f"{name}.html").as_uri())
    expect(page.locator("article h1").first).to_be_visible()
    if name not in ("index", "puzzles"):
        view = page.locator(".tilelab-view[data-live]").first
        expect(view).to_be_visible()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert errors == []
    context.close()


def test_every_puzzle_has_its_page(book):
    contents = (book / "puzzles.html").read_text(encoding="utf-8")
    for folder in sorted((ROOT / "puzzles").glob("[0-9][0-9]_*")):
        assert f"road/{folder.name}.html" in contents
        page = (book / "road" / f"{folder.name}.html").read_text(encoding="utf-8")
        assert "<h1>" in page
        assert 'src="../_images/' in page


def test_a_puzzles_statement_is_in_its_page(book):
    page = (book / "puzzle_25.html").read_text(encoding="utf-8")
    assert "T.gemm" in page
    assert "<h1>" in page

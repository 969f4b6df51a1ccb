"""The what-if and conflict views as pages opened from disk, with the network off, by mouse and by keys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tilelab.views import conflict
from tilelab.views.whatif_view import whatif_view

sys.path.insert(0, str(Path(__file__).parents[1] / "views"))
from test_whatif_view import clash, record


@pytest.fixture
def show(chromium, tmp_path):
    """Open a view's page in a context that has no network; return the page, which must have said nothing on its console."""
    contexts, said = [], []

    def open_(view, *, scheme="light", width=1240):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: said.append(r.url) if not r.url.startswith(("file:", "blob:", "data:")) else None)
        page.goto(view.save(tmp_path / "view.html").as_uri())
        page.wait_for_selector(".tl-view")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []


def order(page):
    return [int(r.get_attribute("data-variant")) for r in page.locator("tbody tr[data-variant]").all()]


def test_headings_sort_and_rows_say_more(show):
    page = show(whatif_view(record()))
    heading = page.locator("th[data-key=smem] button")
    heading.click()
    expect(page.locator("th[data-key=smem]")).to_have_attribute("aria-sort", "ascending")
    heading.press("Enter")
    expect(page.locator("th[data-key=smem]")).to_have_attribute("aria-sort", "descending")
    assert order(page) == [2, 1, 0, 3]
    page.get_by_role("button", name="num_stages=24").click()
    expect(page.locator('[role="status"]')).to_have_attribute("data-runs", "false")
    expect(page.locator('[data-panel="detail"]')).to_contain_text("(+180,224)")
    expect(page.locator('[data-panel="detail"]')).to_contain_text("Use fewer stages.")


def test_keys_walk_over_the_variants(show):
    page = show(whatif_view(record()))
    page.get_by_role("button", name="as written").focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    expect(page.locator('[role="status"]')).to_have_attribute("data-variant", "3")
    expect(page.locator('[data-panel="detail"]')).to_contain_text("TL402")
    page.get_by_label("only what runs").press(" ")
    assert order(page) == [0, 1]
    page.get_by_role("button", name="中文").click()
    expect(page.locator(".tl-view")).to_contain_text("4 个变体中有 2 个可运行")


def test_both_owners_of_an_element_are_named(show):
    page = show(conflict(clash()))
    status = page.locator('[role="status"]')
    page.locator('[data-panel="first"] .tl-over').focus()
    page.keyboard.press("ArrowRight")
    expect(status).to_have_attribute("data-element", "0,1")
    expect(status).to_have_attribute("data-threads", "1,2")
    page.keyboard.press("n")
    expect(status).to_have_attribute("data-element", "1,0")
    expect(status).to_have_attribute("data-pinned", "true")
    page.keyboard.press("Escape")
    expect(status).not_to_have_attribute("data-pinned", "true")
    expect(page.locator('[data-panel="remedies"]')).to_contain_text("use threads=32")
    page.locator(".tl-view summary").click()
    assert page.locator(".tl-table tbody tr").count() == 2


@pytest.mark.parametrize("make", [lambda: whatif_view(record()), lambda: conflict(clash())])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (820, "light")])
def test_narrow_pages_do_not_scroll_sideways(show, make, width, scheme):
    page = show(make(), width=width, scheme=scheme)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    paper = page.locator(".tl-view").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")

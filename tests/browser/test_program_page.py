"""The program view as a page opened from disk, with the network off: lines are linked by mouse and by keys, passes can be searched."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.views import programs
from tilelab.views import program


@pytest.fixture
def show(chromium, tmp_path):
    """Open a view's page in a context that has no network; return the page, which must have said nothing on its console."""
    contexts, said = [], []

    def open_(view, *, scheme="light", width=1400):
        context = chromium.new_context(viewport={"width": width, "height": 1100}, color_scheme=scheme, offline=True)
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


def pane(page, key, variant=0):
    return page.locator(f'[data-pane="{key}"][data-variant="{variant}"]')


def marked(page, key, variant=0):
    return [int(k) + 1 for k in pane(page, key, variant).locator(".tl-linked").evaluate_all("rows => rows.map(r => r.dataset.k)")]


def test_a_line_of_python_shows_what_it_becomes(show):
    page = show(program(programs.small(), show=["python", "tile", "lowered", "source", "ptx"]))
    pane(page, "python").locator(".tl-line", has_text="T.copy(A, s)").hover()
    status = page.get_by_role("status")
    expect(status).to_have_attribute("data-line", "10")
    assert [marked(page, key) for key in ("tile", "lowered", "source", "ptx")] == [[4], [4], [4], [3]]
    pane(page, "ptx").locator(".tl-line", has_text="bar.sync").click()
    expect(status).to_have_attribute("data-pinned", "true")
    assert marked(page, "python") == [5, 11]  # a macro's line, and the one that called it
    pane(page, "source").locator(".tl-line").nth(1).hover()
    expect(status).to_have_attribute("data-line", "5")  # the pin holds


def test_keys_alone_are_enough(show):
    page = show(program(programs.small()))
    status = page.get_by_role("status")
    code = pane(page, "source").get_by_role("listbox")
    code.focus()
    for key in ("Home", "n", "n", "ArrowDown"):
        page.keyboard.press(key)
    expect(status).to_have_attribute("data-at", "4")
    expect(status).to_have_attribute("data-line", "10")
    assert code.get_attribute("aria-activedescendant") == pane(page, "source").locator(".tl-line").nth(3).get_attribute("id")
    page.keyboard.press("Enter")
    expect(status).to_have_attribute("data-pinned", "true")
    page.keyboard.press("Escape")
    expect(status).not_to_have_attribute("data-at", "4")
    page.locator('[data-show="tile"]').press("Enter")
    expect(pane(page, "tile")).to_be_visible()
    expect(page.locator('[data-show="tile"]')).to_be_focused()


def test_passes_that_changed_something_are_searched(show):
    page = show(program(programs.small()))
    buttons = page.locator("[data-pass]")
    expect(buttons).to_have_count(3)
    page.get_by_text("also those that changed nothing").click()
    expect(buttons).to_have_count(4)
    page.get_by_role("searchbox").fill("ldg")
    expect(buttons).to_have_count(1)
    change = page.locator(".tl-change")
    assert change.locator(".tl-new.tl-found").inner_text().split("\n")[-1].strip() == "s[t] = ldg(A[t])"
    expect(change.locator(".tl-gone")).to_have_count(2)
    page.get_by_role("searchbox").fill("no such thing")
    expect(page.locator(".tl-passes")).to_have_text("no pass matches")


def test_variants_stand_side_by_side(show):
    page = show(program(programs.small(), programs.small(factor=3.0)))
    for variant, factor in ((0, "2.0"), (1, "3.0")):
        assert pane(page, "source", variant).locator(".tl-diff").inner_text().split("\n")[-1].strip() == f"s[0] = (s[0] * {factor}f);"
    pane(page, "source", 1).locator(".tl-line", has_text="s[0]").hover()
    assert marked(page, "source", 0) == [5, 6]
    page.get_by_label("beside it").select_option("-1")
    expect(page.locator('[data-variant="1"]')).to_have_count(0)


def test_chinese_dark_and_narrow(show):
    page = show(program(programs.small(), lang="zh"), scheme="dark", width=420)
    expect(page.locator("h4", has_text="编译遍")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".tl-live summary").click()
    expect(page.locator(".tl-table td", has_text="double(s)").first).to_be_visible()


def test_a_long_program_stays_quick(show):
    import dataclasses

    one = programs.small()
    one = dataclasses.replace(one, ptx="add.s32 r1, r1, 1;\n" * 6000, lines={"ptx": tuple([4, 6] * 3000)})
    page = show(program(one, show=["python", "ptx"]))
    took = page.evaluate(
        """() => { const rows = document.querySelectorAll('[data-pane="ptx"] .tl-line'), start = performance.now();
        for (let k = 0; k < 40; k++) rows[k].dispatchEvent(new MouseEvent('mousemove', {bubbles: true}));
        return (performance.now() - start) / 40; }"""
    )
    assert took < 33, took  # milliseconds of script for each line pointed at, with thousands of lines marked

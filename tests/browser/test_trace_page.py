"""The trace view as a page opened from disk, with the network off: buttons, keys and clicks move it, and what it shows is said in the DOM."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.views import traces
from tilelab.views import prints, trace


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
        page.wait_for_selector(".tl-trace")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert said == []


def status(page):
    return page.locator(".tl-trace > [role='status']")


def press(page, keys):
    page.locator(".tl-trace").focus()
    for key in keys:
        page.keyboard.press(key)


def test_it_opens_on_the_first_nan_and_names_its_operands(show):
    page = show(trace(traces.small()))
    expect(status(page)).to_have_attribute("data-step", "9")
    expect(page.locator(".tl-values .tl-told")).to_have_attribute("data-element", "0")
    expect(page.locator(".tl-values .tl-told")).to_have_attribute("data-value", "NaN")
    page.locator(".tl-operand").click()
    expect(status(page)).to_have_attribute("data-step", "8")
    expect(page.locator(".tl-values .tl-told")).to_have_attribute("data-value", "12")


def test_keys_are_those_of_the_terminal(show):
    page = show(trace(traces.small(), at=0))
    for keys, step in (("s", 1), ("ss", 3), ("b", 2), ("o", 8), ("n", 10), ("r", 0), ("c", 10)):
        press(page, keys)
        expect(status(page)).to_have_attribute("data-step", str(step))
    press(page, "g")
    page.keyboard.type("4")
    page.keyboard.press("Enter")
    expect(status(page)).to_have_attribute("data-loops", "k = 1")


def test_breakpoints_by_line_and_by_condition(show):
    page = show(trace(traces.small(), at=0))
    line = page.get_by_role("button", name="Break 13")
    line.click()
    expect(line).to_have_attribute("aria-pressed", "true")
    press(page, "cc")
    expect(status(page)).to_have_attribute("data-step", "5")
    expect(status(page)).to_contain_text("stopped at #1 kernel.py:13" if page.locator("[data-panel=breakpoints]", has_text="kernel.py").count() else "stopped at #1 line:13")
    line.click()
    press(page, "k")
    page.keyboard.type("acc[1] > 10")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    press(page, "rc")
    expect(status(page)).to_have_attribute("data-step", "7")
    press(page, "k")
    page.keyboard.type("zz > 1")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-trace > [role='alert']")).to_contain_text("zz")


def test_watches_follow_the_step(show):
    page = show(trace(traces.small(), at=3))
    press(page, "w")
    page.keyboard.type("max(acc)")
    page.keyboard.press("Enter")
    watch = page.locator('[data-watch="max(acc)"]')
    expect(watch.locator("b")).to_have_text("3")
    page.keyboard.press("Escape")
    press(page, "ss")
    expect(watch.locator("b")).to_have_text("10")
    watch.get_by_role("button").click()
    expect(watch).to_have_count(0)


def test_values_follow_what_is_written_until_one_is_chosen(show):
    page = show(trace(traces.small(), at=4))
    chip = page.locator('.tl-chip[aria-pressed="true"]')
    expect(chip).to_have_text("tile")
    expect(page.locator(".tl-valuehead")).to_contain_text("float16")
    expect(page.locator(".tl-valuehead")).to_contain_text("4 changed")
    press(page, "s")
    expect(chip).to_have_text("acc")
    page.get_by_role("button", name="A", exact=True).click()
    press(page, "s")
    expect(chip).to_have_text("A")
    page.locator(".tl-values summary").click()
    expect(page.locator(".tl-numbers tbody tr").nth(1)).to_contain_text("4567")


def test_pointing_at_an_element_says_its_value_and_the_one_before(show):
    page = show(trace(traces.small(), at=5, buffer="acc"))
    canvas = page.locator('[data-panel="values"] .tl-over')
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 40 + (box["width"] - 41) * 2.5 / 4, box["y"] + 30)
    told = page.locator(".tl-values .tl-told")
    expect(told).to_have_attribute("data-element", "2")
    expect(told).to_contain_text("acc[2] = 8")
    expect(told).to_contain_text("← 2")


def test_the_timeline_is_a_slider(show):
    page = show(trace(traces.small(), at=0))
    slider = page.get_by_role("slider")
    slider.focus()
    for key, step in (("ArrowRight", 1), ("End", 10), ("ArrowLeft", 9), ("PageDown", 0)):
        page.keyboard.press(key)
        expect(slider).to_have_attribute("aria-valuenow", str(step))
    box = slider.bounding_box()
    page.mouse.click(box["x"] + 118 + (box["width"] - 124) * 6.5 / 11, box["y"] + 28)
    expect(status(page)).to_have_attribute("data-step", "6")


def test_prints_are_filtered_and_lead_to_their_step(show):
    page = show(trace(traces.small(), at=0))
    rows = page.locator(".tl-records tbody tr")
    expect(rows).to_have_count(2)
    page.locator(".tl-prints select").first.select_option(label="1,0,0")
    expect(rows).to_have_count(1)
    page.locator(".tl-prints").get_by_role("button", name="Go there").click()
    expect(status(page)).to_have_attribute("data-step", "8")
    expect(page.locator(".tl-prints")).to_contain_text("3 more were printed")


def test_prints_alone_have_no_timeline(show):
    page = show(prints(traces.small()))
    expect(page.locator(".tl-records tbody tr")).to_have_count(2)
    expect(page.get_by_role("slider")).to_have_count(0)


def test_the_table_says_the_same(show):
    page = show(trace(traces.small(), at=2))
    page.locator(".tl-trace > details summary").click()
    row = page.locator(".tl-trace > details tbody tr").nth(5)
    expect(row).to_contain_text("acc += tile[k % 2, :]")
    expect(row).to_contain_text("threads 0–31")


def test_languages(show):
    page = show(trace(traces.small()))
    page.get_by_role("button", name="中文").click()
    expect(page.locator(".tl-trace")).to_contain_text("时间线" if page.locator("h4", has_text="时间线").count() else "首个 NaN")
    expect(page.get_by_role("button", name="单步")).to_be_visible()
    expect(page.get_by_role("button", name="English")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system(show, scheme):
    page = show(trace(traces.small()), scheme=scheme)
    paper = page.locator(".tl-view").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [390, 820])
def test_narrow_pages_do_not_scroll_sideways(show, width):
    page = show(trace(traces.small()), width=width)
    page.wait_for_timeout(150)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_ten_thousand_steps_move_at_once(show):
    page = show(trace(traces.long(10_000), limit_bytes=1 << 20, at=5000))
    expect(status(page)).to_have_attribute("data-step", "5000")
    spent = page.evaluate(
        """() => {
      const root = document.querySelector('.tl-trace'), times = [];
      for (let k = 0; k < 30; k++) {
        const began = performance.now();
        root.dispatchEvent(new KeyboardEvent('keydown', { key: k % 2 ? 's' : 'b', bubbles: true }));
        times.push(performance.now() - began);
      }
      return times.sort((a, b) => a - b)[15];
    }"""
    )
    assert spent < 100
    assert page.locator(".tl-view *").count() < 1500
    expect(page.locator(".tl-trace")).to_contain_text("are left out")

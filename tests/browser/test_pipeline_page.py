"""The pipeline and resources views as pages opened from disk, with the network off, by mouse and by keys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tilelab.views import pipeline, resources

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from schedule_programs import gemm_program


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


def test_keys_walk_the_steps_and_pins_hold(show):
    page = show(pipeline(gemm_program(stages=3)))
    status = page.locator('[role="status"]')
    page.locator('[data-panel="steps"] .tl-over').focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(status).to_have_attribute("data-statement", "gemm a, b → c")
    expect(status).to_have_attribute("data-step", "3")
    expect(status).to_have_attribute("data-iteration", "1")
    expect(status).to_have_attribute("data-phase", "steady")
    page.keyboard.press("Enter")
    expect(status).to_have_attribute("data-pinned", "true")
    page.locator('[data-panel="versions"] .tl-over').hover()
    expect(status).to_have_attribute("data-iteration", "1")


def test_another_depth_and_language(show):
    page = show(pipeline(gemm_program(stages=3)))
    page.get_by_role("button", name="num_stages = 5").click()
    expect(page.locator("header")).to_contain_text("copies run 4 iterations ahead")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("header")).to_contain_text("拷贝领先 4 次迭代")
    page.locator(".tl-view summary").click()
    assert page.locator(".tl-view .tl-table tbody tr").count() == 3 * 8


def test_a_broken_schedule_says_so(show):
    page = show(pipeline(gemm_program(), order=[0, 1, 2], stage=[1, 0, 0]))
    expect(page.locator("p.tl-bad")).to_contain_text("TL209")


def test_choosing_a_gpu(show):
    page = show(resources(gemm_program(tile=(128, 128, 128), stages=3), "H100"))
    status = page.locator('[role="status"]')
    expect(status).to_have_attribute("data-runs", "true")
    page.get_by_label("GPU", exact=True).select_option(label="A100")
    expect(status).to_have_attribute("data-runs", "false")
    expect(page.locator('tr[data-gpu="A100"]')).to_contain_text("num_stages=2 (tried)")
    expect(page.locator("p.tl-bad")).to_contain_text("TL501")
    page.locator('tr[data-gpu="A100"] button').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(status).to_have_attribute("data-gpu", "RTX 3090")
    page.get_by_role("button", name="中文").click()
    expect(page.locator(".tl-view")).to_contain_text("占用率")


@pytest.mark.parametrize("view", [pipeline, resources])
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (820, "light")])
def test_narrow_pages_do_not_scroll_sideways(show, view, width, scheme):
    page = show(view(gemm_program()), width=width, scheme=scheme)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    paper = page.locator(".tl-view").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")

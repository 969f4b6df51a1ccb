"""The layout view as a page opened from disk, with the network off: what is pointed at is said in the DOM, by mouse and by keys."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import expect

from tilelab.layout_make import make_fragment, row_major, swizzled
from tilelab.trace import Event, Trace
from tilelab.views import layout

GRID_LEFT, GRID_TOP = 32, 20


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


def point(page, panel, row, column, rows, columns, *, click=False):
    canvas = page.locator(f'[data-panel="{panel}"] .tl-over')
    canvas.scroll_into_view_if_needed()
    left = {"threads": 58, "registers": 38}.get(panel, GRID_LEFT)
    box = canvas.bounding_box()
    x = box["x"] + left + (column + 0.5) * (box["width"] - left - 1) / columns
    y = box["y"] + GRID_TOP + (row + 0.5) * (box["height"] - GRID_TOP - 1) / rows
    page.mouse.move(x, y)
    if click:
        page.mouse.click(x, y)
    return page.locator('[role="status"]')


def test_pointing_at_an_element_names_its_owner(show):
    page = show(layout("mma.m16n8k16.D"))
    for row, column, thread, register in ((0, 0, 0, 0), (5, 3, 21, 1), (15, 7, 31, 3), (8, 2, 1, 2)):
        status = point(page, "tile", row, column, 16, 8)
        expect(status).to_have_attribute("data-element", f"{row},{column}")
        expect(status).to_have_attribute("data-thread", str(thread))
        expect(status).to_have_attribute("data-register", str(register))


def test_panels_are_linked_and_pins_hold(show):
    page = show(layout("mma.m16n8k16.D"))
    status = point(page, "threads", 0, 13, 1, 32, click=True)
    expect(status).to_have_attribute("data-pinned", "true")
    expect(page.locator('[data-panel="registers"] h4')).to_contain_text("thread 13")
    point(page, "tile", 0, 0, 16, 8)
    expect(status).to_have_attribute("data-thread", "13")  # the pin holds against hovering
    point(page, "registers", 0, 2, 1, 4)
    expect(status).to_have_attribute("data-element", "11,2")
    page.locator('[data-panel="tile"] .tl-over').focus()
    page.keyboard.press("Escape")
    expect(status).not_to_have_attribute("data-pinned", "true")


def test_keys_alone_are_enough(show):
    page = show(layout("mma.m16n8k16.D"))
    status = page.locator('[role="status"]')
    page.locator('[data-panel="tile"] .tl-over').focus()
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowLeft"):
        page.keyboard.press(key)
    expect(status).to_have_attribute("data-element", "2,6")
    expect(status).to_have_attribute("data-thread", "11")
    page.keyboard.press("Enter")
    expect(status).to_have_attribute("data-pinned", "true")
    order = []
    for _ in range(12):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.closest('[data-panel]')?.dataset.panel ?? document.activeElement.tagName"))
    assert {"threads", "registers", "SUMMARY"} <= set(order)


def test_replicas_are_all_named(show):
    one = make_fragment((8, 4), lambda i, j, rep: (i + 8 * rep, j), replicate=4)
    expect(point(show(layout(one)), "tile", 5, 1, 8, 4)).to_have_attribute("data-threads", "5,13,21,29")


def test_shared_memory_before_and_after_the_swizzle(show):
    one = swizzled((64, 64), name="A_shared")
    page = show(layout(one))
    status = point(page, "tile", 9, 20, 64, 64)
    expect(status).to_have_attribute("data-address", str(one.addresses()[9, 20]))
    expect(status).to_have_attribute("data-bank", str(one.banks()[9, 20]))
    expect(status).to_have_attribute("data-bank-before", "10")
    assert page.locator("td", has_text="ldmatrix").locator("xpath=..").inner_text().split()[-3:] == ["8", "1", "1"]
    status = point(page, "memory", 3, 17, 64, 32)
    expect(status).to_have_attribute("data-word", str(3 * 32 + 17))
    expect(status).to_have_attribute("data-bank", "17")


def test_any_rank_buffers_and_languages(show):
    page = show(layout(row_major((3, 8, 4), dtype="float32")))
    page.get_by_label("i =").fill("2")
    expect(point(page, "tile", 1, 2, 8, 4)).to_have_attribute("data-element", "2,1,2")
    page.get_by_label("rows", exact=True).select_option(label="i")
    expect(point(page, "tile", 1, 2, 3, 4)).to_have_attribute("data-element", "1,0,2")
    page.get_by_role("button", name="中文").click()
    expect(page.locator(".tl-view")).to_contain_text("共享内存")
    expect(page.get_by_role("button", name="English")).to_be_focused()


def test_the_table_says_the_same(show):
    page = show(layout("mma.m16n8k16.D"))
    page.locator(".tl-view summary").click()
    expect(page.locator(".tl-view .tl-table tbody tr")).to_have_count(32)
    expect(page.locator(".tl-view .tl-table tbody tr").nth(5)).to_contain_text("(1, 2–3) (9, 2–3)")


def test_zoom_keeps_pointing_right(show):
    page = show(layout(swizzled((128, 128))))
    canvas = page.locator('[data-panel="tile"] .tl-over')
    canvas.focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    for key in ("Home", "PageUp", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator('[role="status"]')).to_have_attribute("data-element", re.compile(r"^\d+,1$"))
    page.keyboard.press("0")
    expect(point(page, "tile", 127, 127, 128, 128)).to_have_attribute("data-element", "127,127")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system(show, scheme):
    page = show(layout("mma.m16n8k16.D"), scheme=scheme)
    paper = page.locator(".tl-view").evaluate("e => getComputedStyle(e).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("width", [390, 820])
def test_narrow_pages_do_not_scroll_sideways(show, width):
    page = show(layout(swizzled((64, 64))), width=width)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def big():
    def place(i, j):
        return i // 64 % 4 * 32 + i % 8 * 4 + j % 8 // 2, j % 2 + i % 16 // 8 * 2 + j // 8 * 4 + i % 64 // 16 * 128

    return make_fragment((256, 256), place, threads=128)


def test_256_by_256_paints_at_once_and_hovers_smoothly(show):
    one = big()
    assert one.check() == ()
    page = show(layout(one))
    page.wait_for_timeout(200)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 1000  # 300 ms on a quiet machine
    point(page, "tile", 100, 200, 256, 256)
    # The work of one pointer move, from event to painted marks, averaged over a walk across the tile.
    spent = page.evaluate(
        """async () => {
      const over = document.querySelector('[data-panel=tile] .tl-over'), box = over.getBoundingClientRect();
      const frame = () => new Promise(requestAnimationFrame), times = [];
      for (let k = 0; k < 60; k++) {
        const x = box.x + 40 + k * 8, y = box.y + 30 + k * 7;
        await frame();
        const began = performance.now();
        over.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y }));
        let inFrame = 0;
        await new Promise(done => requestAnimationFrame(() => { inFrame = performance.now(); done(); }));
        times.push(performance.now() - began);
      }
      return times.sort((a, b) => a - b)[30];
    }"""
    )
    assert spent < 50  # two or three frames at worst on a busy machine; 16.7 is one
    assert page.locator(".tl-view *").count() < 400  # painted, not built of 65,536 nodes


def test_values_are_walked_over_step_by_step(show):
    tile = np.arange(32.0).reshape(8, 4)
    steps = [Event(index=k, block=(0, 0, 0), role="", text=f"x = {k}", loc=None, loops={}, after={"x": tile * k}) for k in (1, 2, 3)]
    page = show(layout(make_fragment((8, 4), lambda i, j: (i * 4 + j, 0), name="x"), trace=Trace(outputs={}, events=tuple(steps))))
    status = point(page, "tile", 2, 1, 8, 4, click=True)
    expect(status).to_have_attribute("data-value", "27")
    page.get_by_label("step", exact=True).press("ArrowLeft")
    expect(page.locator("output")).to_contain_text("x = 2")
    point(page, "tile", 2, 1, 8, 4)
    expect(status).to_have_attribute("data-value", "18")


def test_a_fragment_is_seen_through_shared_memory(show):
    page = show(layout("mma.m16n8k16.D", through=row_major((16, 8), dtype="float32", name="s")))
    expect(page.locator('[data-panel="through"]')).to_contain_text("at most 2 passes")
    status = point(page, "through", 1, 8, 4, 32)  # word 40 is element (5, 0)
    expect(status).to_have_attribute("data-element", "5,0")
    expect(status).to_have_attribute("data-thread", "20")


def test_the_registers_shown_first_are_of_a_thread_that_has_some(show):
    page = show(layout(make_fragment((8, 4), lambda i, j: (64 + i * 4 + j, 0), threads=128, name="late")))
    expect(page.locator('[data-panel="registers"] h4')).to_contain_text("thread 64")

"""The live debugger in JupyterLab: the widget's buttons move the session in the kernel, and the session moves the widget."""

from __future__ import annotations

from playwright.sync_api import expect

OPEN = "from tests.views import traces\nfrom tilelab.debugger import Session\nsession = Session(traces.small(), block=(1, 0, 0))\nsession"


def test_one_session_in_widget_and_kernel(desk):
    notebook = desk.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    cell = desk.add(notebook.locator(".jp-Cell").last, OPEN)
    view = cell.locator(".tl-trace")
    view.wait_for(timeout=90_000)
    status = view.locator("> [role='status']")
    expect(view.locator(".tl-live-mark")).to_have_text("live")
    expect(status).to_have_attribute("data-step", "0")
    view.locator('[data-do="s"]').click()
    view.locator('[data-do="s"]').click()
    expect(status).to_have_attribute("data-step", "2")
    view.locator("[data-ask=k]").fill("acc[1] > 10")
    view.locator("[data-ask=k]").press("Enter")
    view.locator('[data-do="c"]').click()
    expect(status).to_have_attribute("data-step", "7")
    expect(status).to_contain_text("stopped at #1 if acc[1] > 10")
    desk.page.keyboard.press("Escape")  # lets the notebook have its keys back
    asked = desk.add(cell, "session.here.index, str(session.breakpoints[0]), session.goto(4).index")
    expect(asked.locator(".jp-OutputArea-output").last).to_contain_text("(7, '#1 if acc[1] > 10', 4)")
    expect(status).to_have_attribute("data-step", "4")  # what the cell did is seen in the widget above
    desk.theme("Dark")
    cell.scroll_into_view_if_needed()
    desk.shot("trace-lab-dark")
    desk.theme("Light")


LARGE = """
import numpy as np
from tests.views.large import gemm
from tilelab.debugger import debug
rng = np.random.default_rng(0)
a, b, c = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(3))
large = debug(gemm, a, b, c, block=(1, 2))
large
"""


def test_a_large_tensor_is_turned_page_by_page(desk):
    notebook = desk.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    cell = desk.add(notebook.locator(".jp-Cell").last, LARGE)
    view = cell.locator(".tl-trace")
    view.wait_for(timeout=120_000)
    view.locator(".tl-chip", has_text="unused").click()
    head = view.locator(".tl-valuehead")
    expect(head).to_contain_text("[0:128, 0:128]")
    expect(view.locator('[data-page="1◀"]')).to_be_disabled()
    view.locator('[data-page="1▶"]').click()
    expect(head).to_contain_text("[0:128, 128:256]")
    view.locator('[data-page="0▼"]').click()
    expect(head).to_contain_text("[128:256, 128:256]")
    shown = head.locator(".tl-stats").inner_text().replace("\n", " ")
    desk.page.keyboard.press("Escape")
    asked = desk.add(cell, "print(f'{float(c[128:256, 128:256].max()):.7g}')")
    output = asked.locator(".jp-OutputArea-output").last
    expect(output).to_contain_text(".")
    assert output.inner_text().strip() in shown, shown
    cell.scroll_into_view_if_needed()
    desk.shot("trace-large")

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

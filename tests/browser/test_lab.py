"""A learner in JupyterLab: find puzzle 1 in the side panel, solve it, check it, and look at layouts.

The owner of a hovered element is compared with what is known of it from elsewhere: 128 threads copy 512 float32 values
as 16-byte vectors, so thread ``i // 4`` owns value ``i``; and PTX gives row ``i``, column ``j`` of an ``mma.m16n8k16`` accumulator to lane
``(i mod 8) · 4 + ⌊j / 2⌋``, register ``⌊i / 8⌋ · 2 + j mod 2``.
"""

from __future__ import annotations

import re

from playwright.sync_api import expect

SOLUTION = """@tilelang.jit
def copy(A, block: int = 512):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        tile = T.alloc_fragment((block,), "float32")
        T.copy(A[bx * block], tile)
        T.copy(tile, B[bx * block])
    return B
"""
CHECK_MS = 180_000  # the first check imports torch and TileLang, on a machine that may be busy


def test_solve_puzzle_1(desk):
    page = desk.page
    panel = page.locator(".tl-Panel")
    expect(panel).to_be_visible()
    total = panel.locator(".tl-Puzzle").count()
    notebook = desk.open("01_copy")
    assert (desk.lab.home / "01_copy.ipynb").is_file()

    solution = notebook.locator(".jp-CodeCell", has_text="def copy(")
    desk.paste(solution, SOLUTION)
    check = solution.locator('.jp-cell-toolbar [data-command="tilelab:check"]')
    expect(check).to_have_text("Check")
    check.click()

    report = solution.locator(".jp-OutputArea .tl-report")
    expect(report).to_have_attribute("data-passed", "true", timeout=CHECK_MS)
    assert float(report.get_attribute("data-score")) >= 75
    row = panel.locator('.tl-Puzzle[data-puzzle="01_copy"]')
    expect(row).to_have_attribute("data-state", "solved")
    expect(row).to_have_attribute("aria-label", re.compile(r"1\. Copy, solved, \d+ of \d+ points"))
    expect(page.locator(".tl-Status-button")).to_have_attribute("aria-label", f"TileLab: 1 of {total} solved")
    desk.shot("lab-check-light")

    figure = desk.add(solution, 'tilelab.view.layout(copy, consts={"N": 1024})')
    expect(figure.locator("h3")).to_have_text("tile", timeout=60_000)
    for element in (37, 0, 511):  # drawn 32 to a row
        status = desk.hover(figure, *divmod(element, 32), 16, 32)
        expect(status).to_have_attribute("data-element", str(element))
        expect(status).to_have_attribute("data-thread", str(element // 4))
        expect(status).to_have_attribute("data-register", str(element % 4))
    desk.hover(figure, 6, 14, 16, 32)
    desk.shot("lab-layout-light")

    desk.theme("Dark")
    desk.hover(figure, 10, 9, 16, 32)
    expect(status).to_have_attribute("data-thread", str((10 * 32 + 9) // 4))
    desk.shot("lab-layout-dark")
    desk.theme("Light")


def test_owner_in_a_tensor_core_tile(desk):
    notebook = desk.open("25_tiled_gemm")
    figure = desk.add(notebook.locator(".jp-CodeCell").first, 'import tilelab\ntilelab.view.layout("mma.m16n8k16.D")')
    figure.locator('[data-panel="tile"] canvas').last.wait_for(timeout=30_000)
    for i, j in [(0, 0), (3, 5), (11, 6), (15, 7)]:
        status = desk.hover(figure, i, j, 16, 8)
        expect(status).to_have_attribute("data-element", f"{i},{j}")
        expect(status).to_have_attribute("data-thread", str(i % 8 * 4 + j // 2))
        expect(status).to_have_attribute("data-register", str(i // 8 * 2 + j % 2))
    desk.shot("lab-mma-light")


def test_a_figure_is_there_again_without_its_kernel(desk):
    page = desk.page
    notebook = desk.open("25_tiled_gemm")
    desk.add(notebook.locator(".jp-CodeCell").first, 'tilelab.view.layout("ldmatrix.m8n8")').locator("h3").wait_for(timeout=60_000)
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    page.evaluate("jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    page.evaluate("jupyterapp.commands.execute('application:close')")
    expect(page.locator(".jp-NotebookPanel:visible .jp-CodeCell", has_text="ldmatrix")).to_have_count(0)

    notebook = desk.open("25_tiled_gemm")
    figure = notebook.locator(".jp-CodeCell", has_text="ldmatrix")
    status = desk.hover(figure, 6, 5, 8, 8)  # PTX: thread ⌊lane / 4⌋ holds a row, two columns each
    expect(status).to_have_attribute("data-thread", str(6 * 4 + 5 // 2))


def test_a_wrong_answer_is_told_below_the_cell(desk):
    page = desk.page
    notebook = desk.open("07_row_sum")
    solution = notebook.locator(".jp-CodeCell", has_text="@tilelang.jit")
    notebook.locator(".jp-MarkdownCell").first.click()  # from any cell: the solution is what is checked
    page.keyboard.press("Control+Shift+Enter")
    report = solution.locator(".jp-OutputArea .tl-report")
    expect(report).to_have_attribute("data-passed", "false", timeout=CHECK_MS)
    row = desk.row("07_row_sum")
    expect(row).to_have_attribute("data-state", "started")
    expect(report).to_be_in_viewport()
    expect(page.locator(".jp-Notebook:visible .jp-Cell.jp-mod-active")).to_contain_text("@tilelang.jit")
    desk.shot("lab-wrong-light")


def test_keyboard_filter_and_chinese(desk):
    page = desk.page
    rows = page.locator(".tl-Puzzle")
    numbers = [int(x) for x in page.locator(".tl-Puzzle .tl-Tile").all_text_contents()]
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(rows.last).to_be_focused()
    page.keyboard.press("Home")
    expect(rows.first).to_be_focused()
    assert numbers == sorted(numbers)

    box = page.get_by_role("searchbox", name="Filter puzzles")
    box.fill("gemm tiled")
    expect(desk.row("25_tiled_gemm")).to_be_visible()
    expect(desk.row("01_copy")).to_have_count(0)
    box.fill("no such thing")
    expect(page.get_by_text("No puzzle matches")).to_be_visible()
    box.fill("")

    page.get_by_role("button", name="Switch to Chinese").click()
    expect(page.locator('.tl-Puzzle[data-puzzle="01_copy"] .tl-Puzzle-title')).to_have_text("复制")
    expect(page.locator(".tl-Panel")).to_have_attribute("lang", "zh-CN")
    desk.open("01_copy")
    assert (desk.lab.home / "01_copy.zh.ipynb").is_file()
    expect(page.locator('.jp-NotebookPanel-toolbar:visible [data-command="tilelab:check"]').last).to_have_text("检查")
    desk.shot("lab-chinese-light")
    desk.theme("Dark")
    desk.shot("lab-chinese-dark")
    desk.theme("Light")
    page.get_by_role("button", name="切换到英文").click()
    expect(page.locator('.tl-Puzzle[data-puzzle="01_copy"] .tl-Puzzle-title')).to_have_text("Copy")


def test_work_survives_opening_again(desk):
    mine = "# my own notes"
    page = desk.page
    notebook = desk.open("01_copy")
    desk.add(notebook.locator(".jp-CodeCell").first, mine)
    page.evaluate("jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_function("!jupyterapp.shell.currentWidget.context.model.dirty")
    desk.row("07_row_sum").click()
    desk.open("01_copy")
    assert mine in (desk.lab.home / "01_copy.ipynb").read_text("utf-8")

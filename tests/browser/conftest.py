"""JupyterLab as `tilelab lab` starts it, and a Chromium that notes every request that leaves this machine."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "screenshots"
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"]
GRID_LEFT, GRID_TOP = 32, 20  # pixels that a grid keeps for the names of its rows and columns
LOCAL = {"localhost", "127.0.0.1", ""}
# What a browser or Lab says in any notebook, with or without TileLab.
# "widget model not found": a saved view asks for its model before the new kernel has made it; JupyterLab then shows the saved picture.
NOISE = re.compile(r"widget model not found|shortcut because it collides|yjs#509|was preloaded|Menu entry for command|favicon|translation|Failed to load resource")


@dataclass
class Lab:
    """A running `tilelab lab`."""

    url: str
    home: Path
    opened: str
    said: list[str] = field(default_factory=list)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(home: Path, *options: str) -> tuple[subprocess.Popen[str], Lab]:
    """Start `tilelab lab` and return it once it has printed its address."""
    if not (ROOT / "tilelab" / "labextension" / "package.json").is_file():
        pytest.fail("the lab extension is not built: run `npm ci && npm run build` in visualizers/")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "TILELAB", "LC_", "LANG"))}
    env |= {"PYTHONPATH": str(ROOT), "JUPYTER_CONFIG_DIR": str(home.parent / "config"), "HOME": str(home.parent), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "tilelab", "lab", "--folder", str(home), "--no-browser", "--port", str(free_port()), *options]
    command += ["--", "--LabApp.expose_app_in_browser=True"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"open at (\S+)", line):
            # Somebody has to go on reading, or the pipe fills and Jupyter stands still.
            threading.Thread(target=lambda: said.extend(process.stdout), daemon=True).start()
            return process, Lab(found[1], home, Path(urlsplit(found[1]).path).name, said)
    pytest.fail("tilelab lab ended:\n" + "".join(said))


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    process, running = start(tmp_path_factory.mktemp("lab") / "puzzles", "--puzzle", "7")
    yield running
    process.terminate()
    process.wait(15)


@pytest.fixture(scope="session")
def chromium():
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.fail("no Chromium here: on Debian, `apt-get install chromium`")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A page at whose end nothing may have left this machine and no script may have failed."""
    context = chromium.new_context(viewport={"width": 1360, "height": 860}, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    outside: list[str] = []
    errors: list[str] = []
    context.on("request", lambda r: outside.append(r.url) if (urlsplit(r.url).hostname or "") not in LOCAL else None)
    page.on("websocket", lambda w: outside.append(w.url) if (urlsplit(w.url).hostname or "") not in LOCAL else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" and not NOISE.search(m.text) else None)
    yield page
    context.close()
    assert outside == []
    assert errors == []


@pytest.fixture
def desk(page, lab):
    """A learner in Lab, the puzzles listed."""
    made = Desk(page, lab)
    made.enter()
    return made


@dataclass
class Desk:
    """What a learner does in Lab."""

    page: Page
    lab: Lab

    def enter(self) -> None:
        self.page.goto(self.lab.url)
        self.page.locator(".tl-Puzzle").first.wait_for(timeout=60_000)
        # Lab brings the notebook of the address to the front by itself, a little later.
        self.page.wait_for_function("path => jupyterapp.shell.currentWidget?.context?.path === path", arg=self.lab.opened)
        self.kernel_ready()

    def kernel_ready(self) -> None:
        """Wait for the kernel of the notebook in front."""
        self.page.evaluate(
            """async () => {
                const notebook = jupyterapp.shell.currentWidget;
                await notebook.context.ready;
                await notebook.sessionContext.ready;
                await notebook.sessionContext.session.kernel.info;
            }"""
        )

    def row(self, puzzle: str) -> Locator:
        """The puzzle's row in the side panel."""
        return self.page.locator(f'.tl-Puzzle[data-puzzle="{puzzle}"]')

    def open(self, puzzle: str) -> Locator:
        """Open a puzzle from the side panel; return its notebook, the kernel ready."""
        self.row(puzzle).click()
        expect(self.row(puzzle)).to_have_attribute("aria-current", "page", timeout=30_000)
        self.kernel_ready()
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def paste(self, cell: Locator, text: str) -> None:
        """Replace what a cell says by pasting."""
        cell.locator(".cm-content").click()
        self.page.evaluate("text => navigator.clipboard.writeText(text)", text)
        self.page.keyboard.press("Control+a")
        self.page.keyboard.press("Control+v")

    def add(self, below: Locator, code: str) -> Locator:
        """Add a cell below another, run it, and return it."""
        below.locator(".jp-InputPrompt").first.click()  # command mode
        self.page.keyboard.press("b")
        active = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell.jp-mod-active")
        expect(active.locator(".cm-content")).to_have_text("")
        name = self.page.evaluate("jupyterapp.shell.currentWidget.content.activeCell.model.id")
        self.paste(active, code)
        self.page.keyboard.press("Control+Enter")
        # The cell stays this one, whichever is active later.
        self.page.evaluate("name => jupyterapp.shell.currentWidget.content.activeCell.node.setAttribute('data-test', name)", name)
        return self.page.locator(f'[data-test="{name}"]')

    def hover(self, figure: Locator, row: int, column: int, rows: int, columns: int) -> Locator:
        """Point at a cell of the tile in a layout figure; return the line that says what it is."""
        grid = figure.locator('[data-panel="tile"] canvas').last
        grid.wait_for(timeout=60_000)
        grid.scroll_into_view_if_needed()
        box = grid.bounding_box()
        x = box["x"] + GRID_LEFT + (column + 0.5) * (box["width"] - GRID_LEFT) / columns
        y = box["y"] + GRID_TOP + (row + 0.5) * (box["height"] - GRID_TOP) / rows
        self.page.mouse.move(x - 1, y)
        self.page.mouse.move(x, y)
        return figure.locator('[role="status"]')

    def theme(self, name: str) -> None:
        """Change to the theme ``"Light"`` or ``"Dark"``."""
        self.page.evaluate("name => jupyterapp.commands.execute('apputils:change-theme', {theme: `JupyterLab ${name}`})", name)
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(name == "Light").lower())
        self.page.wait_for_timeout(400)  # colours fade

    def shot(self, name: str) -> Path:
        """Keep a screenshot under build/screenshots/."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        path = SHOTS / f"{name}.png"
        self.page.screenshot(path=path)
        return path

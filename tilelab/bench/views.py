"""``tilelab bench views``: what lowering adds to TileLang's own time, how fast views are made and opened again, how fast a page paints.

CPU seconds of this process, the least of several rounds, where two things are compared: wall-clock time on a shared machine says little.
A page is timed in Chromium where playwright and a browser are here.
"""

from __future__ import annotations

import importlib
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tilelab.bench.sim import _machine

SCHEMA, VERSION = "tilelab.bench.views", 1
#: name → (what it is, bar, its unit); every value must stay below its bar, but frames a second above it
BARS: Mapping[str, tuple[str, float, str]] = {
    "lowering adds": ("lowering a kernel, over what TileLang's own lowering takes", 25.0, "%"),
    "layout view": ("the layout view of a 128×128 fragment from a lowered kernel, as HTML", 100.0, "ms"),
    "layout size": ("its HTML page", 300.0, "KB"),
    "opened again": ("a view of a kernel whose lowering is cached", 50.0, "ms"),
    "first paint": ("first contentful paint of a 256×256 layout's page", 300.0, "ms"),
    "frames": ("frames a second while hovering over it", 58.0, "frames/s"),
}


def run(cases: Sequence[str] = (), *, seconds: float = 2.0, progress: Callable[[str], None] = print) -> dict[str, Any]:
    """Time everything and return the record.

    Args:
        cases: Only measurements whose name holds one of these.
        seconds: How long to time each.
        progress: Called with a line before each measurement.
    """
    results: list[dict[str, Any]] = []
    notes: list[str] = []
    for name, measure in _MEASURES.items():
        if not cases or any(c in name for c in cases):
            progress(f"{name} …")
            measure(results, notes, seconds)
    bars = [
        {
            "case": f"{r['case']}: {r['kernel']}".rstrip(": "), "text": f"{BARS[r['case']][0]}, {'≥' if r['case'] == 'frames' else '<'} "
            f"{BARS[r['case']][1]:g} {BARS[r['case']][2]}", "value": r["value"],
            "met": r["value"] >= BARS["frames"][1] if r["case"] == "frames" else r["value"] < BARS[r["case"]][1],
        }
        for r in results
    ]  # fmt: skip
    return {"schema": SCHEMA, "version": VERSION, "machine": _machine(None), "notes": notes, "results": results, "bars": bars}


def table(record: Mapping[str, Any]) -> str:
    """Return the record as lines: whether each bar is met, and the value."""
    lines = [f"{'ok  ' if b['met'] else 'MISS'} {b['case']}: {b['text']} (here {b['value']:.3g})" for b in record["bars"]]
    return "\n".join([*lines, *record["notes"]])


def _kernels() -> dict[str, tuple[Any, tuple[str, ...]]]:
    made = importlib.import_module("tilelab.bench.sim_kernels")
    attention = importlib.import_module("tilelab.kernels.mla").portable.get_tir(16, 16)
    return {"matmul 512³": (made.matmul(512, 128, 128, 32), ("sm_80", "sm_90")), "MLA decode": (attention, ("sm_80", "sm_90"))}


# ------------------------------------------------------------------------------------------------- lowering
def _lowering(results: list[dict[str, Any]], _notes: list[str], seconds: float) -> None:
    import tilelang
    import tvm

    from tilelab.compiler import capture
    from tilelab.compiler.lowering import lower
    from tilelab.compiler.quiet import quiet
    from tilelab.compiler.targets import tvm_target
    from tilelab.compiler.writer import emit

    for name, (kernel, targets) in _kernels().items():
        program = capture(kernel)
        for target in targets:
            canonical, tvm_t = tvm_target(target)
            func = emit(program)

            def alone(func: Any = func, tvm_t: Any = tvm_t) -> None:
                with quiet(), tvm.transform.PassContext(opt_level=3), tvm_t:
                    tilelang.lower(func, target=tvm_t)

            def ours(program: Any = program, target: str = target) -> None:
                lower(program, target=target, use_cache=False)

            theirs, own = _least(alone, ours, seconds)
            results.append({"case": "lowering adds", "kernel": f"{name}, {canonical}", "value": 100 * (own / theirs - 1), "unit": "%",
                            "tilelang_s": theirs, "tilelab_s": own})  # fmt: skip


def _least(one: Callable[[], None], two: Callable[[], None], seconds: float) -> tuple[float, float]:
    """The least CPU seconds of each, taken in turn."""
    best = [float("inf"), float("inf")]
    end, rounds = time.perf_counter() + 3 * seconds, 0
    while rounds < 3 or (time.perf_counter() < end and rounds < 20):
        for k, call in enumerate((one, two)):
            started = time.process_time()
            call()
            best[k] = min(best[k], time.process_time() - started)
        rounds += 1
    return best[0], best[1]


# ---------------------------------------------------------------------------------------------------- views
def _views(results: list[dict[str, Any]], _notes: list[str], seconds: float) -> None:
    from tilelab import views
    from tilelab.compiler import capture
    from tilelab.compiler.lowering import lower

    kernels = _kernels()
    artifact = lower(kernels["matmul 512³"][0])
    page = views.layout(artifact, "acc").to_html()
    results.append(
        {"case": "layout view", "kernel": "", "value": _median(lambda: views.layout(artifact, "acc").to_html(), seconds), "unit": "ms"}
    )
    results.append({"case": "layout size", "kernel": "", "value": len(page.encode()) / 1000, "unit": "KB"})
    for name, (kernel, targets) in kernels.items():
        program = capture(kernel)
        for target in targets:
            for what in ("lower", "layout", "pipeline", "resources"):
                make = _opened(what, program, target)
                if make is not None:
                    results.append(
                        {"case": "opened again", "kernel": f"{what} of {name}, {target}", "value": _median(make, seconds / 4), "unit": "ms"}
                    )


def _opened(what: str, program: Any, target: str) -> Callable[[], Any] | None:
    from tilelab import views
    from tilelab.compiler.lowering import lower
    from tilelab.errors import InputError

    def call() -> Any:
        return lower(program, target=target) if what == "lower" else getattr(views, what)(program, target=target)

    def from_cache() -> Any:
        return views.pipeline(lower(program, target=target))

    make = from_cache if what == "pipeline" else call
    try:
        make()
    except InputError:
        return None  # no pipelined loop
    return make


def _median(call: Callable[[], Any], seconds: float) -> float:
    """Milliseconds of wall-clock time."""
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < 3 or (time.perf_counter() < end and len(samples) < 50):
        started = time.perf_counter()
        call()
        samples.append(1000 * (time.perf_counter() - started))
    return statistics.median(samples)


# ----------------------------------------------------------------------------------------------------- pages
_HOVER = """async () => {
  const over = document.querySelector('[data-panel=tile] .tl-over'), box = over.getBoundingClientRect();
  const frame = () => new Promise(requestAnimationFrame);
  await frame();
  const began = performance.now();
  let frames = 0;
  while (performance.now() - began < 1500) {
    const x = box.x + 40 + (frames * 7) % (box.width - 60), y = box.y + 30 + (frames * 5) % (box.height - 50);
    over.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y }));
    await frame();
    frames++;
  }
  return frames / (performance.now() - began) * 1000;
}"""


def _pages(results: list[dict[str, Any]], notes: list[str], _seconds: float) -> None:
    from tilelab import views
    from tilelab.layout_make import make_fragment

    def place(i: Any, j: Any) -> tuple[Any, Any]:
        return i // 64 % 4 * 32 + i % 8 * 4 + j % 8 // 2, j % 2 + i % 16 // 8 * 2 + j // 8 * 4 + i % 64 // 16 * 128

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    try:
        start = importlib.import_module("playwright.sync_api").sync_playwright
    except ImportError:
        start = None
    if start is None or browser is None:
        notes.append("pages were not timed: there is no playwright, or no Chromium")
        return
    with tempfile.TemporaryDirectory() as folder, start() as playwright:
        path = views.layout(make_fragment((256, 256), place, threads=128)).save(Path(folder) / "page.html")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"])
        paints, rates = [], []
        for _ in range(5):
            page = chromium.new_page(viewport={"width": 1240, "height": 900})
            page.goto(path.as_uri())
            page.wait_for_selector(".tl-view")
            page.wait_for_timeout(300)
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            rates.append(page.evaluate(_HOVER))
            page.close()
        chromium.close()
    results.append({"case": "first paint", "kernel": "", "value": statistics.median(paints), "unit": "ms"})
    results.append({"case": "frames", "kernel": "", "value": statistics.median(rates), "unit": "frames/s"})


_MEASURES: Mapping[str, Callable[[list[dict[str, Any]], list[str], float], None]] = {
    "lowering": _lowering,
    "views": _views,
    "pages": _pages,
}

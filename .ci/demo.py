"""`make demo`: the main job with no screen. Solve puzzle 1, grade it, draw it; everything lands in build/demo/index.html.

What `tilelab grade 1 … --json` prints goes to stdout; how far it is goes to stderr.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "demo" / "index.html"
SEED = 0
SIZES = {"N": 1024}
#: nothing is asked of the network, and the browser is told so
_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' blob:; img-src data:">
<meta name="color-scheme" content="light dark"><title>TileLab: puzzle 1, solved</title><style>
body{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
pre{overflow:auto;padding:.8rem 1rem;border:1px solid #8886;border-radius:6px;font-size:13px;line-height:1.45}
h2{margin-top:2.5rem;border-bottom:1px solid #8886}
table{border-collapse:collapse}td,th{border:1px solid #8886;padding:.25rem .6rem}img{max-width:100%}
</style></head><body>
"""


def main() -> int:
    """Make the page and print the grade; the exit status is the grade's."""
    steps = iter(("loading", "grading on hidden inputs", "lowering for an A100", "drawing"))
    began = time.monotonic()
    _say(next(steps))
    import tilelab
    from tilelab.cli import main as command
    from tilelab.files import write_text
    from tilelab.loading import load_kernel
    from tilelab.views.html import embed

    puzzle = tilelab.puzzle("1")
    solution = (puzzle.folder / "solution.py").relative_to(ROOT)
    _say(next(steps))
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = command(["grade", "1", str(solution), "--seed", str(SEED), "--json"])
    report = puzzle.check(solution, seed=SEED)
    _say(next(steps))
    kernel = load_kernel(f"{solution}::{puzzle.spec.entry}").kernel
    artifact = tilelab.lower(kernel, target="sm_80", consts=SIZES)
    _say(next(steps))
    view = _picture(artifact)
    parts = [
        _HEAD,
        _markdown(puzzle.statement("en")),
        "<h2>A solution</h2>",
        f"<pre>{escape(solution.read_text(encoding='utf-8'))}</pre>",
        "<h2>Its grade</h2>",
        report.to_html(),
        "<h2>Which thread holds what</h2>",
        "" if artifact.layouts else "<p>A copy straight through memory has no layout to show. This is the same copy written as a loop.</p>",
        embed(view),
        "<h2>The CUDA that TileLang makes of it</h2>",
        f"<pre>{escape(artifact.source)}</pre>",
        "</body></html>\n",
    ]
    write_text(OUT, "\n".join(parts))
    print(said.getvalue(), end="")
    _say(f"{OUT.relative_to(ROOT)} is ready ({time.monotonic() - began:.0f} s)")
    return code


def _picture(artifact: Any) -> Any:
    """The layouts of the solution; a copy straight through memory has none until it is written as a loop."""
    import tilelang
    import tilelang.language as T

    import tilelab

    if artifact.layouts:
        return tilelab.view.layout(artifact)

    @tilelang.jit
    def copy_by_a_loop(A, block: int = 128):
        N = T.const("N")
        A: T.Tensor[[N], "float32"]
        B = T.empty((N,), "float32")
        with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]
        return B

    return tilelab.view.layout(copy_by_a_loop, target=artifact.target, consts=SIZES)


def _say(text: str) -> None:
    print(f"demo: {text}", file=sys.stderr, flush=True)


def _markdown(text: str) -> str:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    markdown.validateLink = lambda url: True  # the pictures are data: URLs
    return str(markdown.render(text))


if __name__ == "__main__":
    sys.exit(main())

"""``tilelab book``: start, build or check a book of executable pages that opens offline."""

from __future__ import annotations

import argparse
import html.parser
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tilelab.errors import EnvironmentLacks, InputError

HELP = "Start, build or check a book: pages of MyST Markdown whose code cells run at build time and whose pictures open offline."

_CONF = '''"""Settings of this book; TileLab's own are the start."""

from tilelab.sphinx_conf import *  # noqa: F403

project = {title!r}
'''
_INDEX = """# {title}

A first page. The cell below runs when the book is built; its picture is live in the page.

```{{toctree}}
:maxdepth: 1

first
```
"""
_CHAPTER = """---
file_format: mystnb
kernelspec: {name: python3}
---

# A first kernel

```{code-cell}
import tilelang
import tilelang.language as T

import tilelab


@tilelang.jit
def double(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 2
    return B


trace = tilelab.simulate(double, consts={"N": 256})
trace.outputs["out0"][:4], trace.findings
```
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument(
        "what",
        choices=("new", "build", "check"),
        help="new: start a book; build: make its pages; check: build and look for what would not open offline",
    )
    parser.add_argument("folder", nargs="?", default="book", help="the book's folder. Default: book")
    parser.add_argument("-o", "--out", default="build/book", metavar="DIR", help="where the pages go. Default: build/book")


def run(args: argparse.Namespace) -> int:
    """Do what was asked."""
    folder, out = Path(args.folder), Path(args.out)
    if args.what == "new":
        _new(folder)
        print(f"{folder} is started: write pages in it, then run: tilelab book build {folder}", file=sys.stderr)
        return 0
    if not (folder / "conf.py").is_file():
        raise InputError(f"{folder} is not a book: it has no conf.py", fix=f"start one with: tilelab book new {folder}")
    code = _build(folder, out)
    if code == 0 and args.what == "check":
        faults = list(faults_of(out))
        for fault in faults:
            print(fault, file=sys.stderr)
        code = 1 if faults else 0
    if code == 0:
        print(f"{out / 'index.html'}")
    return code


def _new(folder: Path) -> None:
    from tilelab.files import write_text

    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is there already and not empty", fix="give another folder")
    title = folder.resolve().name.replace("_", " ").replace("-", " ").capitalize()
    write_text(folder / "conf.py", _CONF.format(title=title))
    write_text(folder / "index.md", _INDEX.format(title=title))
    write_text(folder / "first.md", _CHAPTER)


def _build(folder: Path, out: Path) -> int:
    missing = [name for name in ("sphinx", "myst_nb", "sphinx_book_theme") if importlib.util.find_spec(name) is None]
    if missing:
        raise EnvironmentLacks(f"a book needs {', '.join(missing)}", fix="pip install 'tilelab[book]'")
    out.parent.mkdir(parents=True, exist_ok=True)
    cache = out.parent / f".{out.name}-cache"
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", str(cache), str(folder), str(out)]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    return 1 if done.returncode else 0


# ------------------------------------------------------------------------------------------------- checking
def faults_of(out: Path) -> Iterator[str]:
    """Yield what would not open offline in the built pages: requests to elsewhere, and links to nothing."""
    for page in sorted(p for p in out.rglob("*.html") if "_static" not in p.relative_to(out).parts):
        links = _Links()
        links.feed(page.read_text(encoding="utf-8"))
        for kind, target in links.found:
            if target.startswith(("http://", "https://", "//")):
                if kind == "load":
                    yield f"{page}: loads {target} from the network"
            elif not target.startswith(("#", "data:", "mailto:", "javascript:", "blob:")):
                file = (page.parent / target.partition("#")[0].partition("?")[0]).resolve()
                if not file.exists():
                    yield f"{page}: links to {target}, which is not there"


class _Links(html.parser.HTMLParser):
    """Collects what a page loads by itself, and what it links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the addresses of one tag."""
        given = dict(attrs)
        loads = tag in ("script", "img", "iframe", "source", "embed", "audio", "video")
        if tag == "link":
            loads = not set((given.get("rel") or "").split()) & {"canonical", "next", "prev", "author", "search", "index"}
        for name in ("src", "href"):
            value = given.get(name)
            if value:
                self.found.append(("load" if loads else "link", value))

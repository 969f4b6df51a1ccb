"""``tilelab view KIND FILE.py::KERNEL``: draw something of a kernel."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilelab.cli import options
from tilelab.errors import InputError

HELP = "Draw a kernel's layout as text, SVG, a self-contained HTML page or JSON."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("kind", metavar="KIND", help="what to show: layout")
    options.add_kernel_options(parser)
    parser.add_argument("--buffer", default=None, metavar="NAME", help="the buffer to show. Default: the first fragment")
    parser.add_argument(
        "--format", choices=("text", "svg", "html", "json"), default=None, help="Default: what the suffix of -o says, or text"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the fixed words. Default: en")
    parser.add_argument("-o", "--output", default=None, metavar="FILE", help="write to FILE, whole or not at all. Default: stdout")


def run(args: argparse.Namespace) -> int:
    """Draw it."""
    from tilelab.files import write_text
    from tilelab.views.view import SUFFIXES

    if args.kind not in _KINDS:
        raise InputError(f"no view is called {args.kind!r}", fix=f"there is {', '.join(_KINDS)}")
    fmt = "json" if args.json else args.format or SUFFIXES.get(Path(args.output or "").suffix, "text")
    text = _KINDS[args.kind](args).render(fmt)
    if args.output:
        write_text(args.output, text)
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0


def _layout(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import layout

    loaded = load_kernel(args.kernel)
    return layout(loaded.kernel, args.buffer, target=args.target, consts=options.consts(args), lang=args.lang)


_KINDS: dict[str, Callable[[argparse.Namespace], Any]] = {"layout": _layout}

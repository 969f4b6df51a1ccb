"""``tilelab view KIND FILE.py::KERNEL``: draw something of a kernel."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tilelab.cli import options
from tilelab.errors import InputError

HELP = "Draw a kernel's layouts, pipeline, program, resources, variants or steps as text, SVG, a self-contained HTML page or JSON."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("kind", metavar="KIND", help=f"what to show: {', '.join(_KINDS)}")
    options.add_kernel_options(parser)
    parser.add_argument(
        "--buffer", default=None, metavar="NAME", help="the buffer to show. Default: the first fragment; trace: what the step wrote"
    )
    parser.add_argument("--loop", default=None, metavar="NAME", help="pipeline: the loop's variable or line. Default: the first")
    parser.add_argument("--order", default=None, metavar="0,1,…", help="pipeline: an order to try by hand; with --stage")
    parser.add_argument("--stage", default=None, metavar="0,0,…", help="pipeline: a stage to try by hand; with --order")
    parser.add_argument("--gpu", default=None, metavar="NAME", help="resources: the GPU shown, e.g. H100. Default: that of the target")
    parser.add_argument(
        "--panes", default=None, metavar="A,B,…", help="program: among python tile lowered source ptx sass. Default: python,lowered,source"
    )
    parser.add_argument("--assemble", action="store_true", help="program: PTX and SASS as well; whatif: registers; takes nvcc")
    parser.add_argument("--num-stages", default=None, metavar="2,3,…", help="whatif: stages of every pipelined loop")
    parser.add_argument("--threads", default=None, metavar="128,…", help="whatif: threads of a block")
    parser.add_argument("--pad", default=None, metavar="0,8,…", help="whatif: unused elements after each row of the shared buffers")
    parser.add_argument(
        "--step", type=int, default=None, metavar="N", help="the step shown; trace, Default: first NaN, error, or last; layout: its values"
    )
    parser.add_argument("--values", action="store_true", help="layout: run the kernel and show values on it, step by step")
    parser.add_argument(
        "--break", dest="breaks", action="append", default=[], metavar="WHERE", help="trace: a line, condition, nan, oob or code; repeats"
    )
    parser.add_argument("--watch", action="append", default=[], metavar="EXPR", help="trace: an expression to watch; repeatable")
    parser.add_argument(
        "--format", choices=("text", "svg", "html", "json"), default=None, help="Default: what the suffix of -o says, or text"
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the fixed words. Default: en")
    parser.add_argument("-o", "--output", default=None, metavar="FILE", help="write to FILE, whole or not at all. Default: stdout")


def run(args: argparse.Namespace) -> int:
    """Draw it."""
    from tilelab.files import write_text
    from tilelab.loading import prints_to_stderr
    from tilelab.views.view import SUFFIXES

    if args.kind not in _KINDS:
        raise InputError(f"no view is called {args.kind!r}", fix=f"there is {', '.join(_KINDS)}")
    fmt = "json" if args.json else args.format or SUFFIXES.get(Path(args.output or "").suffix, "text")
    with prints_to_stderr():
        view = _KINDS[args.kind](args)
    text = view.render(fmt)
    if args.output:
        write_text(args.output, text)
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 1 if view.kind == "conflict" else 0


def _layout(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import layout

    loaded = load_kernel(args.kernel)
    more = {"trace": _run(args, loaded), "step": args.step, "block": options.block(args)} if args.step is not None or args.values else {}
    return layout(loaded.kernel, args.buffer, target=args.target, consts=options.consts(args), lang=args.lang, **more)


def _run(args: argparse.Namespace, loaded: Any) -> Any:
    """Simulate the kernel, recording the block that was asked for."""
    from tilelab import api
    from tilelab.loading import shown_files
    from tilelab.tensors import default_inputs
    from tilelab.trace import SimParams

    consts, block = options.consts(args), options.block(args)
    program = api.program_of(loaded.kernel, consts=consts, files=shown_files(loaded))
    inputs = api.sizes(program, consts) | default_inputs(program, seed=args.seed, how=options.inputs(args), consts=consts)
    params = api.canonical(SimParams(seed=args.seed, target=args.target, record_blocks=(block,)))
    return api.run(program, inputs, level=args.level, params=params)


def _trace(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import trace

    ran, block = _run(args, load_kernel(args.kernel)), options.block(args)
    return trace(ran, buffer=args.buffer, block=block, at=args.step, breaks=args.breaks, watches=args.watch, lang=args.lang)


def _pipeline(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import pipeline

    loaded = load_kernel(args.kernel)
    order, stage = _numbers("--order", args.order), _numbers("--stage", args.stage)
    return pipeline(loaded.kernel, args.loop, target=args.target, consts=options.consts(args), order=order, stage=stage, lang=args.lang)


def _program(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import program

    loaded = load_kernel(args.kernel)
    targets, show = args.target.split(","), (args.panes or "python,lowered,source").split(",")
    return program(loaded.kernel, target=targets, consts=options.consts(args), assemble=args.assemble, show=show, lang=args.lang)


def _resources(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import resources

    loaded = load_kernel(args.kernel)
    return resources(loaded.kernel, args.gpu, target=args.target, consts=options.consts(args), lang=args.lang)


def _whatif(args: argparse.Namespace) -> Any:
    from tilelab.loading import load_kernel
    from tilelab.views import whatif

    loaded = load_kernel(args.kernel)
    given = {"num_stages": _numbers("--num-stages", args.num_stages), "threads": _numbers("--threads", args.threads),
             "pad": _numbers("--pad", args.pad)}  # fmt: skip
    targets = args.target.split(",")
    if len(targets) == 1 and not any(given.values()):
        raise InputError("nothing to change", fix="give --num-stages 2,3,4, --threads 128,256, --pad 0,8 or --target sm_80,sm_90")
    return whatif(loaded.kernel, **given, target=targets, consts=options.consts(args), assemble=args.assemble, lang=args.lang)


def _conflict(args: argparse.Namespace) -> Any:
    view = _layout(args)
    if view.kind != "conflict":
        raise InputError(f"the layouts of {args.kernel} agree on {args.target}", fix="see them with `tilelab view layout`")
    return view


def _numbers(name: str, text: str | None) -> list[int] | None:
    try:
        return [int(n) for n in text.split(",")] if text else None
    except ValueError:
        raise InputError(f"{name} {text}: not numbers with commas between", fix=f"for example {name} 0,0,1") from None


_KINDS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "conflict": _conflict,
    "layout": _layout,
    "pipeline": _pipeline,
    "program": _program,
    "resources": _resources,
    "trace": _trace,
    "whatif": _whatif,
}

"""``tilelab debug FILE.py::KERNEL``: step through a block of a kernel, forwards and back, by plain keys."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping

from tilelab.cli import options

HELP = (
    "Simulate a kernel, recording one block, and step through it: forwards, back, to a breakpoint, watching buffers. `help` lists the keys."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    options.add_kernel_options(parser)
    parser.add_argument("--do", action="append", default=[], metavar="COMMAND", help="run this command instead of asking; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the recorded steps as JSON and leave")


def run(args: argparse.Namespace) -> int:
    """Record and step."""
    from tilelab import api
    from tilelab.debugger import Session
    from tilelab.debugger.terminal import Terminal
    from tilelab.loading import load_kernel, prints_to_stderr, shown_files
    from tilelab.tensors import default_inputs
    from tilelab.trace import SimParams

    consts, block = options.consts(args), options.block(args)
    params = api.canonical(SimParams(seed=args.seed, target=args.target, record_blocks=(block,)))
    loaded = load_kernel(args.kernel)
    with prints_to_stderr():
        program = api.program_of(loaded.kernel, consts=consts, files=shown_files(loaded))
    inputs = api.sizes(program, consts) | default_inputs(program, seed=args.seed, how=options.inputs(args), consts=consts)
    api.check_block(program, block, inputs)
    trace = api.run(program, inputs, level=args.level, params=params)
    session = Session(trace, block=block)
    if args.outputs:
        from tilelab.cli.check import write_outputs

        write_outputs(trace.outputs, args.outputs)
    if args.json:
        print(json.dumps(_steps(session, shown_files(loaded)), ensure_ascii=False))
    else:
        Terminal(session, program.sources, sys.stdout).run(
            args.do or _lines(), prompt="" if args.do or not sys.stdin.isatty() else "(tilelab) "
        )
    return 1 if any(f.severity == "error" for f in trace.findings) else 0


def _lines() -> Iterable[str]:
    return iter(sys.stdin.readline, "")


def _steps(session: object, shown: Mapping[str, str]) -> dict[str, object]:
    events = session.trace.events  # type: ignore[attr-defined]
    return {
        "steps": [
            {
                "index": e.index,
                "block": list(e.block),
                "role": e.role,
                "text": e.text,
                "file": shown.get(e.loc.file, e.loc.file) if e.loc else None,
                "line": e.loc.line if e.loc else None,
                "loops": dict(e.loops),
                "wrote": sorted(e.after),
            }
            for e in events
        ]
    }

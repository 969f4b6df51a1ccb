"""``tilelab check FILE.py::KERNEL``: simulate a kernel and list what is wrong with it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelab.cli import options

if TYPE_CHECKING:
    from tilelab.analysis.prove import Proof
    from tilelab.finding import Finding
    from tilelab.loading import Loaded
    from tilelab.trace import PrintRecord, Trace

HELP = "Simulate a kernel on inputs made for it and list what is wrong with it: exit status 0 if nothing is, 1 if a finding is an error."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    options.add_kernel_options(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout, and nothing else there")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="json is the same as --json")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=120.0,
        metavar="S",
        help="stop a simulation that takes longer; what it found by then counts. Default: 120",
    )
    parser.add_argument("--prove", action="store_true", help="also ask Z3 about all sizes, blocks and iterations, not only those that run")
    parser.add_argument("--prove-seconds", type=_seconds, default=10.0, metavar="S", help="time for --prove. Default: 10")


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 86400:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return value


def run(args: argparse.Namespace) -> int:
    """Check the kernel and report."""
    from tilelab.api import canonical
    from tilelab.finding import KernelRefused
    from tilelab.loading import load_kernel, prints_to_stderr, shown_files
    from tilelab.reports import describe_output, plain, print_json
    from tilelab.trace import SimParams

    consts, how = options.consts(args), options.inputs(args)
    block = options.block(args) if args.block else None
    params = canonical(SimParams(seed=args.seed, target=args.target, max_seconds=args.seconds))
    seconds = args.prove_seconds if args.prove else 0
    files: dict[str, str] = {}
    trace, proof = None, None
    try:
        loaded = load_kernel(args.kernel)
        files = shown_files(loaded)
        with prints_to_stderr():  # a function that makes the kernel may print
            trace, findings, proof = examine(
                loaded, consts=consts, how=how, level=args.level, params=params, prove_seconds=seconds, block=block
            )
    except KernelRefused as refused:  # while the file was loaded
        findings = (refused.finding,)
    prints = [p for p in (trace.prints if trace else ()) if block is None or p.block == block]
    report: dict[str, Any] = {
        "kernel": args.kernel,
        "level": args.level,
        "target": params.target,
        "findings": [plain(f.to_json()) for f in findings],
        "prints": [plain(print_json(p, files)) for p in prints],
        "outputs": {name: describe_output(array) for name, array in (trace.outputs.items() if trace else ())},
    }
    if proof is not None:
        report["proof"] = {
            "proved": [c.what for c in proof.claims if c.holds],
            "refuted": [c.message for c in proof.refuted],
            "open": [{"claim": c.what, "reason": c.reason} for c in proof.claims if c.holds is None],
        }
    if args.outputs and trace:
        write_outputs(trace.outputs, args.outputs)
    if args.json or args.format == "json":
        print(json.dumps(report, ensure_ascii=False, allow_nan=False))
    else:
        _print_text(report, findings, prints)
    return 1 if any(f.severity == "error" for f in findings) else 0


def examine(
    loaded: Loaded,
    *,
    consts: Mapping[str, Any],
    how: Mapping[str, str],
    level: str,
    params: Any,
    prove_seconds: float = 0,
    block: tuple[int, int, int] | None = None,
) -> tuple[Trace | None, tuple[Finding, ...], Proof | None]:
    """Run a loaded kernel on default or named inputs and gather every finding, with files named as the user named them.

    ``block`` must be one of the grid. With ``prove_seconds``, Z3 looks for more over all sizes, for so long; the proof comes third.
    """
    from tilelab import api
    from tilelab.finding import KernelRefused
    from tilelab.loading import shown_files
    from tilelab.tensors import default_inputs

    trace: Trace | None = None
    try:
        program = api.program_of(loaded.kernel, consts=consts, files=shown_files(loaded))
    except KernelRefused as refused:
        return None, (as_typed(refused.finding, loaded),), None
    inputs = api.sizes(program, consts) | default_inputs(program, seed=params.seed, how=how, consts=consts)
    if block is not None:
        api.check_block(program, block, inputs)
    try:
        trace = api.run(program, inputs, level=level, params=params)
        ran = trace.findings
    except KernelRefused as refused:
        ran = (refused.finding,)
    found = api.with_static(ran, program, params.target)
    proof = api.proof_of(program, prove_seconds) if prove_seconds else None
    if proof is not None:
        found = api.with_proof(found, proof)
    return trace, tuple(as_typed(f, loaded) for f in found), proof


def as_typed(found: Finding, loaded: Loaded) -> Finding:
    """Name the file as the user typed it."""
    from tilelab.loading import shown_files

    return dataclasses.replace(found, file=shown_files(loaded).get(found.file or "", found.file))


def write_outputs(outputs: Mapping[str, Any], folder: str) -> None:
    """Write each output as ``folder/NAME.npy``; dtypes that numpy lacks as the unsigned integer of the same width."""
    from tilelab.files import write_npy

    for name, array in outputs.items():
        foreign = array.dtype.kind == "V" or array.dtype.name.startswith(("bfloat", "float8", "float4", "int4", "uint4"))
        write_npy(Path(folder) / f"{name}.npy", array.view(f"u{array.dtype.itemsize}") if foreign else array)


def _print_text(report: Mapping[str, Any], findings: tuple[Finding, ...], prints: Sequence[PrintRecord]) -> None:
    from tilelab.views.trace_text import prints_text

    for found in findings:
        print(found)
    if prints:
        print(prints_text(prints))
    for name, output in report["outputs"].items():
        print(f"{name}: {tuple(output['shape'])} {output['dtype']} sha256 {output['sha256'][:16]}…", file=sys.stderr)
    counts = [sum(f.severity == s for f in findings) for s in ("error", "warning", "info")]
    said = ", ".join(
        f"{n} {s}{'s' if n != 1 and s != 'info' else ''}" for n, s in zip(counts, ("error", "warning", "info"), strict=True) if n
    )
    if "proof" in report:
        for claim in report["proof"]["open"]:
            print(f"open: {claim['claim']} ({claim['reason']})", file=sys.stderr)
        print(", ".join(f"{len(claims)} {kind}" for kind, claims in report["proof"].items()), "by Z3, for all sizes", file=sys.stderr)
    print(f"{report['kernel']} at {report['level']} level, {report['target']}: {said or 'nothing found'}", file=sys.stderr)

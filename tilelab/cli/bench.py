"""``tilelab bench``: time the simulator (``sim``), lowering and views (``views``), or kernels on a GPU (the names of their families)."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import sys
import tempfile
from pathlib import Path

from tilelab.errors import EnvironmentLacks, InputError
from tilelab.files import write_text

HELP = "Time the simulator (`sim`), lowering and views (`views`), or families of kernels on a GPU by name; print medians with their spread."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="sim, views, or families of kernels (gemm, attention, mla). Default: sim")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only cases whose name holds NAME")
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="how long to time each variant. Default: 2")
    parser.add_argument(
        "--without", action="append", default=[], metavar="VARIANT", help="of `sim`: leave out torch, triton or 'no checks'"
    )
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="of `sim`: go through all cases N times. Default: 1")
    parser.add_argument("--record", action="store_true", help="also write the record into tilelab/bench/records/")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def run(args: argparse.Namespace) -> int:
    """Time what was asked for; 0 when done, whatever the numbers say."""
    names = args.names or ["sim"]
    if not args.seconds > 0:
        raise InputError(f"--seconds {args.seconds} is not a time", fix="for example --seconds 2")
    if names == ["views"]:
        return _views(args)
    families = [n for n in names if n != "sim"]
    if families:
        return _on_gpu(families, args)
    from tilelab.bench import sim

    unknown = [v for v in args.without if v not in sim.VARIANTS[1:]]
    if unknown:
        raise InputError(f"--without {unknown[0]}: no such variant", fix=f"Known: {', '.join(sim.VARIANTS[1:])}")
    variants = [v for v in sim.VARIANTS if v not in args.without]
    if args.rounds < 1:
        raise InputError(f"--rounds {args.rounds} is not a number from 1 up", fix="for example --rounds 3")
    record = sim.run(
        args.case, seconds=args.seconds, variants=variants, rounds=args.rounds, progress=lambda line: print(line, file=sys.stderr)
    )
    text = json.dumps(record, indent=1) + "\n"
    if args.record:
        _write("sim", text)
    print(text if args.json else sim.table(record))
    return 0


def _views(args: argparse.Namespace) -> int:
    from tilelab.bench import views

    record = views.run(args.case, seconds=args.seconds, progress=lambda line: print(line, file=sys.stderr))
    text = json.dumps(record, indent=1) + "\n"
    if args.record:
        _write("views", text)
    print(text if args.json else views.table(record))
    return 0


def _on_gpu(families: list[str], args: argparse.Namespace) -> int:
    from tilelab.bench import gpu

    unknown = [n for n in families if n not in gpu.FAMILIES]
    if unknown:
        raise InputError(f"no benchmark is called {unknown[0]}", fix=f"Known: sim, views, {', '.join(gpu.FAMILIES)}")
    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(f"torch cannot be imported: {error}", fix="pip install torch") from None
    if not torch.cuda.is_available():
        raise EnvironmentLacks("No CUDA device is here to time kernels on", fix="`tilelab bench sim` times the simulator anywhere")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr if args.json else sys.stdout):
        out = Path(folder) / "record.json"
        status = gpu.main([*families, *(["--only", args.case[0]] if args.case else []), "--out", str(out)])
        text = out.read_text(encoding="utf-8")
    if args.record:
        _write("gpu", text)
    if args.json:
        print(text)
    return int(status)


def _write(name: str, text: str) -> None:
    """Write the record beside those of earlier runs, named by the day."""
    path = Path(__file__).resolve().parent.parent / "bench" / "records" / f"{name}-{datetime.date.today().isoformat()}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        write_text(path, text)
    except OSError as error:
        raise EnvironmentLacks(f"cannot write {path}: {error}", fix="Run --record in a source checkout") from None
    print(f"recorded in {path}", file=sys.stderr)

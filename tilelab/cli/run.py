"""``tilelab run SCRIPT.py``: an unmodified TileLang script, with no GPU."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HELP = """Run a TileLang script unmodified, with no GPU: cuda tensors live on the CPU, kernels go to the simulator.

Options come before the script; what follows it is the script's own. The exit status is the script's,
or 1 if that is 0 and --check found an error. Where nvcc is installed, TileLang still does not compile."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--level", choices=("tile", "thread"), default="tile", help="what to simulate. Default: tile")
    parser.add_argument("--target", default="sm_90", metavar="T", help="the GPU that the script is told of. Default: sm_90")
    parser.add_argument(
        "--check", action="store_true", help="look for mistakes while running, and have TileLang lower each kernel; list all at the end"
    )
    parser.add_argument("--json", metavar="FILE", help="write findings and prints to FILE (implies --check)")
    parser.add_argument("script", metavar="SCRIPT.py")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS…")


def run(args: argparse.Namespace) -> int:
    """Run the script."""
    from tilelab.errors import InputError

    if not Path(args.script).is_file():
        raise InputError(
            f"{args.script} {'is a folder' if Path(args.script).is_dir() else 'does not exist'}", fix="tilelab run SCRIPT.py [ARGS…]"
        )
    from tilelab.runtime.hook import install
    from tilelab.runtime.script import as_typed, run_script

    checks = bool(args.check or args.json)
    settings = install(level=args.level, target=args.target, checks=checks)
    status = run_script(args.script, args.args, settings)
    found = [as_typed(f, args.script) for f in settings.findings]
    if args.json:
        _write(args.json, args, settings, found)
    if checks:
        for finding in found:
            print(finding, file=sys.stderr)
        print(f"{args.script}: {settings.launches} launches, {len(found) or 'no'} finding{'s' if len(found) != 1 else ''}", file=sys.stderr)
    return status or int(checks and any(f.severity == "error" for f in found))


def _write(file: str, args: argparse.Namespace, settings: Any, found: list[Any]) -> None:
    from tilelab.files import write_text
    from tilelab.reports import plain, print_json

    report = {
        "script": args.script,
        "level": settings.level,
        "target": settings.target,
        "launches": settings.launches,
        "findings": [plain(f.to_json()) for f in found],
        "prints": [plain(print_json(p)) for p in settings.prints],
    }
    write_text(file, json.dumps(report, ensure_ascii=False, allow_nan=False) + "\n")

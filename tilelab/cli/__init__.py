"""The command line. Each subcommand is a module here with ``HELP``, ``add_arguments(parser)`` and ``run(args) -> int``.

Exit codes: 0 done; 1 the kernel is wrong; 2 the command, file, option or input is wrong; 3 the environment lacks something.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from tilelab.errors import TileLabError
from tilelab.finding import KernelRefused

#: subcommand → what it is for; the module of the same name in this package does it
COMMANDS = {
    "run": "run a TileLang script unmodified, with no GPU",
    "check": "simulate a kernel and list what is wrong with it",
    "debug": "step through a kernel",
    "view": "draw a kernel's layout, memory, pipeline, trace, program or resources",
    "grade": "grade submissions to a puzzle",
    "puzzles": "list puzzles, make a new one, export stubs and notebooks",
    "book": "start, build or check a book",
    "bench": "time the simulator and the kernels",
    "lab": "open JupyterLab on the puzzles",
    "doctor": "say what this machine has, what it lacks, and what that costs",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; what the user did wrong is one line on stderr, never a traceback."""
    args = list(sys.argv[1:] if argv is None else argv)
    if sys.stderr is None:  # closed by the shell: print() would fall back to stdout, which is for results
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for as long as the process lives
    try:
        return _dispatch(args)
    except TileLabError as error:
        print(f"tilelab: {error}", file=sys.stderr)
        return error.exit_code
    except KernelRefused as refused:
        print(refused.finding, file=sys.stderr)
        return refused.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `tilelab … | head`: the reader has gone, and nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError as error:
        print(f"tilelab: this machine has too little memory: {error or 'no more to be had'}. choose smaller sizes", file=sys.stderr)
        return 3
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            return _fault(error)
        print(f"tilelab: cannot write the output: {error.strerror}. make room, or write elsewhere", file=sys.stderr)
        return 2
    except Exception as error:
        return _fault(error)


def _fault(error: Exception) -> int:
    if os.environ.get("TILELAB_TRACEBACK"):
        raise error
    print(f"tilelab: a fault of TileLab itself: {type(error).__name__}: {error}. TILELAB_TRACEBACK=1 shows where", file=sys.stderr)
    return 2


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that answers a wrong command line in one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how to see the options, and exit with 2."""
        self.exit(2, f"{self.prog}: {message}. Try: {self.prog} --help\n")


def _dispatch(args: list[str]) -> int:
    if args and args[0] in COMMANDS:  # only this command's module is imported
        module = import_module(f"tilelab.cli.{args[0]}")
        parser = Parser(prog=f"tilelab {args[0]}", description=module.HELP, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.add_arguments(parser)
        return int(_exit_code(parser, module, args[1:]))
    parser = _top()
    if not args:
        parser.print_help()
        return 0
    try:
        parser.parse_args(args)
    except SystemExit as done:
        return int(done.code or 0)
    return 0


def _exit_code(parser: Parser, module: object, args: list[str]) -> int:
    try:
        parsed = parser.parse_args(args)
    except SystemExit as done:
        return int(done.code or 0)
    code: int = module.run(parsed)  # type: ignore[attr-defined]
    return code


def _top() -> Parser:
    width = max(map(len, COMMANDS))
    table = "\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())
    parser = Parser(
        prog="tilelab",
        description="Learn, see and debug TileLang GPU kernels, with no GPU.",
        epilog=f"commands:\n{table}\n\n`tilelab COMMAND --help` says more. Start with `tilelab doctor` or `tilelab lab`.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    from tilelab import __version__

    parser.add_argument("--version", action="version", version=f"tilelab {__version__}")
    parser.add_argument("command", metavar="COMMAND", choices=list(COMMANDS), help="one of the commands below")
    return parser

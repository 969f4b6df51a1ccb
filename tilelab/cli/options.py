"""The options that every command on a kernel takes: ``FILE.py::KERNEL --const … --level … --target … --input …``."""

from __future__ import annotations

import argparse
import ast
from typing import Any

from tilelab.errors import InputError


def add_kernel_options(parser: argparse.ArgumentParser) -> None:
    """Add the kernel argument and the shared options; :func:`consts` and :func:`inputs` read what was given."""
    parser.add_argument(
        "kernel", metavar="FILE.py::KERNEL", help="a jitted kernel, a prim_func, or a function of --const values that returns one"
    )
    parser.add_argument(
        "--const", action="append", default=[], metavar="NAME=VALUE", help="a constant or dynamic size, as a Python literal"
    )
    parser.add_argument("--level", choices=("tile", "thread"), default="tile", help="what to simulate. Default: tile")
    parser.add_argument("--target", default="sm_80", metavar="T", help="the GPU whose rules and budgets hold. Default: sm_80")
    parser.add_argument("--block", default=None, metavar="X[,Y[,Z]]", help="the block to look at. Default: 0,0,0")
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of inputs not given. Default: 0")
    parser.add_argument("--input", action="append", default=[], metavar="NAME=HOW", help="zeros, ones, arange, rand, randint or FILE.npy")
    parser.add_argument("--outputs", default=None, metavar="DIR", help="write each output as DIR/NAME.npy")


def whole(text: str) -> int:
    """Read a whole number from 0 up; for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 up")
    return int(text)


def consts(args: argparse.Namespace) -> dict[str, Any]:
    """Return ``--const`` as a dict of Python values.

    Raises:
        InputError: One is not NAME=VALUE with a Python literal.
    """
    out: dict[str, Any] = {}
    for item in args.const:
        name, eq, text = item.partition("=")
        if not eq or not name.isidentifier():
            raise InputError(f"--const {item}: not NAME=VALUE", fix="for example --const M=1024 or --const 'dtype=\"float16\"'")
        try:
            out[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            quoted = f" or a string: --const '{name}=\"{text}\"'" if text.replace("_", "").isalnum() else ""
            raise InputError(f"--const {item}: {text!r} is not a Python literal", fix=f"give a number{quoted}") from None
    return out


def inputs(args: argparse.Namespace) -> dict[str, str]:
    """Return ``--input`` as NAME → HOW.

    Raises:
        InputError: One is not NAME=HOW.
    """
    out: dict[str, str] = {}
    for item in args.input:
        name, eq, how = item.partition("=")
        if not eq or not name or not how:
            raise InputError(f"--input {item}: not NAME=HOW", fix="HOW is zeros, ones, arange, rand, randint or FILE.npy")
        out[name] = how
    return out


def block(args: argparse.Namespace) -> tuple[int, int, int]:
    """Return ``--block`` as (x, y, z), zeros where not given.

    Raises:
        InputError: It is not one to three numbers ≥ 0.
    """
    text = args.block or "0"
    try:
        given = [int(part) for part in text.split(",")]
    except ValueError:
        given = []
    if not 1 <= len(given) <= 3 or min(given) < 0:
        raise InputError(f"--block {text}: not X, X,Y or X,Y,Z", fix="for example --block 3 or --block 0,2")
    x, y, z = (*given, 0, 0)[:3]
    return x, y, z

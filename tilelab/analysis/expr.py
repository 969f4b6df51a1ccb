"""Small facts about expressions: their constant value and how they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tilelab import ir


def _truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


_BIN: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "min": min, "max": max,
    "floordiv": lambda a, b: a // b, "floormod": lambda a, b: a % b, "div": _truncated, "mod": lambda a, b: a - b * _truncated(a, b),
    "eq": lambda a, b: int(a == b), "ne": lambda a, b: int(a != b), "lt": lambda a, b: int(a < b), "le": lambda a, b: int(a <= b),
    "gt": lambda a, b: int(a > b), "ge": lambda a, b: int(a >= b), "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
}  # fmt: skip


def const_int(e: object) -> int | None:
    """The value of an integer expression of constants, or None if it holds variables or is no integer."""
    if isinstance(e, ir.Const):
        return int(e.value) if isinstance(e.value, int) else None
    if isinstance(e, ir.Cast):
        return const_int(e.a) if e.dtype.startswith(("int", "uint")) else None
    if isinstance(e, ir.Bin) and e.op in _BIN:
        a, b = const_int(e.a), const_int(e.b)
        if a is None or b is None or (b == 0 and e.op in ("floordiv", "floormod", "div", "mod")):
            return None
        return _BIN[e.op](a, b)
    return None


def dtype_bits(dtype: str) -> int:
    """Width of ``dtype`` in bits with all its lanes: ``"float8_e4m3fnx4"`` is 32."""
    base, _, lanes = dtype.partition("x") if re.fullmatch(r".*\dx\d+|.*[a-z]x\d+", dtype) else (dtype, "", "1")
    digits = re.search(r"\d+", base)
    width = 8 if base == "bool" else int(digits.group()) if digits else 64
    return width * int(lanes)

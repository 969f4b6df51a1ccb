"""Shape expressions of ``puzzle.toml``: whole-number arithmetic over the names of the sizes, and nothing else."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from tilelab.errors import InputError

_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"ceildiv": lambda a, b: -(-a // b), "max": max, "min": min}


def evaluate(expression: str | int, sizes: Mapping[str, int]) -> int:
    """Return the value of a shape expression such as ``"ceildiv(N, 16) + 1"``.

    Raises:
        InputError: The expression uses an unknown name, or anything but ``+ - * // %``, ``ceildiv``, ``min`` and ``max``.
    """
    if isinstance(expression, int):
        return expression
    try:
        return _value(_parse(expression), expression, sizes)
    except ZeroDivisionError:
        raise InputError(f"shape expression {expression!r} divides by zero", fix="see what the sizes make of it") from None
    except (TypeError, RecursionError):
        raise InputError(
            f"shape expression {expression!r} is not allowed", fix="ceildiv takes two arguments, max and min two or more"
        ) from None


def names(expression: str | int) -> frozenset[str]:
    """Return the size names that a shape expression uses."""
    if isinstance(expression, int):
        return frozenset()
    return frozenset(n.id for n in ast.walk(_parse(expression)) if isinstance(n, ast.Name)) - set(_FUNCTIONS)


def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"shape expression {expression!r} is not arithmetic", fix="write e.g. 'N' or 'ceildiv(N, 16)'") from None


def _value(n: ast.expr, text: str, sizes: Mapping[str, int]) -> int:
    if isinstance(n, ast.Constant) and type(n.value) is int:
        return n.value
    if isinstance(n, ast.Name):
        if n.id not in sizes:
            raise InputError(
                f"shape expression {text!r} uses {n.id!r}, which is no size", fix=f"known: {', '.join(sorted(sizes)) or 'none'}"
            )
        return sizes[n.id]
    if isinstance(n, ast.BinOp) and type(n.op) in _BINARY:
        return _BINARY[type(n.op)](_value(n.left, text, sizes), _value(n.right, text, sizes))
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in _FUNCTIONS and not n.keywords:
        return _FUNCTIONS[n.func.id](*(_value(a, text, sizes) for a in n.args))
    raise InputError(f"shape expression {text!r} is not allowed", fix="use + - * // %, ceildiv, min, max, sizes and whole numbers")

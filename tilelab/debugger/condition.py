"""Conditions such as ``acc[0, 0] > 1e4``: a small, closed part of Python's expressions over the values of a step."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab.errors import InputError

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "min": np.min, "max": np.max, "sum": np.sum, "any": np.any, "all": np.all, "mean": np.mean,
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip


class Condition:
    """A compiled condition; call it with the values of a step.

    ``text`` may use buffers and loop variables by name, indices and slices, arithmetic, comparisons, and, or, not, and
    the functions abs min max sum any all mean isnan isinf isfinite. An array counts as true if any element is.

    Raises:
        InputError: ``text`` is not such an expression (when made), or names what does not exist (when called).
    """

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError) as error:
            raise InputError(f"{text!r} is not an expression: {error}", fix='write one such as "acc[0, 0] > 1e4"') from None
        self._check(self._tree)

    def value(self, names: Mapping[str, Any]) -> Any:
        """Return the value of the expression, an array or a number."""
        try:
            with np.errstate(all="ignore"):
                return self._eval(self._tree, names)
        except (IndexError, TypeError, ValueError, ZeroDivisionError) as error:
            raise InputError(f"{self.text!r} cannot be computed here: {error}") from None

    def __call__(self, names: Mapping[str, Any]) -> bool:
        """Return whether the condition holds for any element."""
        return bool(np.any(self.value(names)))

    def names(self) -> set[str]:
        """Return the buffers and variables that the condition reads."""
        return {n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name)} - set(_FUNCTIONS)

    def _eval(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant(value=bool() | int() | float() as value):
                return value
            case ast.Name(id=name):
                if name not in names:
                    known = ", ".join(sorted(names)) or "nothing yet"
                    raise InputError(f"no buffer or variable {name!r} at this step", fix=f"here are: {known}")
                return names[name]
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
                return _BINARY[type(op)](self._eval(a, names), self._eval(b, names))
            case ast.UnaryOp(operand=a, op=op) if type(op) in _UNARY:
                return _UNARY[type(op)](self._eval(a, names))
            case ast.BoolOp(op=op, values=values):
                parts = [bool(np.any(self._eval(v, names))) for v in values]
                return all(parts) if isinstance(op, ast.And) else any(parts)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                sides = [self._eval(s, names) for s in (left, *rights)]
                out: Any = True
                for compare, a, b in zip(ops, sides, sides[1:], strict=False):
                    out = np.logical_and(out, _BINARY[type(compare)](a, b))
                return out
            case ast.Subscript(value=base, slice=index):
                return self._eval(base, names)[self._index(index, names)]
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*(self._eval(a, names) for a in args))
        raise self._refuse(node)

    def _index(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Tuple):
            return tuple(self._index(e, names) for e in node.elts)
        if isinstance(node, ast.Slice):
            return slice(*(None if e is None else int(self._eval(e, names)) for e in (node.lower, node.upper, node.step)))
        return self._eval(node, names)

    def _check(self, node: ast.AST, *, index: bool = False) -> None:
        """Refuse whatever :meth:`_eval` does not know, before anything is run; ``index``: slices and tuples are welcome."""
        match node:
            case ast.Constant(value=bool() | int() | float()) | ast.Name():
                return
            case ast.BinOp(op=op) | ast.UnaryOp(op=op) if type(op) in _BINARY or type(op) in _UNARY:
                parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            case ast.BoolOp(values=parts):
                pass
            case ast.Compare(left=left, ops=ops, comparators=rights) if all(type(op) in _BINARY for op in ops):
                parts = [left, *rights]
            case ast.Subscript(value=base, slice=inner):
                self._check(inner, index=True)
                parts = [base]
            case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _FUNCTIONS:
                pass
            case ast.Tuple() | ast.Slice() if index:
                for part in ast.iter_child_nodes(node):
                    if isinstance(part, ast.expr):
                        self._check(part, index=True)
                return
            case _:
                raise self._refuse(node)
        for part in parts:
            self._check(part)

    def _refuse(self, node: ast.AST) -> InputError:
        return InputError(
            f"{type(node).__name__} is not allowed in the condition {self.text!r}",
            fix="use names, indices, arithmetic, comparisons, and/or/not, and " + " ".join(sorted(_FUNCTIONS)),
        )

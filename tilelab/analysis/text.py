"""Expressions as a user would write them, for messages."""

from __future__ import annotations

from tilelab import ir

_SIGN = {
    "add": ("+", 4), "sub": ("-", 4), "mul": ("*", 5), "div": ("/", 5), "mod": ("%", 5), "floordiv": ("//", 5), "floormod": ("%", 5),
    "eq": ("==", 3), "ne": ("!=", 3), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3), "and": ("and", 1), "or": ("or", 0),
}  # fmt: skip


def text(e: ir.Expr) -> str:
    """Return ``e`` in Python's notation, without casts."""
    return _text(e, 0)


def element(buffer: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
    """Return ``A[i, j + 1]``."""
    return f"{buffer.name}[{', '.join(text(i) for i in indices)}]"


def _text(e: ir.Expr, outer: int) -> str:
    if isinstance(e, ir.Const):
        return str(e.value)
    if isinstance(e, ir.Str):
        return repr(e.value)
    if isinstance(e, ir.Var):
        return e.name
    if isinstance(e, ir.Cast):
        return _text(e.a, outer)
    if isinstance(e, ir.Load):
        return element(e.buffer, e.indices)
    if isinstance(e, ir.Bin) and e.op in _SIGN:
        sign, level = _SIGN[e.op]
        inner = f"{_text(e.a, level)} {sign} {_text(e.b, level + 1)}"
        return f"({inner})" if level < outer else inner
    if isinstance(e, ir.Bin):
        return f"{e.op}({text(e.a)}, {text(e.b)})"
    if isinstance(e, ir.Not):
        return f"not {_text(e.a, 6)}"
    if isinstance(e, ir.Ramp):
        return f"{_text(e.base, 0)} … {e.lanes} of them"
    if isinstance(e, ir.Call):
        return f"{e.op.split('.')[-1]}({', '.join(text(a) for a in e.args)})"
    if isinstance(e, ir.Region):
        ends = (f"{text(m)}:{text(m)}+{text(x)}" for m, x in zip(e.mins, e.extents, strict=True))
        return f"{e.buffer.name}[{', '.join(ends)}]"
    return "…"

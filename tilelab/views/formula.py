"""Index expressions as one would write them: ``i % 8 * 4 + j // 2``."""

from __future__ import annotations

from tilelab import ir

#: operation → (sign, how tightly it binds); Python's precedence
_SIGNS = {
    "or": ("or", 1), "and": ("and", 2), "eq": ("==", 3), "ne": ("!=", 3), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3),
    "tirx.bitwise_or": ("|", 4), "tirx.bitwise_xor": ("^", 5), "tirx.bitwise_and": ("&", 6), "tirx.shift_left": ("<<", 7),
    "tirx.shift_right": (">>", 7), "add": ("+", 8), "sub": ("-", 8), "mul": ("*", 9), "floordiv": ("//", 9), "floormod": ("%", 9),
    "div": ("//", 9), "mod": ("%", 9),
}  # fmt: skip


def formula(expr: ir.Expr) -> str:
    """Return ``expr`` in Python's notation."""
    return _text(expr, 0)


def _text(e: ir.Expr, outer: int) -> str:
    if isinstance(e, ir.Const):
        return str(e.value)
    if isinstance(e, ir.Var):
        return e.name.lstrip("_")
    if isinstance(e, ir.Cast):
        return _text(e.a, outer)
    if isinstance(e, ir.Select):
        return f"({_text(e.a, 1)} if {_text(e.cond, 1)} else {_text(e.b, 1)})"
    op = e.op if isinstance(e, ir.Bin | ir.Call) else type(e).__name__
    args = (e.a, e.b) if isinstance(e, ir.Bin) else e.args if isinstance(e, ir.Call) else ()
    if op in _SIGNS and len(args) == 2:
        sign, tight = _SIGNS[op]
        text = f"{_text(args[0], tight)} {sign} {_text(args[1], tight + 1)}"
        return f"({text})" if tight < outer else text
    return f"{op.rpartition('.')[2]}({', '.join(_text(a, 0) for a in args)})"

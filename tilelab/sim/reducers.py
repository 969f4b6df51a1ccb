"""Reducers of the older form, ``T.alloc_reducer(…, replication=…)``: ``acc[i] += x`` in a parallel loop adds what all iterations give.

TileLang keeps a part of the result in each thread until ``T.finalize_reducer``. Here an update becomes the contribution that
``T.reducer_update`` is, so that the iterations neither race nor lose one another's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilelab import ir

#: operation of a reducer → the expression that updates it
_UPDATES = {
    "sum": ("add", "sub"),
    "max": ("max",),
    "min": ("min",),
    "bitand": ("bitwise_and",),
    "bitor": ("bitwise_or",),
    "bitxor": ("bitwise_xor",),
}


def as_updates(program: ir.Program) -> ir.Body:
    """Return the body of ``program`` with the updates of older reducers as calls of ``tl.reducer_update``."""
    kinds = {
        data: str(dict(_items(about)).get("op", "sum")) for b in ir.walk(program) if isinstance(b, ir.Block) for data, about in _infos(b)
    }
    return _body(program.body, kinds) if kinds else program.body


def _infos(block: ir.Block) -> Iterator[tuple[Any, Any]]:
    for key in ("reducer_info", "reducer_info_v2"):  # the newer kind may be used in the older way
        yield from _items(block.attrs.get(key))


def _items(attr: Any) -> tuple[tuple[Any, Any], ...]:
    return attr.items if isinstance(attr, ir.AttrMap) else ()


def _body(body: ir.Body, kinds: Mapping[Any, str]) -> ir.Body:
    return tuple(_statement(s, kinds) for s in body)


def _statement(s: ir.Stmt, kinds: Mapping[Any, str]) -> ir.Stmt:
    if isinstance(s, ir.Store):
        return _update(s, kinds.get(s.buffer.data, "")) or s
    if isinstance(s, ir.If):
        return replace(s, then=_body(s.then, kinds), orelse=_body(s.orelse, kinds))
    if isinstance(s, ir.For | ir.While | ir.Block | ir.Attribute | ir.Launch):
        return replace(s, body=_body(s.body, kinds))
    return s


def _update(s: ir.Store, kind: str) -> ir.Stmt | None:
    """The contribution of ``acc[i] = acc[i] + x``; None where the store is no update."""
    here = ir.Load(dtype=s.buffer.dtype, buffer=s.buffer, indices=s.indices)
    given = _without(s.value, here, _UPDATES.get(kind, ()))
    if given is None:
        return None
    return ir.Eval(value=ir.Call(dtype="handle", op="tl.reducer_update", args=(here, given)), loc=s.loc)


def _without(value: ir.Expr, here: ir.Load, ops: tuple[str, ...]) -> ir.Expr | None:
    """What ``value`` adds to ``here``; None where it is not ``here op x``."""
    name = (
        value.op
        if isinstance(value, ir.Bin)
        else value.op.rpartition(".")[2]
        if isinstance(value, ir.Call) and len(value.args) == 2
        else ""
    )
    if name not in ops:
        return None
    a, b = (value.a, value.b) if isinstance(value, ir.Bin) else value.args  # type: ignore[attr-defined]
    if name == "sub":
        return _bin(ir.Const(dtype=b.dtype, value=0), "sub", b) if _same(a, here) else None
    if _same(a, here):
        return b
    if _same(b, here):
        return a
    left = _without(a, here, ops)  # (acc + x) + y
    return None if left is None else _bin(left, name, b)


def _bin(a: ir.Expr, op: str, b: ir.Expr) -> ir.Expr:
    return ir.Bin(dtype=b.dtype, op=op, a=a, b=b)


def _same(a: Any, b: Any) -> bool:
    """Whether two expressions are written alike."""
    if a is b or type(a) is not type(b):
        return a is b
    if isinstance(a, ir.Load):
        return a.buffer.data is b.buffer.data and len(a.indices) == len(b.indices) and all(map(_same, a.indices, b.indices))
    if isinstance(a, ir.Const):
        return bool(a.value == b.value)
    if isinstance(a, ir.Bin):
        return a.op == b.op and _same(a.a, b.a) and _same(a.b, b.b)
    return isinstance(a, ir.Cast) and a.dtype == b.dtype and _same(a.a, b.a)

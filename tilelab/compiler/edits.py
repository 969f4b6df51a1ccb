"""Edits of a captured Program that leave its meaning alone: other stages, threads, or padding of shared buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.errors import InputError

_PARTS = ("body", "then", "orelse")
_SHARED = ("shared", "shared.dyn")


def with_stages(program: ir.Program, stages: int) -> ir.Program:
    """Return ``program`` with ``num_stages`` of every pipelined loop set to ``stages`` (0: no pipelining).

    Raises:
        InputError: There is no pipelined loop, or only some with a hand-written order.
    """
    _counted("num_stages", stages, 0)
    edited = 0

    def one(s: ir.Stmt) -> ir.Stmt:
        nonlocal edited
        if not isinstance(s, ir.For) or "num_stages" not in s.attrs or "tl_pipeline_order" in s.attrs:
            return s
        edited += 1
        return replace(s, attrs={**s.attrs, "num_stages": stages})

    out = _rewritten(program, one)
    if not edited:
        raise InputError(f"{program.name} has no loop over T.Pipelined(…, num_stages=…)", fix="leave num_stages out")
    return out


def with_threads(program: ir.Program, threads: int) -> ir.Program:
    """Return ``program`` with ``threads`` threads in each block of every launch.

    Raises:
        InputError: It has no launch, or one whose threads lie along several axes.
    """
    _counted("threads", threads, 1)
    edited = 0

    def one(s: ir.Stmt) -> ir.Stmt:
        nonlocal edited
        if not isinstance(s, ir.Launch):
            return s
        if any(not isinstance(e, ir.Const) or e.value != 1 for e in s.threads[1:]):
            raise InputError(f"the threads of {program.name} lie along {len(s.threads)} axes", fix="leave threads out")
        edited += 1
        first = ir.Const(dtype=s.threads[0].dtype if s.threads else "int32", value=threads)
        return replace(s, threads=(first, *s.threads[1:]), attrs={k: v for k, v in s.attrs.items() if k != "threads_defaulted"})

    out = _rewritten(program, one)
    if not edited:
        raise InputError(f"{program.name} launches no kernel", fix="leave threads out")
    return out


def with_padding(program: ir.Program, pad: int) -> ir.Program:
    """Return ``program`` with ``pad`` unused elements after each row of its shared buffers (row-major otherwise; 0 leaves all as it is).

    Only where the elements lie changes, as by ``T.annotate_layout``; buffers of one axis and those with a layout of their own stay.

    Raises:
        InputError: There is no shared buffer to pad.
    """
    _counted("pad", pad, 0)
    if pad == 0:
        return program
    padded = 0

    def one(s: ir.Stmt) -> ir.Stmt:
        nonlocal padded
        if not isinstance(s, ir.Block):
            return s
        known = s.attrs.get("layout_map")
        items = known.items if isinstance(known, ir.AttrMap) else ()
        taken = {key for key, _ in items}
        maps = [
            (b.data, _rows(b, pad)) for b in s.allocs if b.scope in _SHARED and len(b.shape) > 1 and b.data not in taken and _constant(b)
        ]
        if not maps:
            return s
        padded += len(maps)
        return replace(s, attrs={**s.attrs, "layout_map": ir.AttrMap(items=(*items, *maps))})

    out = _rewritten(program, one)
    if not padded:
        raise InputError(f"{program.name} has no shared buffer of two axes or more whose layout is free", fix="leave pad out")
    return out


def _rows(b: ir.Buffer, pad: int) -> ir.IndexMap:
    """The row-major layout of ``b`` whose last axis is ``pad`` longer than the buffer's."""
    params = tuple(ir.Var(dtype="int32", name=f"i{k}") for k in range(len(b.shape)))
    extents = [int(e.value) for e in b.shape if isinstance(e, ir.Const)]
    extents[-1] += pad
    place: ir.Expr = params[0]
    for var, n in zip(params[1:], extents[1:], strict=True):
        rows = ir.Bin(dtype="int32", op="mul", a=place, b=ir.Const(dtype="int32", value=n))
        place = ir.Bin(dtype="int32", op="add", a=rows, b=var)
    return ir.IndexMap(params=params, shape=b.shape, index=(place,))


def _constant(b: ir.Buffer) -> bool:
    return all(isinstance(e, ir.Const) for e in b.shape)


def _counted(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r} is not a whole number ≥ {least}", fix=f"for example {name}=[{max(2, least)}]")


def _rewritten(program: ir.Program, one: Callable[[ir.Stmt], ir.Stmt]) -> ir.Program:
    return replace(program, body=_body(program.body, one))


def _body(body: ir.Body, one: Callable[[ir.Stmt], ir.Stmt]) -> ir.Body:
    out = []
    for s in body:
        inner = {part: _body(getattr(s, part), one) for part in _PARTS if getattr(s, part, None)}
        changed: dict[str, Any] = {
            part: new for part, new in inner.items() if any(a is not b for a, b in zip(new, getattr(s, part), strict=True))
        }
        out.append(one(replace(s, **changed) if changed else s))
    return tuple(out)

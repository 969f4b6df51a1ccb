"""Loops over the threads of a block, written by hand (``T.thread_binding``): each thread runs its own turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.sim.lanes import Unsupported

_AXES = {"threadIdx.x": 0, "threadIdx.y": 1, "threadIdx.z": 2}


def bound(launch: ir.Launch) -> ir.Launch:
    """The launch with its thread loops as what they mean: their variable is the index of the thread, their extent the threads.

    Raises:
        Unsupported: Two loops want different numbers of threads along one axis.
    """
    loops = [n for n in ir.walk(launch.body) if isinstance(n, ir.For) and n.kind == "thread" and n.attrs.get("thread") in _AXES]
    if not loops:
        return launch
    threads = list(launch.threads)
    said: dict[int, ir.Expr] = {}
    for loop in loops:
        axis = _AXES[str(loop.attrs["thread"])]
        before = said.setdefault(axis, loop.extent)
        if _value(before) != _value(loop.extent) or axis >= len(launch.thread_vars):
            raise Unsupported(
                f"a second loop over {loop.attrs['thread']} of another length", loop.loc, "one T.Kernel has one number of threads"
            )
        threads[axis] = loop.extent
    return replace(launch, threads=tuple(threads), body=_body(launch.body, launch.thread_vars))


def _value(e: ir.Expr) -> Any:
    return e.value if isinstance(e, ir.Const) else e


def _body(body: ir.Body, thread_vars: tuple[ir.Var, ...]) -> ir.Body:
    out: list[ir.Stmt] = []
    for s in body:
        if isinstance(s, ir.For) and s.kind == "thread" and s.attrs.get("thread") in _AXES:
            index: ir.Expr = thread_vars[_AXES[str(s.attrs["thread"])]]
            if not (isinstance(s.min, ir.Const) and s.min.value == 0):
                index = ir.Bin(dtype=s.var.dtype, op="add", a=s.min, b=index)
            out += [ir.Bind(var=s.var, value=index, loc=s.loc), *_body(s.body, thread_vars)]
        elif isinstance(s, ir.For | ir.While | ir.Block | ir.Attribute):
            out.append(replace(s, body=_body(s.body, thread_vars)))
        elif isinstance(s, ir.If):
            out.append(replace(s, then=_body(s.then, thread_vars), orelse=_body(s.orelse, thread_vars)))
        else:
            out.append(s)
    return tuple(out)

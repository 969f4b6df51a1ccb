"""A remedy for layouts that conflict: a fragment handed to a gemm through shared memory."""

from __future__ import annotations

from dataclasses import replace

from tilelab import ir


def staged(program: ir.Program, name: str) -> ir.Program:
    """Return ``program`` with the fragment ``name`` copied to shared memory before each tile operation that only reads it as an operand."""
    fragment = next((b for n in ir.walk(program) if isinstance(n, ir.Block) for b in n.allocs if b.name == name), None)
    if fragment is None:
        return program
    data = replace(fragment.data, name=f"{name}_shared", scope="shared.dyn" if fragment.data.scope else "")
    shared = replace(fragment, name=f"{name}_shared", scope="shared.dyn", data=data)

    def body(statements: ir.Body) -> ir.Body:
        return tuple(after for s in statements for after in one(s))

    def one(s: ir.Stmt) -> tuple[ir.Stmt, ...]:
        if isinstance(s, ir.Tile) and "gemm" in s.op and any(_reads(a, fragment) for a in s.args):
            args = tuple(replace(a, buffer=shared) if isinstance(a, ir.Region) and _reads(a, fragment) else a for a in s.args)
            copy = ir.Tile(op="copy", args=(_whole(fragment, "r"), _whole(shared, "w")), loc=s.loc)
            return copy, replace(s, args=args)
        if isinstance(s, ir.Block):
            allocs = (*s.allocs, shared) if fragment in s.allocs else s.allocs
            return (replace(s, body=body(s.body), allocs=allocs),)
        if isinstance(s, ir.Launch | ir.For | ir.While | ir.Attribute):
            return (replace(s, body=body(s.body)),)
        if isinstance(s, ir.If):
            return (replace(s, then=body(s.then), orelse=body(s.orelse)),)
        return (s,)

    return replace(program, body=body(program.body))


def _reads(e: ir.Expr, fragment: ir.Buffer) -> bool:
    return isinstance(e, ir.Region) and e.buffer.data is fragment.data and e.access == "r"


def _whole(b: ir.Buffer, access: str) -> ir.Region:
    zero = ir.Const(dtype="int32", value=0)
    return ir.Region(dtype="handle", buffer=b, mins=(zero,) * len(b.shape), extents=b.shape, access=access)

"""The executable grammar of :mod:`tilelab.ir`, and the trust boundary: what a Program from a stranger may hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tilelab import allowed, ir
from tilelab.errors import VerifyError
from tilelab.ops import TILE_OPS

MAX_NODES = 2_000_000
MAX_DEPTH = 400
_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "and", "or"))
_BIN = _COMPARE | {"add", "sub", "mul", "div", "mod", "floordiv", "floormod", "min", "max"}
_KINDS = frozenset(("serial", "parallel", "vectorized", "unrolled", "thread"))
#: Statements that may stand outside a kernel, on the host.
_HOST = (ir.Block, ir.Bind, ir.Assert, ir.If, ir.For, ir.Launch, ir.Attribute, ir.Declare)


def verify(program: ir.Program, *, closed: bool = True) -> ir.Program:
    """Check ``program`` and return it.

    Args:
        program: The Program to check.
        closed: Also hold it to the closed lists of :mod:`tilelab.allowed` (operations, extern names, scopes,
            attributes, compiler flags). Default: True, as for anything that a stranger made.

    Raises:
        VerifyError: It breaks the grammar, or names something that may not cross; the message says what and where.
    """
    _Checker(closed).program(program)
    return program


class _Checker:
    def __init__(self, closed: bool) -> None:
        self.closed = closed
        self.level = "tile"
        self.where = ""
        self.loc: ir.SourceLoc | None = None
        self.nodes = 0
        self.defined: set[ir.Var] = set()
        self.buffers: set[ir.Buffer] = set()
        self.scopes_left = 0
        self.checked: dict[int, int] = {}  # expression, by identity → scopes left when it was checked: shared parts once

    # ----------------------------------------------------------------------------------------------- programs
    def program(self, p: ir.Program) -> None:
        self.is_a(p, ir.Program, "the program")
        self.name(p.name, "the program")
        if p.level not in ("tile", "thread"):
            self.bad(f"the level {p.level!r}")
        self.level = p.level
        self.tuple_of(p.params, ir.Param, "parameters")
        for q in p.params:
            self.name(q.name, "a parameter")
            self.define(q.var)
        for q in p.params:
            if q.buffer is not None:
                self.is_a(q.buffer, ir.Buffer, f"the buffer of {q.name}")
                for e in (*q.buffer.shape, *q.buffer.strides):
                    self.sizes(e)
                self.define(q.buffer.data)
                self.buffer(q.buffer)
        n = len(p.params)
        if not isinstance(p.outputs, tuple) or not all(type(i) is int and 0 <= i < n for i in p.outputs):
            self.bad(f"outputs {p.outputs!r} of {n} parameters")
        self.mapping(p.sources, str, "sources")
        if self.closed:
            self.program_attrs(p.attrs)
        self.attrs(p.attrs, allowed.PROGRAM_ATTRS, "an attribute of the program")
        self.body(p.body, host=True, depth=0)

    def program_attrs(self, attrs: Mapping[str, Any]) -> None:
        configs = attrs.get("tilelang_pass_configs")
        if configs is not None:
            self.is_a(configs, ir.AttrMap, "the pass configuration")
            for key, value in configs.items:  # type: ignore[union-attr]
                if key not in allowed.PASS_CONFIGS or not isinstance(value, bool | int | str):
                    self.bad(f"the pass configuration {key!r}")
        flags = attrs.get("tilelang_compile_flags", ())
        for flag in flags if isinstance(flags, tuple) else (flags,):
            if not isinstance(flag, str) or not allowed.COMPILE_FLAG.fullmatch(flag):
                self.bad(f"the compiler flag {flag!r}")

    def sizes(self, e: Any) -> None:
        """Variables in the shapes of parameters are defined by them."""
        stack = [e]
        while stack:
            x = stack.pop()
            self.is_a(x, ir.Expr, "a size")
            self.count()
            if isinstance(x, ir.Var):
                self.defined.add(x)
            stack.extend(ir.children(x))

    # --------------------------------------------------------------------------------------------- statements
    def body(self, body: Any, *, host: bool, depth: int) -> None:
        if not isinstance(body, tuple):
            self.bad("a body that is not a tuple")
        if depth > MAX_DEPTH:
            self.bad(f"statements nested deeper than {MAX_DEPTH}")
        scope = set(self.defined)  # what is bound here ends with the body
        for s in body:
            if type(s) not in _STATEMENTS:
                self.bad(f"a statement of type {type(s).__name__}")
            if s.loc is not None:
                self.is_a(s.loc, ir.SourceLoc, "a location")
                self.loc = s.loc
            self.count()
            if host and self.closed and self.level == "tile" and not isinstance(s, _HOST) and not _is_assume(s):
                self.bad(f"the statement {type(s).__name__} outside T.Kernel, where it runs on the host")
            before = set(self.defined)
            _STATEMENTS[type(s)](self, s, host, depth + 1)
            if not isinstance(s, ir.Bind | ir.Alloc):
                self.leave(before)
        self.leave(scope)

    def leave(self, scope: set[ir.Var]) -> None:
        """Forget what was bound since ``scope`` was noted."""
        if len(scope) != len(self.defined):
            self.scopes_left += 1
        self.defined = scope

    def bind(self, s: ir.Bind, host: bool, depth: int) -> None:
        self.expr(s.value)
        self.define(s.var)

    def store(self, s: ir.Store, host: bool, depth: int) -> None:
        self.access(s.buffer, s.indices)
        self.expr(s.value)
        if s.predicate is not None:
            self.expr(s.predicate)

    def eval(self, s: ir.Eval, host: bool, depth: int) -> None:
        self.expr(s.value)

    def tile(self, s: ir.Tile, host: bool, depth: int) -> None:
        if s.op not in TILE_OPS:
            self.bad(f"the tile operation {s.op!r}")
        names = TILE_OPS[s.op]
        least = sum(not n.endswith("?") for n in names)
        if not isinstance(s.args, tuple) or not least <= len(s.args) <= len(names):
            self.bad(f"{s.op} with {len(s.args)} arguments instead of {len(names)}")
        for a in s.args:
            self.expr(a)
        self.attrs(s.attrs, allowed.TILE_ATTRS, f"an annotation of {s.op}")

    def loop(self, s: ir.For, host: bool, depth: int) -> None:
        if s.kind not in _KINDS:
            self.bad(f"a loop of kind {s.kind!r}")
        if s.kind == "thread" and not isinstance(s.attrs.get("thread"), str):
            self.bad("a thread loop that names no axis")
        for e in (s.min, s.extent, *((s.step,) if s.step is not None else ())):
            self.expr(e)
        self.attrs(s.attrs, allowed.FOR_ATTRS, "a loop annotation")
        self.define(s.var)
        self.body(s.body, host=host, depth=depth)

    def while_(self, s: ir.While, host: bool, depth: int) -> None:
        self.expr(s.cond)
        self.body(s.body, host=host, depth=depth)

    def branch(self, s: ir.If, host: bool, depth: int) -> None:
        self.expr(s.cond)
        self.body(s.then, host=host, depth=depth)
        self.body(s.orelse, host=host, depth=depth)

    def alloc(self, s: ir.Alloc, host: bool, depth: int) -> None:
        self.define(s.buffer.data)
        self.buffer(s.buffer)

    def declare(self, s: ir.Declare, host: bool, depth: int) -> None:
        self.buffer(s.buffer)

    def block(self, s: ir.Block, host: bool, depth: int) -> None:
        self.name(s.name, "a block")
        self.tuple_of(s.allocs, ir.Buffer, "allocations")
        for b in s.allocs:
            self.define(b.data)
        for b in s.allocs:
            self.buffer(b)
        self.attrs(s.attrs, allowed.BLOCK_ATTRS, "a block annotation")
        self.body(s.body, host=host, depth=depth)

    def attribute(self, s: ir.Attribute, host: bool, depth: int) -> None:
        if self.closed and s.key not in allowed.ATTRIBUTE_KEYS:
            self.bad(f"the attribute {s.key!r}")
        self.attr(s.target)
        self.expr(s.value)
        self.body(s.body, host=host, depth=depth)

    def assertion(self, s: ir.Assert, host: bool, depth: int) -> None:
        self.expr(s.cond)
        self.text(s.message)
        self.text(s.kind)

    def launch(self, s: ir.Launch, host: bool, depth: int) -> None:
        if not host:
            self.bad("a kernel launched inside a kernel")
        for vars_, extents, most in ((s.block_vars, s.grid, 3), (s.thread_vars, s.threads, 3)):
            self.tuple_of(vars_, ir.Var, "launch variables")
            self.tuple_of(extents, ir.Expr, "launch extents")
            if len(extents) > most or len(vars_) > len(extents):
                self.bad(f"a launch of {len(vars_)} variables over {len(extents)} extents")
            for e in extents:
                self.expr(e)
            for v in vars_:
                self.define(v)
        self.attrs(s.attrs, allowed.LAUNCH_ATTRS, "a launch annotation")
        self.body(s.body, host=False, depth=depth)

    # -------------------------------------------------------------------------------------------- expressions
    def expr(self, root: Any) -> None:
        """Check an expression without recursion, since a stranger chooses its depth."""
        stack: list[tuple[Any, int]] = [(root, 0)]
        while stack:
            e, depth = stack.pop()
            if isinstance(e, ir.Var):
                self.is_a(e, ir.Var, "a variable")
                if e not in self.defined:
                    self.bad(f"the variable {e.name!r} where it has no value")
                continue
            if self.checked.get(id(e)) == self.scopes_left:
                continue
            self.checked[id(e)] = self.scopes_left
            if type(e) not in _EXPRESSIONS:
                self.bad(f"an expression of type {type(e).__name__}")
            if depth > MAX_DEPTH * 5:
                self.bad(f"an expression nested deeper than {MAX_DEPTH * 5}")
            self.count()
            if not allowed.is_dtype(e.dtype):
                self.bad(f"the dtype {e.dtype!r}")
            _EXPRESSIONS[type(e)](self, e)
            if isinstance(e, ir.LetExpr):
                self.expr(e.value)
                before = set(self.defined)
                self.define(e.var)
                self.expr(e.body)
                self.leave(before)
                continue
            stack.extend((c, depth + 1) for c in ir.children(e))

    def const(self, e: ir.Const) -> None:
        kind = type(e.value)
        if e.dtype == "bool":
            fits = kind is bool or (kind is int and e.value in (0, 1))
        elif e.dtype.startswith(("int", "uint")):
            fits = kind is int and abs(e.value) < 1 << 65
        else:
            fits = kind in (int, float) and not (kind is int and abs(e.value) > 1 << 1023)
        if not fits:
            self.bad(f"the constant {str(e.value)[:40]} of dtype {e.dtype}")

    def string(self, e: ir.Str) -> None:
        self.text(e.value)

    def binary(self, e: ir.Bin) -> None:
        if e.op not in _BIN:
            self.bad(f"the operator {e.op!r}")
        self.operands(e.a, e.b)
        if e.op in _COMPARE and not e.dtype.startswith("bool"):
            self.bad(f"the comparison {e.op} of dtype {e.dtype}")

    def call(self, e: ir.Call) -> None:
        self.tuple_of(e.args, ir.Expr, f"arguments of {e.op}")
        if not isinstance(e.op, str):
            self.bad("a call of nothing")
        if self.closed:
            if e.op not in allowed.OPS:
                self.bad(f"the operation {e.op!r}")
            if e.op in allowed.EXTERN_OPS:
                self.extern(e.args[0] if e.args else None)
        self.attrs(e.attrs, allowed.TILE_ATTRS, f"an annotation of {e.op}")

    def extern(self, name: Any) -> None:
        if not isinstance(name, ir.Str):
            self.bad("an extern call that names no function")
        known = name.value in allowed.EXTERNS or (self.level == "thread" and allowed.LOWERED_EXTERN.fullmatch(name.value))
        if not known:
            self.bad(f"the extern function {name.value[:80]!r}")

    def load(self, e: ir.Load) -> None:
        self.rank(e.buffer, e.indices)

    def region(self, e: ir.Region) -> None:
        self.rank(e.buffer, e.mins)
        self.rank(e.buffer, e.extents)
        if e.access not in ("", "r", "w", "rw"):
            self.bad(f"a region accessed as {e.access!r}")

    def operands(self, *items: Any) -> None:
        for i in items:
            if not isinstance(i, ir.Expr):
                self.bad(f"an operand of type {type(i).__name__}")

    def lanes(self, e: Any) -> None:
        if type(e.lanes) is not int or not 1 < e.lanes <= 4096:
            self.bad(f"a vector of {e.lanes!r} lanes")

    def access(self, buffer: Any, indices: Any) -> None:
        self.rank(buffer, indices)
        for i in indices:
            self.expr(i)

    def rank(self, buffer: Any, indices: Any) -> None:
        self.buffer(buffer)
        self.tuple_of(indices, ir.Expr, f"indices of {buffer.name}")
        if len(indices) != len(buffer.shape):
            self.bad(f"{len(indices)} indices into {buffer.name}, which has {len(buffer.shape)} dimensions")
        for i in indices:
            if "float" in i.dtype:
                self.bad(f"an index of dtype {i.dtype} into {buffer.name}")

    # ------------------------------------------------------------------------------------------------ buffers
    def buffer(self, b: Any) -> None:
        self.is_a(b, ir.Buffer, "a buffer")
        if b.data not in self.defined:
            self.bad(f"the buffer {b.name!r} where it has no storage")
        if b in self.buffers:
            return
        self.buffers.add(b)
        self.count()
        self.name(b.name, "a buffer")
        if not allowed.is_dtype(b.dtype):
            self.bad(f"the dtype {b.dtype!r} of {b.name}")
        if b.scope not in allowed.SCOPES:
            self.bad(f"the scope {b.scope!r} of {b.name}")
        self.tuple_of(b.shape, ir.Expr, f"the shape of {b.name}")
        self.tuple_of(b.strides, ir.Expr, f"the strides of {b.name}")
        if b.strides and len(b.strides) != len(b.shape):
            self.bad(f"{len(b.strides)} strides of {b.name}, which has {len(b.shape)} dimensions")
        if len(b.shape) > 16 or type(b.align_bytes) is not int or type(b.offset_factor) is not int:
            self.bad(f"the form of {b.name}")
        for e in (*b.shape, *b.strides, *((b.elem_offset,) if b.elem_offset is not None else ())):
            self.expr(e)
            if isinstance(e, ir.Const) and (type(e.value) is not int or not 0 <= e.value < 1 << 48):
                self.bad(f"the extent {e.value!r} of {b.name}")

    # --------------------------------------------------------------------------------------------- attributes
    def attrs(self, items: Any, known: frozenset[str], what: str) -> None:
        if not isinstance(items, Mapping):
            self.bad(f"{what} that is no mapping")
        for key, value in items.items():
            if not isinstance(key, str) or (self.closed and key not in known):
                self.bad(f"{what} {key!r}")
            self.attr(value)

    def attr(self, root: Any) -> None:
        stack = [(root, 0)]
        while stack:
            v, depth = stack.pop()
            self.count()
            if depth > 32:
                self.bad("an attribute nested deeper than 32")
            if v is None or type(v) in (bool, int):
                continue
            if isinstance(v, float):
                if math.isnan(v):
                    self.bad("an attribute that is not a number")
            elif isinstance(v, str):
                self.text(v)
            elif isinstance(v, tuple):
                stack.extend((i, depth + 1) for i in v)
            elif type(v) is ir.AttrMap:
                stack.extend((i, depth + 1) for pair in v.items for i in pair if not isinstance(i, ir.Var))
            elif type(v) is ir.IndexMap:
                self.index_map(v)
            elif type(v) is ir.Buffer:
                self.buffer(v)
            elif isinstance(v, ir.Expr):
                self.expr(v)
            else:
                self.bad(f"an attribute of type {type(v).__name__}")

    def index_map(self, m: ir.IndexMap) -> None:
        self.tuple_of(m.params, ir.Var, "layout parameters")
        self.tuple_of(m.shape, ir.Expr, "the shape of a layout")
        self.tuple_of(m.index, ir.Expr, "the index of a layout")
        if len(m.params) != len(m.shape):
            self.bad(f"a layout of {len(m.params)} parameters over {len(m.shape)} dimensions")
        before = set(self.defined)
        self.defined |= {*m.params, *((m.replicate,) if m.replicate is not None else ())}
        for e in (*m.shape, *m.index, *((m.thread,) if m.thread is not None else ())):
            self.expr(e)
        self.leave(before)

    # ------------------------------------------------------------------------------------------------- helpers
    def define(self, v: Any) -> None:
        self.is_a(v, ir.Var, "a variable")
        self.name(v.name, "a variable")
        for dtype in (v.dtype, v.pointee or v.dtype):
            if not allowed.is_dtype(dtype):
                self.bad(f"the dtype {dtype!r} of {v.name}")
        if v.scope not in allowed.SCOPES:
            self.bad(f"the scope {v.scope!r} of {v.name}")
        self.defined.add(v)

    def name(self, text: Any, what: str) -> None:
        if not isinstance(text, str) or not allowed.NAME.fullmatch(text):
            self.bad(f"the name {str(text)[:80]!r} of {what}")

    def text(self, value: Any) -> None:
        if not isinstance(value, str) or len(value) > 10_000:
            self.bad("a string that is too long or none")
        if self.closed and allowed.BAD_TEXT.search(value):
            self.bad(f"the string {value[:60]!r}, which holds a quote, a backslash or a control character")

    def mapping(self, value: Any, of: type, what: str) -> None:
        if not isinstance(value, Mapping) or not all(isinstance(k, str) and isinstance(v, of) for k, v in value.items()):
            self.bad(f"{what} that are no mapping from names to text")

    def is_a(self, value: Any, kind: type, what: str) -> None:
        if not isinstance(value, kind):
            self.bad(f"{what} of type {type(value).__name__}")

    def tuple_of(self, value: Any, kind: type, what: str) -> None:
        if not isinstance(value, tuple) or not all(isinstance(v, kind) for v in value):
            self.bad(f"{what} that are not {kind.__name__}s")

    def count(self) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.bad(f"more than {MAX_NODES} nodes")

    def bad(self, what: str) -> NoReturn:
        error = VerifyError(f"{_place(self.loc)}a Program may not hold {what}")
        error.loc = self.loc
        error.what = what
        raise error


def _is_assume(s: Any) -> bool:
    return isinstance(s, ir.Eval) and isinstance(s.value, ir.Const | ir.Call) and getattr(s.value, "op", "tirx.assume") == "tirx.assume"


def _place(loc: ir.SourceLoc | None) -> str:
    return f"{loc.file}:{loc.line}: " if loc is not None else ""


def _nothing(checker: _Checker, e: Any) -> None:
    return


_STATEMENTS: Mapping[type, Callable[[_Checker, Any, bool, int], None]] = {
    ir.Bind: _Checker.bind,
    ir.Store: _Checker.store,
    ir.Eval: _Checker.eval,
    ir.Tile: _Checker.tile,
    ir.For: _Checker.loop,
    ir.While: _Checker.while_,
    ir.If: _Checker.branch,
    ir.Alloc: _Checker.alloc,
    ir.Declare: _Checker.declare,
    ir.Block: _Checker.block,
    ir.Attribute: _Checker.attribute,
    ir.Assert: _Checker.assertion,
    ir.Launch: _Checker.launch,
}
_EXPRESSIONS: Mapping[type, Callable[[_Checker, Any], None]] = {
    ir.Const: _Checker.const,
    ir.Str: _Checker.string,
    ir.Var: _nothing,
    ir.Bin: _Checker.binary,
    ir.Not: lambda c, e: c.operands(e.a),
    ir.Cast: lambda c, e: c.operands(e.a),
    ir.Select: lambda c, e: c.operands(e.cond, e.a, e.b),
    ir.Load: _Checker.load,
    ir.Region: _Checker.region,
    ir.Call: _Checker.call,
    ir.Ramp: _Checker.lanes,
    ir.Broadcast: _Checker.lanes,
    ir.Shuffle: _nothing,
    ir.LetExpr: _nothing,
}

"""A Program as readable, Python-like text, each line with the statement that it says: deterministic, so that it can be compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tilelab import ir
from tilelab.ops import SPELLING, TILE_OPS


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """One line of a printed Program: its text (indented), and the statement and user's line that it comes from, where there are any."""

    text: str
    stmt: ir.Stmt | None = None
    loc: ir.SourceLoc | None = None


def text(program: ir.Program) -> str:
    """Return ``program`` as Python-like text. Equal Programs give equal text; it is for reading, not for running."""
    return "\n".join(line.text for line in listing(program)) + "\n"


def listing(program: ir.Program) -> tuple[Line, ...]:
    """Return the lines of :func:`text`, each with its statement."""
    return tuple(_Printer().program(program))


def lines_of(program: ir.Program) -> dict[int, tuple[int, ...]]:
    """Return ``id(statement)`` → the numbers (from 0) of the lines that print its head."""
    found: dict[int, list[int]] = {}
    for number, line in enumerate(listing(program)):
        if line.stmt is not None:
            found.setdefault(id(line.stmt), []).append(number)
    return {key: tuple(numbers) for key, numbers in found.items()}


#: operation → (sign, how tightly it binds); Python's precedence
_SIGNS = {
    "or": ("or", 1), "and": ("and", 2), "eq": ("==", 4), "ne": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4),
    "tirx.bitwise_or": ("|", 5), "tirx.bitwise_xor": ("^", 6), "tirx.bitwise_and": ("&", 7), "tirx.shift_left": ("<<", 8),
    "tirx.shift_right": (">>", 8), "add": ("+", 9), "sub": ("-", 9), "mul": ("*", 10), "floordiv": ("//", 10), "floormod": ("%", 10),
    "div": ("/", 10),
}  # fmt: skip
_NOT = 3
_LOOPS = {"serial": "range", "parallel": "T.Parallel", "vectorized": "T.vectorized", "unrolled": "T.unroll", "thread": "T.thread_binding"}
_ALLOCS = {
    "shared": "T.alloc_shared", "shared.dyn": "T.alloc_shared", "local": "T.alloc_local", "local.fragment": "T.alloc_fragment",
    "local.var": "T.alloc_var", "shared.barrier": "T.alloc_barrier", "global": "T.alloc_global",
}  # fmt: skip
#: Arguments of a tile operation that say nothing where they have this value; sizes follow from the regions.
_PLAIN: Mapping[str, Any] = {
    "transpose_a": False, "transpose_b": False, "transpose_e": False, "policy": 0, "clear_accum": False, "mbar": 0, "c_row": 0, "c_col": 0,
}  # fmt: skip
_IMPLIED = frozenset({"m", "n", "k"})


class _Printer:
    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._taken: set[str] = set()

    # ------------------------------------------------------------------------------------------- statements
    def program(self, p: ir.Program) -> Iterator[Line]:
        given = ", ".join(self._param(q) for q in p.params)
        returned = f"  # returns {', '.join(p.params[k].name for k in p.outputs)}" if p.outputs else ""
        yield Line(text=f"def {p.name}({given}):{returned}")
        body = list(self.body(p.body, 1))
        yield from body or [Line(text="    pass")]

    def _param(self, q: ir.Param) -> str:
        self._names[q.var] = self._fresh(q.name)
        if q.buffer is None:
            return f"{q.name}: T.{q.var.dtype}"
        self._names[q.buffer] = self._names[q.var]
        strides = f", strides={_pack(q.buffer.strides, self.expr)}" if not _c_order(q.buffer) else ""
        return f'{q.name}: T.Tensor({_pack(q.buffer.shape, self.expr)}, "{q.buffer.dtype}"{strides})'

    def body(self, body: ir.Body, depth: int) -> Iterator[Line]:
        for s in body:
            yield from _PRINT[type(s)](self, s, depth)

    def _line(self, s: ir.Stmt, depth: int, words: str) -> Line:
        return Line(text="    " * depth + words, stmt=s, loc=s.loc)

    def _nest(self, s: ir.Stmt, depth: int, head: str, body: ir.Body) -> Iterator[Line]:
        yield self._line(s, depth, head)
        inner = list(self.body(body, depth + 1))
        yield from inner or [Line(text="    " * (depth + 1) + "pass")]

    def launch(self, s: ir.Launch, depth: int) -> Iterator[Line]:
        grid, sizes = ", ".join(map(self.expr, s.grid)), s.threads
        while len(sizes) > 1 and _is(sizes[-1], 1):
            sizes = sizes[:-1]
        threads = self.expr(sizes[0]) if len(sizes) == 1 else _pack(sizes, self.expr)
        names = _bracket(self._bound(s.block_vars), len(s.block_vars))
        names += f", {_bracket(self._bound(s.thread_vars[: len(sizes)]), len(sizes))}" if sizes and s.thread_vars else ""
        told = self._attrs({k: v for k, v in s.attrs.items() if k != "params"})
        yield from self._nest(s, depth, f"with T.Kernel({grid}, threads={threads}) as ({names}):{'  # ' + told if told else ''}", s.body)

    def _bound(self, variables: tuple[ir.Var, ...]) -> str:
        return ", ".join(map(self.expr, variables))

    def block(self, s: ir.Block, depth: int) -> Iterator[Line]:
        for b in s.allocs:
            yield Line(text="    " * depth + self._alloc(b), stmt=s, loc=b.loc or s.loc)
        for key, value in s.attrs.items():
            yield self._line(s, depth, f"T.annotate({key}={self.attr(value)})")
        yield from self.body(s.body, depth)

    def _alloc(self, b: ir.Buffer) -> str:
        make = _ALLOCS.get(b.scope)
        scope = "" if make and b.scope != "shared" else f', scope="{b.scope}"'
        return f'{self.buffer(b)} = {make or "T.alloc_buffer"}({_pack(b.shape, self.expr)}, "{b.dtype}"{scope})'

    def alloc(self, s: ir.Alloc, depth: int) -> Iterator[Line]:
        told = self._attrs(s.attrs)
        yield self._line(s, depth, self._alloc(s.buffer) + (f"  # {told}" if told else ""))

    def declare(self, s: ir.Declare, depth: int) -> Iterator[Line]:
        b = s.buffer
        at = f", offset={self.expr(b.elem_offset)}" if b.elem_offset is not None and not _is(b.elem_offset, 0) else ""
        data = self.expr(b.data)
        yield self._line(s, depth, f'{self.buffer(b)} = T.view({data}, {_pack(b.shape, self.expr)}, "{b.dtype}"{at})')

    def loop(self, s: ir.For, depth: int) -> Iterator[Line]:
        attrs = dict(s.attrs)
        make = _LOOPS.get(s.kind, f"T.{s.kind}")
        if s.kind == "serial" and ("num_stages" in attrs or "tl_pipeline_order" in attrs):
            make = "T.Pipelined"
        low, plain = self.expr(s.min), _is(s.min, 0)
        high = self.expr(s.extent) if plain else self.expr(ir.Bin(dtype=s.extent.dtype, op="add", a=s.min, b=s.extent))
        step = self.expr(s.step) if s.step is not None and not _is(s.step, 1) else ""
        parts = [high] if plain and not step else [low, high, *([step] if step else [])]
        extra = [f"{k}={self.attr(v)}" for k, v in attrs.items()]
        words = f"for {self.expr(s.var)} in {make}({', '.join(parts + (extra if make != 'range' else []))}):"
        if make == "range" and extra:
            words += f"  # {', '.join(extra)}"
        yield from self._nest(s, depth, words, s.body)

    def loop_while(self, s: ir.While, depth: int) -> Iterator[Line]:
        yield from self._nest(s, depth, f"while {self.expr(s.cond)}:", s.body)

    def branch(self, s: ir.If, depth: int) -> Iterator[Line]:
        yield from self._nest(s, depth, f"if {self.expr(s.cond)}:", s.then)
        if s.orelse:
            yield from self._nest(s, depth, "else:", s.orelse)

    def attribute(self, s: ir.Attribute, depth: int) -> Iterator[Line]:
        yield from self._nest(s, depth, f"with T.attr({self.attr(s.target)}, {_quoted(s.key)}, {self.expr(s.value)}):", s.body)

    def store(self, s: ir.Store, depth: int) -> Iterator[Line]:
        where = f"  # where {self.expr(s.predicate)}" if s.predicate is not None else ""
        yield self._line(s, depth, f"{self._element(s.buffer, s.indices)} = {self.expr(s.value)}{where}")

    def bind(self, s: ir.Bind, depth: int) -> Iterator[Line]:
        value = self.expr(s.value)
        yield self._line(s, depth, f"{self.expr(s.var)} = {value}")

    def assertion(self, s: ir.Assert, depth: int) -> Iterator[Line]:
        yield self._line(s, depth, f"assert {self.expr(s.cond)}, {_quoted(s.message)}")

    def evaluate(self, s: ir.Eval, depth: int) -> Iterator[Line]:
        yield self._line(s, depth, self.expr(s.value))

    def tile(self, s: ir.Tile, depth: int) -> Iterator[Line]:
        names = TILE_OPS.get(s.op, ())
        parts = []
        for k, a in enumerate(s.args):
            name = names[k].rstrip("?") if k < len(names) else ""
            if name in _IMPLIED or (name in _PLAIN and isinstance(a, ir.Const) and a.value == _PLAIN[name]):
                continue
            parts.append(self.expr(a) if isinstance(a, ir.Region) or not name else f"{name}={self.expr(a)}")
        parts += [f"{k}={self.attr(v)}" for k, v in s.attrs.items()]
        yield self._line(s, depth, f"{SPELLING.get(s.op, 'T.' + s.op)}({', '.join(parts)})")

    # ------------------------------------------------------------------------------------------ expressions
    def expr(self, e: ir.Expr, outer: int = 0) -> str:
        op = e.op if isinstance(e, ir.Bin | ir.Call) else ""
        args = (e.a, e.b) if isinstance(e, ir.Bin) else e.args if isinstance(e, ir.Call) else ()
        if op in _SIGNS and len(args) == 2:
            sign, tight = _SIGNS[op]
            words = f"{self.expr(args[0], tight)} {sign} {self.expr(args[1], tight + 1)}"
            return f"({words})" if tight < outer else words
        return _EXPR[type(e)](self, e, outer)

    def var(self, e: ir.Var, _outer: int) -> str:
        if e not in self._names:
            self._names[e] = self._fresh(e.name)
        return self._names[e]

    def buffer(self, b: ir.Buffer) -> str:
        """A buffer bears the name of its storage while no other buffer does."""
        if b not in self._names:
            data = self._names.get(b.data)
            mine = (
                data
                if data is not None and data.split(".")[0] == _word(b.name) and data not in map(self._names.get, self._buffers())
                else None
            )
            self._names[b] = mine or self._fresh(b.name)
            self._names.setdefault(b.data, self._names[b])
        return self._names[b]

    def _buffers(self) -> Iterator[ir.Buffer]:
        return (k for k in self._names if isinstance(k, ir.Buffer))

    def _fresh(self, name: str) -> str:
        word, count = _word(name), 0
        while word in self._taken:
            count += 1
            word = f"{_word(name)}_{count}"
        self._taken.add(word)
        return word

    def _element(self, b: ir.Buffer, indices: tuple[ir.Expr, ...]) -> str:
        return f"{self.buffer(b)}[{', '.join(self._index(i) for i in indices)}]"

    def _index(self, i: ir.Expr) -> str:
        """A short ramp is a slice: ``i:i + 8``."""
        if isinstance(i, ir.Ramp):
            lanes = ir.Const(dtype=i.base.dtype, value=i.lanes)
            if _is(i.stride, 1) and len(self.expr(i.base)) < 24:
                return self._span(i.base, lanes)
        return self.expr(i)

    def _span(self, low: ir.Expr, extent: ir.Expr) -> str:
        if isinstance(low, ir.Const) and isinstance(extent, ir.Const):
            return f"{low.value}:{low.value + extent.value}"
        return f"{self.expr(low)}:{self.expr(ir.Bin(dtype=extent.dtype, op='add', a=low, b=extent))}"

    def region(self, e: ir.Region, _outer: int) -> str:
        whole = all(_is(m, 0) and _same(x, n) for m, x, n in zip(e.mins, e.extents, e.buffer.shape, strict=True))
        if whole:
            return self.buffer(e.buffer)
        cut = [self.expr(m) if _is(x, 1) else self._span(m, x) for m, x in zip(e.mins, e.extents, strict=True)]
        return f"{self.buffer(e.buffer)}[{', '.join(cut)}]"

    def cast(self, e: ir.Cast, _outer: int) -> str:
        return f"{_spelled(e.dtype)}({self.expr(e.a)})"

    def select(self, e: ir.Select, outer: int) -> str:
        words = f"{self.expr(e.a, 1)} if {self.expr(e.cond, 1)} else {self.expr(e.b, 0)}"
        return f"({words})" if outer > 0 else words

    def negation(self, e: ir.Not, outer: int) -> str:
        words = f"not {self.expr(e.a, _NOT)}"
        return f"({words})" if outer > _NOT else words

    def call(self, e: ir.Call, _outer: int) -> str:
        if e.op == "tirx.tvm_access_ptr" and len(e.args) == 5:
            return f"T.ptr({self.expr(e.args[1])}[{self.expr(e.args[2])}])"
        name = e.op.removeprefix("tirx.").removeprefix("tl.")
        args = [self.expr(a) for a in e.args]
        return f"T.{name}({', '.join(args + [f'{k}={self.attr(v)}' for k, v in e.attrs.items()])})"

    def function(self, e: ir.Bin, _outer: int) -> str:
        return f"T.{'truncmod' if e.op == 'mod' else e.op}({self.expr(e.a)}, {self.expr(e.b)})"

    # ------------------------------------------------------------------------------------------- attributes
    def attr(self, v: Any) -> str:
        if isinstance(v, ir.Expr):
            return self.expr(v)
        if isinstance(v, ir.Buffer):
            return self.buffer(v)
        if isinstance(v, ir.IndexMap):
            given = ", ".join(map(self.expr, (*v.params, *([v.replicate] if v.replicate else []))))
            place = _pack(v.index, self.expr) if len(v.index) != 1 else self.expr(v.index[0])
            return f"lambda {given}: {place}" if v.thread is None else f"lambda {given}: ({self.expr(v.thread)}, {place})"
        if isinstance(v, ir.AttrMap):
            return "{" + ", ".join(f"{self.attr(k)}: {self.attr(x)}" for k, x in v.items) + "}"
        return (
            f"({', '.join(map(self.attr, v))}{',' * (len(v) == 1)})"
            if isinstance(v, tuple)
            else _quoted(v)
            if isinstance(v, str)
            else repr(v)
        )

    def _attrs(self, attrs: Mapping[str, Any]) -> str:
        return ", ".join(f"{k}={self.attr(v)}" for k, v in attrs.items())


_PRINT: Mapping[type, Callable[[_Printer, Any, int], Iterator[Line]]] = {
    ir.Launch: _Printer.launch,
    ir.Block: _Printer.block,
    ir.Alloc: _Printer.alloc,
    ir.Declare: _Printer.declare,
    ir.For: _Printer.loop,
    ir.While: _Printer.loop_while,
    ir.If: _Printer.branch,
    ir.Attribute: _Printer.attribute,
    ir.Store: _Printer.store,
    ir.Bind: _Printer.bind,
    ir.Assert: _Printer.assertion,
    ir.Eval: _Printer.evaluate,
    ir.Tile: _Printer.tile,
}
_EXPR: Mapping[type, Callable[[_Printer, Any, int], str]] = {
    ir.Const: lambda _p, e, _o: _number(e),
    ir.Str: lambda _p, e, _o: _quoted(e.value),
    ir.Var: _Printer.var,
    ir.Bin: _Printer.function,
    ir.Not: _Printer.negation,
    ir.Cast: _Printer.cast,
    ir.Select: _Printer.select,
    ir.Load: lambda p, e, _o: p._element(e.buffer, e.indices),
    ir.Region: _Printer.region,
    ir.Call: _Printer.call,
    ir.Ramp: lambda p, e, _o: f"T.Ramp({p.expr(e.base)}, {p.expr(e.stride)}, {e.lanes})",
    ir.Broadcast: lambda p, e, _o: f"T.Broadcast({p.expr(e.value)}, {e.lanes})",
    ir.Shuffle: lambda p, e, _o: f"T.Shuffle({_pack(e.vectors, p.expr)}, {_pack(e.indices, p.expr)})",
    ir.LetExpr: lambda p, e, _o: f"T.Let({p.expr(e.var)}, {p.expr(e.value)}, {p.expr(e.body)})",
}


def _number(e: ir.Const) -> str:
    if isinstance(e.value, bool) or e.dtype in ("bool", "int32", "float32") or e.dtype.startswith("int"):
        return repr(e.value)
    return f"{_spelled(e.dtype)}({e.value!r})" if e.dtype != "handle" else repr(e.value)


def _spelled(dtype: str) -> str:
    return f"T.{dtype}" if dtype.isidentifier() else f"T.cast_{_word(dtype)}"


def _quoted(words: str) -> str:
    return json.dumps(words, ensure_ascii=False)


def _c_order(b: ir.Buffer) -> bool:
    """Tell whether the strides say no more than the shape."""
    step = 1
    for n, stride in zip(reversed(b.shape), reversed(b.strides), strict=True) if b.strides else ():
        if not _is(stride, step) or not isinstance(n, ir.Const):
            return False
        step *= int(n.value)
    return True


def _word(name: str) -> str:
    word = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    return word if word and not word[0].isdigit() else f"v{word}"


def _is(e: ir.Expr, value: int) -> bool:
    return isinstance(e, ir.Const) and e.value == value


def _same(a: ir.Expr, b: ir.Expr) -> bool:
    return a is b or (isinstance(a, ir.Const) and isinstance(b, ir.Const) and a.value == b.value)


def _pack(items: tuple[ir.Expr, ...], show: Callable[[ir.Expr], str]) -> str:
    return f"({', '.join(show(i) for i in items)}{',' * (len(items) == 1)})"


def _bracket(words: str, count: int) -> str:
    return f"({words})" if count > 1 else words

"""Program → PrimFunc: what :mod:`.statements` reads, written back so that TileLang lowers it to the same code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tilelab import ir
from tilelab.compiler.provenance import encode
from tilelab.compiler.reader import BINARY, CONSTANT_KEYS, OBJECTS
from tilelab.errors import InputError
from tilelab.verify import verify

_ACCESS = {"": 0, "r": 1, "w": 2, "rw": 3}
_CLASS = {op: name for name, op in BINARY.items()}
_FOR_KINDS = {"serial": 0, "parallel": 1, "vectorized": 2, "unrolled": 3, "thread": 4}
_AXES = "xyz"


def emit(program: ir.Program, *, check: bool = True) -> Any:
    """Return the ``tvm.tirx.PrimFunc`` that ``program`` says; lowering it gives what lowering the original gives.

    Args:
        program: A tile-level Program.
        check: Verify the grammar first. Default: True.

    Raises:
        VerifyError: The Program breaks the grammar.
        InputError: It is a lowered device program.
    """
    if program.level != "tile":
        raise InputError(f"{program.name} is a lowered device program", fix="emit the tile-level program that it was lowered from")
    if check:
        verify(program, closed=False)
    return _Writer().function(program)


class _Writer:
    """Writes one function; variables and buffers keep their identity."""

    def __init__(self) -> None:
        from tvm import tirx

        self.tirx = tirx
        self._vars: dict[ir.Var, Any] = {}
        self._buffers: dict[ir.Buffer, Any] = {}
        self._memo: dict[int, Any] = {}

    def function(self, p: ir.Program) -> Any:
        buffers = {self.var(q.var): self.buffer(q.buffer) for q in p.params if q.buffer is not None}
        func = self.tirx.PrimFunc([self.var(q.var) for q in p.params], self.body(p.body), None, buffers)
        func = func.with_attr("global_symbol", p.name)
        for key, value in p.attrs.items():
            func = func.with_attr(key, self.attr(value))
        if p.outputs:
            func = func.with_attr("tilelang_out_idx", list(p.outputs))
        return func

    # ------------------------------------------------------------------------------------------- expressions
    def expr(self, e: ir.Expr) -> Any:
        # Reused nodes are written once: the trees that TileLang makes share their parts.
        key = id(e)
        if key not in self._memo:
            self._memo[key] = self._writers[type(e)](e)
        return self._memo[key]

    def exprs(self, items: tuple[ir.Expr, ...]) -> list[Any]:
        return [self.expr(i) for i in items]

    @cached_property
    def _writers(self) -> Mapping[type, Callable[[Any], Any]]:
        t, x = self.tirx, self.expr
        return {
            ir.Var: self.var,
            ir.Const: self._const,
            ir.Str: lambda e: t.StringImm(e.value),
            ir.Bin: lambda e: getattr(t, _CLASS[e.op])(x(e.a), x(e.b)),
            ir.Not: lambda e: t.Not(x(e.a)),
            ir.Cast: lambda e: t.Cast(e.dtype, x(e.a)),
            ir.Select: lambda e: t.Select(x(e.cond), x(e.a), x(e.b)),
            ir.Load: lambda e: t.BufferLoad(self.buffer(e.buffer), self.exprs(e.indices)),
            ir.Region: self._region,
            ir.Call: lambda e: self._call(e.dtype, e.op, e.args, e.attrs),
            ir.Ramp: lambda e: t.Ramp(x(e.base), x(e.stride), e.lanes),
            ir.Broadcast: lambda e: t.Broadcast(x(e.value), e.lanes),
            ir.Shuffle: lambda e: t.Shuffle(self.exprs(e.vectors), self.exprs(e.indices)),
            ir.LetExpr: lambda e: t.Let(self.var(e.var), x(e.value), x(e.body)),
        }

    def _const(self, e: ir.Const) -> Any:
        if e.dtype.startswith(("int", "uint", "bool")):
            return self.tirx.IntImm(e.dtype, int(e.value))
        return self.tirx.FloatImm(e.dtype, float(e.value))

    def var(self, v: ir.Var) -> Any:
        if v not in self._vars:
            if v.pointee:
                from tvm.ir import PointerType, PrimType

                kind = PointerType(PrimType(v.pointee), v.scope)
                self._vars[v] = self.tirx.Var(v.name, kind)
            else:
                self._vars[v] = self.tirx.Var(v.name, v.dtype)
        return self._vars[v]

    def buffer(self, b: ir.Buffer) -> Any:
        if b not in self._buffers:
            out = self.tirx.decl_buffer(
                self.exprs(b.shape),
                b.dtype,
                name=b.name,
                data=self.var(b.data),
                strides=self.exprs(b.strides) or None,
                elem_offset=self.expr(b.elem_offset) if b.elem_offset is not None else self.tirx.IntImm("int32", 0),
                scope=b.scope,
                data_alignment=b.align_bytes,
                offset_factor=b.offset_factor,
            )
            if b.loc is not None:
                from tilelang.ir import make_span, set_buffer_span

                set_buffer_span(out, make_span(encode(b.loc), b.loc.line))
            self._buffers[b] = out
        return self._buffers[b]

    def _region(self, e: ir.Region) -> Any:
        load = self.tirx.BufferLoad(self.buffer(e.buffer), self.exprs(e.mins))
        return self._op(e.dtype, "tl.region", [load, self.tirx.IntImm("int32", _ACCESS[e.access]), *self.exprs(e.extents)], {})

    def _call(self, dtype: str, op: str, args: tuple[ir.Expr, ...], attrs: Mapping[str, ir.Attr]) -> Any:
        return self._op(dtype, op, self.exprs(args), {k: self.attr(v, constant=True) for k, v in attrs.items()})

    def _op(self, dtype: str, op: str, args: list[Any], annotations: dict[str, Any]) -> Any:
        from tvm.ir import Op

        return self.tirx.Call(dtype, Op.get(op), args, annotations=annotations or None)

    # -------------------------------------------------------------------------------------------- attributes
    def attrs(self, items: Mapping[str, ir.Attr]) -> dict[str, Any]:
        return {k: self.attr(v, constant=k in CONSTANT_KEYS) for k, v in items.items()}

    def attr(self, v: ir.Attr, *, constant: bool = False) -> Any:
        """Write one attribute value: the inverse of :meth:`tilelab.compiler.reader.Reader.attr`."""
        if isinstance(v, bool):
            return self.tirx.IntImm("bool", int(v)) if constant else v
        if isinstance(v, int):
            return self.tirx.IntImm("int32", v) if constant else v
        if isinstance(v, str):
            return self.tirx.StringImm(v) if constant else v
        if v is None or isinstance(v, float):
            return v
        if isinstance(v, tuple):
            return [self.attr(i, constant=constant) for i in v]
        if isinstance(v, ir.AttrMap):
            return self._map(v, constant)
        if isinstance(v, ir.IndexMap):
            return self.layout(v)
        if isinstance(v, ir.Buffer):
            return self.buffer(v)
        return self.expr(v)

    def _map(self, v: ir.AttrMap, constant: bool) -> Any:
        if len(v.items) == 1 and v.items[0][0] == "raw":
            return v.items[0][1]
        if v.items and v.items[0][0] == "type":
            return self._object(str(v.items[0][1]), dict(v.items[1:]))
        return {self.var(k) if isinstance(k, ir.Var) else k: self.attr(i, constant=constant) for k, i in v.items}

    def _object(self, name: str, fields: dict[str, ir.Attr]) -> Any:
        from tilelang import _ffi_api

        if name == "CommReducer":
            identity = self.attr(fields["identity"])
            x, y = (self.tirx.Var(n, identity.dtype) for n in "xy")
            combine = next(getattr(self.tirx, node) for node, op in BINARY.items() if op == fields["op"])
            return self.tirx.CommReducer([x], [y], [combine(x, y)], [identity])
        values = [self.attr(fields[f]) for f in OBJECTS[name]]
        if name == "WSSync":
            from tilelang.language.warp_specialize import WSSyncKind

            values[0] = getattr(WSSyncKind, values[0])
        return getattr(_ffi_api, name)(*values)

    def layout(self, v: ir.IndexMap) -> Any:
        from tilelang import _ffi_api
        from tvm.ir import Range

        def over(var: ir.Var, extent: Any) -> Any:
            return self.tirx.IterVar(Range(0, extent), self.var(var), 0)

        params = [over(p, self.expr(n)) for p, n in zip(v.params, v.shape, strict=True)]
        index = self.exprs(v.index)
        if v.thread is None:
            return _ffi_api.Layout(params, index)
        copies = over(v.replicate, v.replicate_extent) if v.replicate is not None else None
        if v.combine:
            return _ffi_api.PartialFragment(params, index, self.expr(v.thread), copies, v.combine)
        return _ffi_api.Fragment(params, index, self.expr(v.thread), copies)

    # -------------------------------------------------------------------------------------------- statements
    def body(self, stmts: ir.Body) -> Any:
        written = [self.stmt(s) for s in stmts]
        if not written:
            return self.tirx.Evaluate(self.tirx.IntImm("int32", 0))
        return written[0] if len(written) == 1 else self.tirx.SeqStmt(written)

    def stmt(self, s: ir.Stmt) -> Any:
        out = self._statements[type(s)](s)
        self._stamp(out, s.loc)
        return out

    def _stamp(self, out: Any, loc: ir.SourceLoc | None) -> None:
        if loc is not None:
            from tilelang.ir import make_span, set_stmt_span

            set_stmt_span(out, make_span(encode(loc), loc.line))

    @cached_property
    def _statements(self) -> Mapping[type, Callable[[Any], Any]]:
        t, x = self.tirx, self.expr
        return {
            ir.Bind: lambda s: t.Bind(self.var(s.var), x(s.value)),
            ir.Store: self._store,
            ir.Eval: lambda s: t.Evaluate(x(s.value)),
            ir.Tile: lambda s: t.Evaluate(self._call("handle", "tl.tileop." + s.op, s.args, s.attrs)),
            ir.For: self._for,
            ir.While: lambda s: t.While(x(s.cond), self.body(s.body)),
            ir.If: lambda s: t.IfThenElse(x(s.cond), self.body(s.then), self.body(s.orelse) if s.orelse else None),
            ir.Alloc: lambda s: t.AllocBuffer(self.buffer(s.buffer), self.attrs(s.attrs)),
            ir.Declare: lambda s: t.DeclBuffer(self.buffer(s.buffer)),
            ir.Block: lambda s: self._block(s, {}),
            ir.Attribute: lambda s: t.AttrStmt(self.attr(s.target, constant=True), s.key, x(s.value), self.body(s.body)),
            ir.Assert: lambda s: t.AssertStmt(x(s.cond), t.StringImm(s.kind), [t.StringImm(s.message)]),
            ir.Launch: self._launch,
        }

    def _store(self, s: ir.Store) -> Any:
        predicate = self.expr(s.predicate) if s.predicate is not None else None
        return self.tirx.BufferStore(self.buffer(s.buffer), self.expr(s.value), self.exprs(s.indices), predicate)

    def _for(self, s: ir.For) -> Any:
        attrs = self.attrs({k: v for k, v in s.attrs.items() if not (s.kind == "thread" and k == "thread")})
        binding = self._thread_axis(str(s.attrs["thread"]), s.var.dtype) if s.kind == "thread" else None
        step = self.expr(s.step) if s.step is not None else None
        body = self.body(s.body)
        return self.tirx.For(self.var(s.var), self.expr(s.min), self.expr(s.extent), _FOR_KINDS[s.kind], body, binding, attrs, step)

    def _thread_axis(self, tag: str, dtype: str) -> Any:
        return self.tirx.IterVar(None, self.tirx.Var(tag, dtype), 1, tag)

    def _block(self, s: ir.Block, launch_attrs: dict[str, Any]) -> Any:
        attrs = {**launch_attrs, **self.attrs(s.attrs)}
        allocs = [self.buffer(b) for b in s.allocs]
        block = self.tirx.SBlock([], [], [], s.name, self.body(s.body), None, allocs, [], attrs)
        self._stamp(block, s.loc)
        return self.tirx.SBlockRealize([], self.tirx.IntImm("bool", 1), block)

    def _launch(self, s: ir.Launch) -> Any:
        attrs = self.attrs({k: v for k, v in s.attrs.items() if k != "threads_defaulted"})
        if not s.attrs.get("threads_defaulted"):
            attrs["tl.launch_threads"] = self.exprs(s.threads)
        block = s.body[0]
        if len(s.body) != 1 or not isinstance(block, ir.Block):
            raise InputError("a Launch must hold exactly one Block", fix="wrap its statements in a Block named tilelang_root")
        inner = self._block(block, attrs)
        self._stamp(inner, block.loc)
        axes = [self._thread_index(i, v, s.loc) for i, v in enumerate(s.thread_vars)]
        out = self.tirx.SeqStmt([*axes, inner]) if axes else inner
        for i in reversed(range(len(s.grid))):
            var, extent = s.block_vars[i], self.expr(s.grid[i])
            axis = self._thread_axis(f"blockIdx.{_AXES[i]}", var.dtype)
            zero = self.tirx.IntImm(str(extent.dtype), 0)
            out = self.tirx.For(self.var(var), zero, extent, 4, out, axis, {})
            self._stamp(out, s.loc)
        return out

    def _thread_index(self, axis: int, v: ir.Var, loc: ir.SourceLoc | None) -> Any:
        out = self.tirx.Bind(self.var(v), self._op(v.dtype, "tl.launch_thread_idx", [self.tirx.IntImm("int32", axis)], {}))
        self._stamp(out, loc)
        return out

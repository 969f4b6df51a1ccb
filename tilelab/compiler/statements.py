"""A tile-level PrimFunc → :class:`tilelab.ir.Program`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.compiler.provenance import is_library, loc_of_span, text_of
from tilelab.compiler.reader import Reader, not_supported
from tilelab.errors import InputError
from tilelab.ops import TILE_OPS

_FOR_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread")
_TILE_PREFIX = "tl.tileop."
_LAUNCH_KEYS = frozenset({"tl.launch_threads", "cluster_dims", "pragma_import_c"})
_DEFAULT_THREADS = 128
#: Function attributes that a Program holds as fields of its own.
_FUNCTION_FIELDS = frozenset({"global_symbol", "tilelang_out_idx"})


def read_prim_func(func: Any, *, outputs: Any = None, extra_attrs: Mapping[str, Any] | None = None) -> ir.Program:
    """Read a tile-level PrimFunc.

    Args:
        func: A ``tvm.tirx.PrimFunc`` as TileLang's front end makes it.
        outputs: ``out_idx`` of a lazy kernel: an index or several; the function's own attribute when None.
        extra_attrs: Function attributes that are not on ``func``, such as the pass configuration of a jit.

    Raises:
        KernelRefused: It holds something that a Program cannot say (TL703).
    """
    reader = TileReader()
    params = tuple(_params(reader, func))
    attrs = reader.attrs({**dict(func.attrs or {}), **(extra_attrs or {})})
    if outputs is None:
        outputs = attrs.get("tilelang_out_idx")
    name = str(attrs.get("global_symbol", "main"))
    body = reader.body(func.body)
    return ir.Program(
        name=name,
        level="tile",
        params=params,
        body=body,
        outputs=_outputs(outputs, len(params)),
        attrs={k: v for k, v in attrs.items() if k not in _FUNCTION_FIELDS},
        sources=sources_of(body),
    )


def _params(reader: Reader, func: Any) -> Iterator[ir.Param]:
    for v in func.params:
        var = reader.var(v)
        if v in func.buffer_map:
            buffer = reader.buffer(func.buffer_map[v])
            yield ir.Param(name=buffer.name, var=var, buffer=buffer)
        else:
            yield ir.Param(name=var.name, var=var)


def _outputs(outputs: Any, n: int) -> tuple[int, ...]:
    if outputs is None:
        return ()
    indices = (outputs,) if isinstance(outputs, int) else tuple(int(i) for i in outputs)
    wrong = [i for i in indices if not -n <= i < n]
    if wrong:
        raise InputError(f"out_idx {wrong[0]} names no parameter: there are {n}", fix=f"give indices from 0 to {n - 1}, or from -{n} to -1")
    return tuple(i % n for i in indices) if n else ()


def sources_of(body: ir.Body) -> dict[str, str]:
    """Return the text of every file that the locations in ``body`` name."""
    files: dict[str, None] = {}
    for n in ir.walk(body):
        loc = getattr(n, "loc", None)
        while loc is not None:
            files.setdefault(loc.file)
            loc = loc.caller
    return {f: text for f in files if not is_library(f) and (text := text_of(f))}


class TileReader(Reader):
    """Reads the statements of a tile-level function."""

    def body(self, s: Any) -> ir.Body:
        """Read a statement as the statements it consists of."""
        if s is None:
            return ()
        name = type(s).__name__
        if name == "SeqStmt":
            out: list[ir.Stmt] = []
            rest = list(s.seq)
            while rest:
                if _is_thread_index(rest[0]):  # T.Kernel(threads=…) with no grid: one block
                    end = next((i + 1 for i, one in enumerate(rest) if not _is_thread_index(one)), len(rest))
                    out.append(self._launch(rest[:end], self.location(rest[end - 1])))
                    del rest[:end]
                else:
                    out.extend(self.body(rest.pop(0)))
            return _sunk(out)
        if name not in _STATEMENTS:
            raise not_supported(f"the statement {name}", self.here)
        outer = self.here
        loc = self.location(s)
        self.here = loc or outer
        try:
            return getattr(self, _STATEMENTS[name])(s, loc)  # type: ignore[no-any-return]
        finally:
            self.here = outer

    def location(self, s: Any) -> ir.SourceLoc | None:
        """Return the user's line of a statement."""
        return loc_of_span(_span(s))

    # ---------------------------------------------------------------------------------------------- by class
    def _bind(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        return (ir.Bind(var=self.var(s.var), value=self.expr(s.value), loc=loc),)

    def _store(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        predicate = self.expr(s.predicate) if s.predicate is not None else None
        return (
            ir.Store(buffer=self.buffer(s.buffer), indices=self.exprs(s.indices), value=self.expr(s.value), predicate=predicate, loc=loc),
        )

    def _evaluate(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        value = self.expr(s.value)
        if isinstance(value, ir.Call) and value.op.startswith(_TILE_PREFIX):
            op = value.op.removeprefix(_TILE_PREFIX)
            if op not in TILE_OPS:
                raise not_supported(f"the tile operation {op}", loc or self.here)
            return (ir.Tile(op=op, args=value.args, attrs=value.attrs, loc=loc),)
        return (ir.Eval(value=value, loc=loc),)

    def _for(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        if s.thread_binding is not None and str(s.thread_binding.thread_tag).startswith("blockIdx"):
            return (self._launch(s, loc),)
        kind = _FOR_KINDS[int(s.kind)]
        attrs = self.attrs(s.annotations)
        if s.thread_binding is not None:
            attrs["thread"] = str(s.thread_binding.thread_tag)
        step = self.expr(s.step) if s.step is not None else None
        return (
            ir.For(
                var=self.var(s.loop_var), min=self.expr(s.min), extent=self.expr(s.extent), kind=kind, step=step, attrs=attrs,
                body=self.body(s.body), loc=loc,
            ),
        )  # fmt: skip

    def _launch(self, s: Any, loc: ir.SourceLoc | None) -> ir.Launch:
        """A nest of loops over blockIdx, the placeholders of threadIdx, and the block of the kernel's body; without the nest, a list."""
        block_vars, grid = [], []
        while type(s).__name__ == "For" and s.thread_binding is not None and str(s.thread_binding.thread_tag).startswith("blockIdx"):
            block_vars.append(self.var(s.loop_var))
            grid.append(self.expr(s.extent))
            s = s.body
        thread_vars = []
        items = s if isinstance(s, list) else list(s.seq) if type(s).__name__ == "SeqStmt" else [s]
        while items and _is_thread_index(items[0]):
            thread_vars.append(self.var(items.pop(0).var))
        if len(items) != 1 or type(items[0]).__name__ != "SBlockRealize":
            raise not_supported("statements between the grid and the body of a kernel", loc)
        root = items[0].block
        attrs = {k: v for k, v in self.attrs(root.annotations).items() if k in _LAUNCH_KEYS}
        threads = attrs.pop("tl.launch_threads", None)
        if threads is None:
            attrs["threads_defaulted"] = True
            threads = (_DEFAULT_THREADS, 1, 1)
        if not isinstance(threads, tuple):
            raise not_supported("a thread count that is not a list", loc)
        return ir.Launch(
            block_vars=tuple(block_vars),
            grid=tuple(grid),
            thread_vars=tuple(thread_vars),
            threads=tuple(self.expr(t) if isinstance(t, int) else t for t in threads),  # type: ignore[misc]
            body=self.body(items[0]),
            attrs=attrs,
            loc=loc,
        )

    def _realize(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        if len(s.iter_values) or not _is_true(s.predicate):
            raise not_supported("a block with iteration variables", loc or self.here)
        return self.body(s.block)

    def _block(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        if len(s.iter_vars) or len(s.match_buffers) or s.init is not None:
            raise not_supported(f"the block {s.name_hint} with iteration variables, matched buffers or an init", loc or self.here)
        if (s.reads is not None and len(s.reads)) or (s.writes is not None and len(s.writes)):
            raise not_supported(f"the block {s.name_hint} with declared reads and writes", loc or self.here)
        return (
            ir.Block(
                name=str(s.name_hint),
                body=self.body(s.body),
                allocs=tuple(self.buffer(b) for b in s.alloc_buffers),
                attrs={k: v for k, v in self.attrs(s.annotations).items() if k not in _LAUNCH_KEYS},
                loc=loc,
            ),
        )

    def _attribute(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        target = self.attr(s.node, constant=True)
        return (ir.Attribute(key=str(s.attr_key), target=target, value=self.expr(s.value), body=self.body(s.body), loc=loc),)

    def _if(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        return (ir.If(cond=self.expr(s.condition), then=self.body(s.then_case), orelse=self.body(s.else_case), loc=loc),)

    def _while(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        return (ir.While(cond=self.expr(s.condition), body=self.body(s.body), loc=loc),)

    def _alloc(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        return (ir.Alloc(buffer=self.buffer(s.buffer), attrs=self.attrs(s.annotations), loc=loc),)

    def _declare(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        return (ir.Declare(buffer=self.buffer(s.buffer), loc=loc),)

    def _assert(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        message = "".join(str(p.value) for p in s.message_parts)
        return (ir.Assert(cond=self.expr(s.condition), message=message, kind=str(s.error_kind.value), loc=loc),)


#: TVM class name → the method that reads it.
_STATEMENTS: Mapping[str, str] = {
    "Bind": "_bind",
    "BufferStore": "_store",
    "Evaluate": "_evaluate",
    "For": "_for",
    "SBlockRealize": "_realize",
    "SBlock": "_block",
    "AttrStmt": "_attribute",
    "IfThenElse": "_if",
    "While": "_while",
    "AllocBuffer": "_alloc",
    "DeclBuffer": "_declare",
    "AssertStmt": "_assert",
}


def _sunk(stmts: list[ir.Stmt]) -> ir.Body:
    """Move bindings that need the variable of the loop behind them into it: ``T.Persistent`` writes them before it."""
    out: list[ir.Stmt] = []
    for s in stmts:
        if isinstance(s, ir.For):
            early: list[ir.Stmt] = []
            while out and isinstance(out[-1], ir.Bind) and s.var in set(ir.walk(out[-1].value)):
                early.insert(0, out.pop())
            if early:
                s = replace(s, body=(*early, *s.body))
        out.append(s)
    return tuple(out)


def _span(s: Any) -> Any:
    from tilelang.ir import get_stmt_span

    return get_stmt_span(s)


def _is_thread_index(s: Any) -> bool:
    if type(s).__name__ != "Bind" or type(s.value).__name__ != "Call":
        return False
    return getattr(s.value.op, "name", "") == "tl.launch_thread_idx"


def _is_true(e: Any) -> bool:
    return e is True or bool(getattr(e, "value", False))

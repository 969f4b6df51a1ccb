"""TVM's IR → :mod:`tilelab.ir`: expressions, buffers, attributes. Statements are read by :mod:`.statements`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from tilelab import ir
from tilelab.compiler.provenance import loc_of_span
from tilelab.finding import KernelRefused, finding

_ACCESS = {0: "", 1: "r", 2: "w", 3: "rw"}

#: TVM class name → operator of :class:`tilelab.ir.Bin`.
BINARY: Mapping[str, str] = {
    "Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Mod": "mod", "FloorDiv": "floordiv", "FloorMod": "floormod",
    "Min": "min", "Max": "max", "EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge", "And": "and", "Or": "or",
}  # fmt: skip

#: Attributes whose integers TileLang makes itself, as TVM constants; all others come as Python gave them.
CONSTANT_KEYS = frozenset(
    {"num_stages", "tl_pipeline_order", "tl_pipeline_stage", "tl.launch_threads", "barrier_init", "tl_pipelined_num_stages"}
)

#: Schedule objects of TileLang → their fields, in the order of their constructors.
OBJECTS: Mapping[str, tuple[str, ...]] = {
    "WSRole": ("name", "warp_lo", "warp_hi", "max_nreg"),
    "WSPipeline": ("name", "buffers", "depth"),
    "WSOpRef": ("id",),
    "WSSync": ("kind", "pipeline", "stage"),
    "WSScope": ("id", "bodies"),
    "WSSchedule": ("num_warps", "roles", "pipelines", "scopes"),
}


def not_supported(what: str, loc: ir.SourceLoc | None = None) -> KernelRefused:
    """Return the refusal (TL703) of a construct that TileLab does not know, by name."""
    return KernelRefused(
        finding(
            "TL703",
            f"{what} is not supported by TileLab yet.",
            fix="write it with the constructs of TileLang's common language, or report this kernel.",
            file=loc.file if loc else None,
            line=loc.line if loc else None,
        )
    )


def dtype_of(node: Any) -> str:
    """Return the dtype of a TVM node; TVM prints void as nothing."""
    return str(node.dtype) or "void"


def name_of(node: Any) -> str:
    """Return the name of a variable or buffer as an identifier: TileLang leaves some without, and some with odd characters."""
    text = re.sub(r"[^A-Za-z0-9_.:]", "_", str(node.name))
    return text if re.match(r"[A-Za-z_]", text) else f"_{text}"


class Reader:
    """Reads the expressions of one function; variables and buffers keep their identity."""

    def __init__(self) -> None:
        self._vars: dict[int, ir.Var] = {}
        self._buffers: dict[int, ir.Buffer] = {}
        self._memo: dict[int, tuple[Any, ir.Expr]] = {}  # the TVM node is kept alive beside what it became
        self.here: ir.SourceLoc | None = None  # the statement being read, for refusals

    # ------------------------------------------------------------------------------------------- expressions
    def expr(self, e: Any) -> ir.Expr:
        """Read an expression; Python numbers become constants."""
        if isinstance(e, bool):
            return ir.Const(dtype="bool", value=e)
        if isinstance(e, int):
            return ir.Const(dtype="int32", value=e)
        if isinstance(e, float):
            return ir.Const(dtype="float32", value=e)
        if isinstance(e, str):
            return ir.Str(dtype="handle", value=e)
        key = e.__chandle__()
        if key in self._memo:
            return self._memo[key][1]
        name = type(e).__name__
        if name in BINARY:
            out: ir.Expr = ir.Bin(dtype=dtype_of(e), op=BINARY[name], a=self.expr(e.a), b=self.expr(e.b))
        elif name in self._readers:
            out = self._readers[name](e)
        else:
            raise not_supported(f"the expression {name}", self.here)
        self._memo[key] = (e, out)
        return out

    @cached_property
    def _readers(self) -> dict[str, Callable[[Any], ir.Expr]]:
        x = self.expr
        return {
            "Var": self.var,
            "SizeVar": self.var,
            "IntImm": lambda e: ir.Const(dtype=dtype_of(e), value=bool(e.value) if dtype_of(e) == "bool" else int(e.value)),
            "FloatImm": lambda e: ir.Const(dtype=dtype_of(e), value=float(e.value)),
            "StringImm": lambda e: ir.Str(dtype="handle", value=str(e.value)),
            "Not": lambda e: ir.Not(dtype=dtype_of(e), a=x(e.a)),
            "Cast": lambda e: ir.Cast(dtype=dtype_of(e), a=x(e.value)),
            "Select": lambda e: ir.Select(dtype=dtype_of(e), cond=x(e.condition), a=x(e.true_value), b=x(e.false_value)),
            "BufferLoad": self._load,
            "BufferRegion": self._buffer_region,
            "Ramp": lambda e: ir.Ramp(dtype=dtype_of(e), base=x(e.base), stride=x(e.stride), lanes=self._lanes(e)),
            "Broadcast": lambda e: ir.Broadcast(dtype=dtype_of(e), value=x(e.value), lanes=self._lanes(e)),
            "Shuffle": lambda e: ir.Shuffle(dtype=dtype_of(e), vectors=self.exprs(e.vectors), indices=self.exprs(e.indices)),
            "Let": lambda e: ir.LetExpr(dtype=dtype_of(e), var=self.var(e.var), value=x(e.value), body=x(e.body)),
            "Call": self._call,
        }

    def exprs(self, items: Any) -> tuple[ir.Expr, ...]:
        """Read each of ``items``."""
        return tuple(self.expr(i) for i in items)

    def var(self, v: Any) -> ir.Var:
        """Read a variable; the same variable gives the same object."""
        key = v.__chandle__()
        if key not in self._vars:
            pointee, scope = "", ""
            kind = v.type_annotation
            if type(kind).__name__ == "PointerType":
                scope = str(kind.storage_scope)
                pointee = str(getattr(kind.element_type, "dtype", "")) or "void"
            self._vars[key] = ir.Var(dtype=dtype_of(v), name=name_of(v), pointee=pointee, scope=scope)
            self._memo[key] = (v, self._vars[key])
        return self._vars[key]

    def buffer(self, b: Any) -> ir.Buffer:
        """Read a buffer; the same buffer gives the same object."""
        key = b.__chandle__()
        if key not in self._buffers:
            if len(b.axis_separators):
                raise not_supported(f"the axis separators of {b.name}", self.here)
            offset = self.expr(b.elem_offset) if b.elem_offset is not None else None
            self._buffers[key] = ir.Buffer(
                name=name_of(b),
                dtype=dtype_of(b),
                shape=self.exprs(b.shape),
                scope=str(b.scope()),
                data=self.var(b.data),
                strides=self.exprs(b.strides or ()),
                elem_offset=None if isinstance(offset, ir.Const) and offset.value == 0 else offset,
                align_bytes=int(b.data_alignment),
                offset_factor=int(b.offset_factor),
                loc=loc_of_span(b.span),
            )
            self._kept.append(b)
        return self._buffers[key]

    @cached_property
    def _kept(self) -> list[Any]:
        return []

    def _lanes(self, e: Any) -> int:
        lanes = e.lanes
        if not isinstance(lanes, int):
            lanes = getattr(lanes, "value", None)
        if lanes is None:
            raise not_supported("a vector of variable length", self.here)
        return int(lanes)

    def _load(self, e: Any) -> ir.Expr:
        if e.predicate is not None:
            raise not_supported(f"a predicated load of {e.buffer.name}", self.here)
        return ir.Load(dtype=dtype_of(e), buffer=self.buffer(e.buffer), indices=self.exprs(e.indices))

    def _buffer_region(self, e: Any) -> ir.Region:
        return ir.Region(
            dtype="handle",
            buffer=self.buffer(e.buffer),
            mins=self.exprs(r.min for r in e.region),
            extents=self.exprs(r.extent for r in e.region),
            access="rw",
        )

    def _call(self, e: Any) -> ir.Expr:
        op = e.op
        name = getattr(op, "name", None) or getattr(op, "name_hint", None)
        if name is None:
            raise not_supported(f"a call of {type(op).__name__}", self.here)
        if name == "tl.region":
            return self._region(e)
        return ir.Call(dtype=dtype_of(e), op=str(name), args=self.exprs(e.args), attrs=self.attrs(e.annotations, constants=True))

    def _region(self, e: Any) -> ir.Expr:
        load, access, *extents = e.args
        if type(load).__name__ != "BufferLoad" or len(extents) != len(load.indices):
            return ir.Call(dtype=dtype_of(e), op="tl.region", args=self.exprs(e.args))
        return ir.Region(
            dtype="handle",
            buffer=self.buffer(load.buffer),
            mins=self.exprs(load.indices),
            extents=self.exprs(extents),
            access=_ACCESS[int(access)],
        )

    # -------------------------------------------------------------------------------------------- attributes
    def attrs(self, items: Any, *, constants: bool = False) -> dict[str, ir.Attr]:
        """Read an annotation mapping. ``constants``: its integers are TVM constants (see :data:`CONSTANT_KEYS`)."""
        if not items:
            return {}
        return {str(k): self.attr(v, constant=constants or str(k) in CONSTANT_KEYS) for k, v in items.items()}

    def attr(self, v: Any, *, constant: bool = False) -> ir.Attr:
        """Read one attribute value.

        An integer is a plain int where its key says of which kind it is; the other kind is told apart, so that
        :mod:`.emit` gives back what was there.
        """
        if v is None or isinstance(v, str | float):
            return v if v is None or isinstance(v, float) else str(v)
        if isinstance(v, bool | int):
            return ir.AttrMap(items=(("raw", v),)) if constant else v
        name = type(v).__name__
        if name == "IntImm" and str(v.dtype) in ("int32", "bool") and constant:
            return bool(v.value) if str(v.dtype) == "bool" else int(v.value)
        if name == "StringImm" and constant:
            return str(v.value)
        if name == "Buffer":
            return self.buffer(v)
        if name in ("Layout", "Fragment", "PartialFragment"):
            return self.layout(v)
        if name in ("Array", "List", "list", "tuple"):
            return tuple(self.attr(i, constant=constant) for i in v)
        if name in ("Map", "Dict", "dict"):
            return ir.AttrMap(items=tuple((self._key(k), self.attr(i, constant=constant)) for k, i in v.items()))
        if name in OBJECTS:
            fields = tuple((f, self.attr(getattr(v, f))) for f in OBJECTS[name])
            return ir.AttrMap(items=(("type", name), *fields))
        if name == "CommReducer":
            return self._reducer(v)
        if name == "WSSyncKind":
            return str(getattr(v, "name", None) or v).rpartition(".")[2]
        if hasattr(v, "dtype"):
            return self.expr(v)
        raise not_supported(f"an annotation of type {name}", self.here)

    def _reducer(self, v: Any) -> ir.AttrMap:
        """``T.comm_reducer`` of two values by one operation: the operation and what changes nothing."""
        op = BINARY.get(type(v.result[0]).__name__, "") if len(v.result) == 1 else ""
        if not op or not (v.result[0].a.same_as(v.lhs[0]) and v.result[0].b.same_as(v.rhs[0])):
            raise not_supported("T.comm_reducer of anything but one operation on its two values", self.here)
        return ir.AttrMap(items=(("type", "CommReducer"), ("op", op), ("identity", self.expr(v.identity_element[0]))))

    def _key(self, k: Any) -> Any:
        return str(k) if isinstance(k, str) else self.var(k)

    def layout(self, v: Any) -> ir.IndexMap:
        """Read a TileLang layout or fragment."""
        shape = self.exprs(v.get_input_shape())
        forward = list(v.get_forward_vars())[-len(shape) :]  # the replication variable, if any, stands before them
        thread, replicate, copies = None, None, 1
        if type(v).__name__ != "Layout":
            thread = self.expr(v.thread)
            copies = int(v.replicate_size)
            replicate = self._placeholder(v.thread) if copies > 1 else None
        return ir.IndexMap(
            params=tuple(self.var(getattr(i, "var", i)) for i in forward),
            shape=shape,
            index=self.exprs(v.index),
            thread=thread,
            replicate=replicate,
            replicate_extent=copies,
            combine=int(getattr(v, "combine_size", 0) or 0) if type(v).__name__ == "PartialFragment" else 0,
        )

    def _placeholder(self, thread: Any) -> ir.Var | None:
        """The replication variable among those of a fragment's thread expression (TileLang calls it ``_rep``)."""
        from tvm.tirx.stmt_functor import post_order_visit

        found: list[Any] = []
        post_order_visit(thread, lambda n: found.append(n) if type(n).__name__ == "Var" and n.name == "_rep" else None)
        return self.var(found[0]) if found else None

"""The Program: TileLab's own intermediate representation, for tile-level and lowered device programs alike.

Plain data: frozen records that can be saved, sent, diffed, simulated without TileLang, edited and lowered again.
Nodes compare by identity; :func:`tilelab.serde.digest` compares by content; :func:`tilelab.verify.verify` is the
executable grammar.

Conventions:

* A ``dtype`` is TileLang's string (``"float16"``, ``"float8_e4m3fn"``, ``"int32"``, ``"bool"``, ``"handle"``), with
  lanes as in ``"float16x8"``.
* A ``Call`` names its operation by TVM's full name (``"tirx.exp"``, ``"tl.shfl_xor_sync"``). A tile operation
  (``tl.tileop.*``) is a :class:`Tile` statement and drops that prefix (``"copy"``, ``"gemm"``).
* Every statement carries ``loc``; ``None`` means that no user line is known.
* Attributes and annotations are mappings from strings to :data:`Attr` values; an integer is a plain ``int``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, dataclass_transform

C = TypeVar("C")


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(field,))
def node(cls: type[C]) -> type[C]:
    """Make ``cls`` a frozen, slotted, keyword-only record that compares by identity."""
    return dataclass(frozen=True, slots=True, kw_only=True, eq=False)(cls)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLoc:
    """Where a statement stands in the user's source: whole lines, 1-based; columns 0-based where known."""

    file: str
    line: int
    end_line: int = 0
    column: int = 0
    end_column: int = 0
    caller: SourceLoc | None = None  # the line that called the macro which holds this one


# ---------------------------------------------------------------------------------------------- expressions
@node
class Expr:
    """A value. ``dtype`` is that of the value (with lanes)."""

    dtype: str


@node
class Const(Expr):
    """A number or truth value; ``value`` is a Python int, float or bool, also for float8 and the like."""

    value: int | float | bool


@node
class Str(Expr):
    """A string argument of an intrinsic; ``dtype`` is ``"handle"``."""

    value: str


@node
class Var(Expr):
    """A scalar or pointer variable; identity is the object's. ``name`` need not be unique.

    A typed pointer (``dtype`` ``"handle"``) says what it points to: ``pointee`` (a dtype) and ``scope``.
    """

    name: str
    pointee: str = ""
    scope: str = ""


@node
class Bin(Expr):
    """``op``: add sub mul div mod floordiv floormod min max eq ne lt le gt ge and or.

    ``div`` and ``mod`` truncate towards zero on integers; ``floordiv`` and ``floormod`` round down.
    """

    op: str
    a: Expr
    b: Expr


@node
class Not(Expr):
    """Logical negation."""

    a: Expr


@node
class Cast(Expr):
    """``a`` converted to ``dtype``."""

    a: Expr


@node
class Select(Expr):
    """``a`` where ``cond`` else ``b``; both are evaluated (``tirx.if_then_else`` is a Call and is lazy)."""

    cond: Expr
    a: Expr
    b: Expr


@node
class Load(Expr):
    """One element (or a vector, when the last index is a Ramp) of ``buffer``."""

    buffer: Buffer
    indices: tuple[Expr, ...]


@node
class Region(Expr):
    """A box of ``buffer``: element ``mins`` and ``extents`` along each axis. ``access``: ``"r"``, ``"w"``, ``"rw"``."""

    buffer: Buffer
    mins: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    access: str


@node
class Call(Expr):
    """An intrinsic or function: ``op`` is TVM's full name (``"tirx.exp"``), ``args`` its arguments."""

    op: str
    args: tuple[Expr, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict)


@node
class Ramp(Expr):
    """``base, base + stride, …``: ``lanes`` values."""

    base: Expr
    stride: Expr
    lanes: int


@node
class Broadcast(Expr):
    """``value`` repeated ``lanes`` times."""

    value: Expr
    lanes: int


@node
class Shuffle(Expr):
    """Lanes ``indices`` of the concatenation of ``vectors``."""

    vectors: tuple[Expr, ...]
    indices: tuple[Expr, ...]


@node
class LetExpr(Expr):
    """``body`` with ``var`` bound to ``value``."""

    var: Var
    value: Expr
    body: Expr


# -------------------------------------------------------------------------------------------------- buffers
@node
class Buffer:
    """A typed, shaped view of the storage that ``data`` points to; buffers with the same ``data`` alias.

    ``scope``: global, shared, shared.dyn, local, local.fragment, local.var, shared.barrier, …
    ``shape`` and ``strides`` are in elements; empty ``strides`` means C order. ``elem_offset`` is in elements.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    scope: str
    data: Var
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr | None = None
    align_bytes: int = 64
    offset_factor: int = 1
    loc: SourceLoc | None = None


@node
class IndexMap:
    """A layout written as expressions: ``params`` range over ``shape``; ``index`` are the outputs.

    A fragment also has ``thread`` (and ``replicate``, a variable over ``replicate_extent`` copies); there ``index``
    is the position within the thread's registers. ``combine`` (a reducer's partial fragment) says how many of the
    copies are addends; 0 for every other layout.
    """

    params: tuple[Var, ...]
    shape: tuple[Expr, ...]
    index: tuple[Expr, ...]
    thread: Expr | None = None
    replicate: Var | None = None
    replicate_extent: int = 1
    combine: int = 0


Attr: TypeAlias = "bool | int | float | str | Expr | Buffer | IndexMap | tuple[Attr, ...] | AttrMap | None"


@node
class AttrMap:
    """A nested mapping among attributes, as pairs, since keys may be variables (``layout_map``) or strings."""

    items: tuple[tuple[Any, Attr], ...]


# ----------------------------------------------------------------------------------------------- statements
@node
class Stmt:
    """Something that is done."""

    loc: SourceLoc | None = None


Body: TypeAlias = tuple[Stmt, ...]


@node
class Store(Stmt):
    """``buffer[indices] = value``, where ``predicate`` if given."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    predicate: Expr | None = None


@node
class Eval(Stmt):
    """An expression evaluated for its effect: nearly always a Call."""

    value: Expr


@node
class Tile(Stmt):
    """A tile operation: ``op`` of :data:`tilelab.ops.TILE_OPS`, whose spec names the positions of ``args``."""

    op: str
    args: tuple[Expr, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict)


@node
class Bind(Stmt):
    """``var = value`` for the rest of the enclosing body."""

    var: Var
    value: Expr


@node
class For(Stmt):
    """``for var in range(min, min + extent, step)``. ``kind``: serial parallel vectorized unrolled thread.

    A pipelined loop is serial with ``num_stages`` (or ``tl_pipeline_order`` and ``tl_pipeline_stage``) among
    ``attrs``. A thread loop is bound to the thread axis ``attrs["thread"]``, e.g. ``"threadIdx.x"``.
    """

    var: Var
    min: Expr
    extent: Expr
    kind: str
    body: Body
    step: Expr | None = None
    attrs: Mapping[str, Attr] = field(default_factory=dict)


@node
class While(Stmt):
    """``while cond``."""

    cond: Expr
    body: Body


@node
class If(Stmt):
    """``if cond: then else: orelse``."""

    cond: Expr
    then: Body
    orelse: Body = ()


@node
class Alloc(Stmt):
    """Storage of ``buffer`` begins here, for the rest of the enclosing body (device programs)."""

    buffer: Buffer
    attrs: Mapping[str, Attr] = field(default_factory=dict)


@node
class Declare(Stmt):
    """``buffer`` names storage that exists already (a view)."""

    buffer: Buffer


@node
class Block(Stmt):
    """A named block with its own ``allocs`` (tile programs) and ``attrs`` (``layout_map``, ``safe_value_map``, …)."""

    name: str
    body: Body
    allocs: tuple[Buffer, ...] = ()
    attrs: Mapping[str, Attr] = field(default_factory=dict)


@node
class Attribute(Stmt):
    """TVM's AttrStmt: ``key`` of ``target`` is ``value`` within ``body`` (e.g. ``threadblock_swizzle_pattern``)."""

    key: str
    target: Attr
    value: Expr
    body: Body


@node
class Assert(Stmt):
    """A host assertion; ``kind`` names the Python exception."""

    cond: Expr
    message: str
    kind: str = "AssertionError"


@node
class Launch(Stmt):
    """One kernel launch: ``body`` runs for each block of ``grid`` and (device programs) each thread of ``threads``.

    ``block_vars`` and ``thread_vars`` have one to three variables, x first; ``grid`` and ``threads`` their extents.
    ``attrs``: ``threads_defaulted`` where the kernel names no thread count, ``kernel`` (the device function's name),
    ``cluster_dims`` and the like.
    """

    block_vars: tuple[Var, ...]
    grid: tuple[Expr, ...]
    thread_vars: tuple[Var, ...]
    threads: tuple[Expr, ...]
    body: Body
    attrs: Mapping[str, Attr] = field(default_factory=dict)


# ------------------------------------------------------------------------------------------------- programs
@node
class Param:
    """A parameter of a Program: a tensor (``buffer``) or a scalar or pointer (``var``)."""

    name: str
    var: Var
    buffer: Buffer | None = None


@node
class Program:
    """A function: its parameters and statements (host statements and one or more :class:`Launch`).

    ``level``: ``"tile"`` or ``"thread"``. ``outputs`` are indices into ``params`` of the tensors that the kernel
    returns (allocated by the callee). ``sources`` maps file names in ``loc`` to their text as captured.
    """

    name: str
    level: str
    params: tuple[Param, ...]
    body: Body
    outputs: tuple[int, ...] = ()
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def dynamic_sizes(program: Program) -> dict[str, Var]:
    """Return the symbolic sizes of the parameters by name: variables of their shapes and strides that no parameter is."""
    scalars = {p.var for p in program.params}
    found: dict[str, Var] = {}
    for p in program.params:
        for e in (*p.buffer.shape, *p.buffer.strides) if p.buffer else ():
            for n in walk(e):
                if isinstance(n, Var) and n not in scalars:
                    found.setdefault(n.name, n)
    return found


def children(n: Expr | Stmt) -> tuple[Any, ...]:
    """Return the expressions, buffers and statements directly below ``n``, in the order of evaluation."""
    out: list[Any] = []
    for name in n.__dataclass_fields__:
        value = getattr(n, name)
        if isinstance(value, _NODES):
            out.append(value)
        elif isinstance(value, tuple):
            out += [v for v in value if isinstance(v, _NODES)]
    return tuple(out)


_NODES = (Expr, Stmt)


def walk(n: Program | Expr | Stmt | Body) -> Any:
    """Yield ``n`` and everything below it, parents first."""
    stack: list[Any] = list(reversed(n.body if isinstance(n, Program) else n if isinstance(n, tuple) else (n,)))
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))

"""Layouts written by hand: from a Python function, a CuTe ``shape:stride``, or by the name of a tensor-core operand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilelab import ir
from tilelab.errors import InputError
from tilelab.layout import Layout, bits_of, shape_text


def make_shared(shape: Sequence[int], fn: Callable[..., Any], *, dtype: str = "float16", name: str = "layout") -> Layout:
    """Return the shared-memory layout that sends element ``(i, j, …)`` to address ``fn(i, j, …)``, in elements.

    Args:
        shape: Logical shape in elements.
        fn: Integer arithmetic on its arguments (``+ - * // % ^ & | << >>``), giving one value or a tuple (row-major).
        dtype: Element type.
        name: What to call it.
    """
    params = _params(len(shape), fn)
    out = _call(fn, shape, params, ())
    index = tuple(_expr(o) for o in (out if isinstance(out, tuple | list) else (out,)))
    return Layout(name=name, kind="shared", shape=tuple(shape), dtype=dtype, scope="shared", map=_map(params, shape, index))


def make_fragment(
    shape: Sequence[int], fn: Callable[..., Any], *, threads: int = 0, replicate: int = 1, dtype: str = "float32", name: str = "layout"
) -> Layout:
    """Return the fragment layout that sends element ``(i, j, …)`` to ``(thread, register) = fn(i, j, …[, rep])``.

    Args:
        shape: Logical shape in elements.
        fn: Integer arithmetic giving a pair; it takes the replica as its last argument if ``replicate`` > 1.
        threads: Threads of the block. Default: as many as the function reaches.
        replicate: Copies of each element.
        dtype: Element type.
        name: What to call it.
    """
    params = _params(len(shape), fn)
    rep = ir.Var(dtype="int32", name="rep") if replicate > 1 else None
    out = _call(fn, shape, params, (rep,) if rep else ())
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise InputError("a fragment's function gives a pair (thread, register)", fix="lambda i, j: (thread, register)")
    registers = out[1] if isinstance(out[1], tuple | list) else (out[1],)
    index_map = ir.IndexMap(params=params, shape=_shape(shape), index=tuple(_expr(r) for r in registers), thread=_expr(out[0]),
                            replicate=rep, replicate_extent=replicate)  # fmt: skip
    reach = Layout(name=name, kind="fragment", shape=tuple(shape), dtype=dtype, scope="local.fragment", map=index_map)
    count = threads or int(reach.threads_of().max()) + 1
    return Layout(name=name, kind="fragment", shape=tuple(shape), dtype=dtype, scope="local.fragment", map=index_map, threads=count)


def row_major(shape: Sequence[int], *, dtype: str = "float16", name: str = "row-major") -> Layout:
    """Return the layout that a shared buffer has when nothing else is said."""

    def address(*at: Any) -> Any:
        flat: Any = 0
        for i, n in zip(at, shape, strict=True):
            flat = flat * n + i
        return flat

    return make_shared(shape, address, dtype=dtype, name=name)


def swizzled(shape: Sequence[int], *, dtype: str = "float16", span_bytes: int = 128, name: str = "swizzled") -> Layout:
    """Return the XOR-swizzled layout of a 2-D tile, in columns of ``span_bytes`` (128, 64 or 32) as TMA and wgmma use.

    Within each column of ``span_bytes``, the 16-byte chunk number is XORed with the number of the 128-byte line.
    """
    rows, columns = shape
    per_chunk, per_span = 128 // bits_of(dtype), span_bytes * 8 // bits_of(dtype)
    if span_bytes not in (32, 64, 128) or columns % per_span:
        raise InputError(
            f"a {span_bytes}-byte swizzle needs 32, 64 or 128 bytes and rows of whole spans; this row has {columns} elements of {dtype}"
        )
    chunks, lines = span_bytes // 16, 128 // span_bytes

    def address(i: Any, j: Any) -> Any:
        chunk = (j % per_span // per_chunk) ^ (i // lines % chunks)
        return j // per_span * (rows * per_span) + i * per_span + chunk * per_chunk + j % per_chunk

    return make_shared(shape, address, dtype=dtype, name=name)


# --------------------------------------------------------------------------------------------------- atoms
@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """One operand of one tensor-core instruction. ``order`` names the axes of the tile."""

    shape: tuple[int, int]
    threads: int
    dtype: str
    order: str
    fn: Callable[[Any, Any], tuple[Any, Any]]


#: PTX ISA, "Matrix fragments for mma.m16n8k16", "ldmatrix" and "Register fragments for wgmma.mma_async.m64nNk16".
ATOMS: Mapping[str, Atom] = {
    "mma.m16n8k16.A": Atom(shape=(16, 16), threads=32, dtype="float16", order="m, k",
                           fn=lambda i, j: (i % 8 * 4 + j % 8 // 2, j % 2 + i // 8 * 2 + j // 8 * 4)),
    "mma.m16n8k16.B": Atom(shape=(16, 8), threads=32, dtype="float16", order="k, n",
                           fn=lambda i, j: (j * 4 + i % 8 // 2, i % 2 + i // 8 * 2)),
    "mma.m16n8k16.D": Atom(shape=(16, 8), threads=32, dtype="float32", order="m, n",
                           fn=lambda i, j: (i % 8 * 4 + j // 2, j % 2 + i // 8 * 2)),
    "wgmma.m64n8k16.A": Atom(shape=(64, 16), threads=128, dtype="float16", order="m, k",
                             fn=lambda i, j: (i // 16 * 32 + i % 8 * 4 + j % 8 // 2, j % 2 + i % 16 // 8 * 2 + j // 8 * 4)),
    "wgmma.m64n8k16.D": Atom(shape=(64, 8), threads=128, dtype="float32", order="m, n",
                             fn=lambda i, j: (i // 16 * 32 + i % 8 * 4 + j // 2, j % 2 + i % 16 // 8 * 2)),
    "ldmatrix.m8n8": Atom(shape=(8, 8), threads=32, dtype="float16", order="row, column", fn=lambda i, j: (i * 4 + j // 2, j % 2)),
    "ldmatrix.m8n8.trans": Atom(shape=(8, 8), threads=32, dtype="float16", order="row, column", fn=lambda i, j: (j * 4 + i // 2, i % 2)),
}  # fmt: skip


def atom(name: str) -> Layout:
    """Return the layout of a tensor-core operand by its name in :data:`ATOMS`.

    Raises:
        InputError: There is no such name.
    """
    if name not in ATOMS:
        raise InputError(f"no tensor-core operand is called {name!r}", fix=f"there are {', '.join(ATOMS)}")
    a = ATOMS[name]
    return make_fragment(a.shape, a.fn, threads=a.threads, dtype=a.dtype, name=name)


# ---------------------------------------------------------------------------------------------------- CuTe
def cute_shared(text: str, *, dtype: str = "float16", name: str = "") -> Layout:
    """Return the address layout of CuTe's ``shape:stride``, e.g. ``"(8,(2,4)):(4,(1,32))"``.

    Each top-level mode is one axis; a nested mode counts its first part fastest (colexicographic), as in CuTe.
    """
    modes = [list(_leaves(s, d)) for s, d in _modes(text)]
    shape = tuple(_product(n for n, _ in mode) for mode in modes)

    def address(*at: Any) -> Any:
        total: Any = 0
        for i, mode in zip(at, modes, strict=True):
            for digit, (_, stride) in zip(_digits(i, mode), mode, strict=True):
                total = total + digit * stride
        return total

    return make_shared(shape, address, dtype=dtype, name=name or text)


def cute_fragment(text: str, shape: Sequence[int], *, dtype: str = "float32", name: str = "") -> Layout:
    """Return the fragment of CuTe's thread-value layout ``((thread), (value)):(…)`` over a tile of ``shape``.

    A thread-value layout sends (thread, value) to an element, counted down the columns as in CuTe; it is inverted here.
    Threads with stride 0 hold copies.

    Raises:
        InputError: It does not cover the tile, each element once (but for copies).
    """
    pairs = _modes(text)
    if len(pairs) != 2:
        raise InputError(f"{text} has {len(pairs)} modes; a thread-value layout has two", fix='e.g. "((4,8),(2,2)):((32,1),(16,8))"')
    digits: list[tuple[int, int, int, int]] = []  # stride in the tile, extent, which (0 thread, 1 value), stride there
    copies: list[tuple[int, int]] = []
    for which, (s, d) in enumerate(pairs):
        weight = 1
        for extent, stride in _leaves(s, d):
            if stride == 0 and extent > 1 and which == 0:
                copies.append((extent, weight))
            elif extent > 1:
                digits.append((stride, extent, which, weight))
            weight *= extent
    digits.sort()
    reach = 1
    for stride, extent, _, _ in digits:
        if stride != reach:
            raise InputError(
                f"{text} does not reach every element of {shape_text(shape)} exactly once: a stride of {stride} where {reach} is next"
            )
        reach *= extent
    if reach != _product(shape):
        raise InputError(f"{text} reaches {reach} elements, but {shape_text(shape)} has {_product(shape)}")

    def place(*at: Any) -> tuple[Any, Any]:
        element: Any = 0
        for i, n in zip(reversed(at[: len(shape)]), reversed(shape), strict=True):
            element = element * n + i
        out: list[Any] = [0, 0]
        for stride, extent, which, weight in digits:
            out[which] = out[which] + element // stride % extent * weight
        rest: Any = at[-1]
        for extent, weight in copies:
            out[0] = out[0] + rest % extent * weight
            rest = rest // extent
        return out[0], out[1]

    threads = _product(n for n, _ in _leaves(*pairs[0]))
    return make_fragment(shape, place, threads=threads, replicate=_product(n for n, _ in copies), dtype=dtype, name=name or text)


def _modes(text: str) -> list[tuple[Any, Any]]:
    if text.count(":") != 1 or not re.fullmatch(r"[\d\s(),:]+", text):
        raise InputError(f"{text!r} is not a CuTe layout", fix='write shape:stride, e.g. "(8,8):(8,1)"')
    shape, stride = (_parse(part) for part in text.split(":"))
    if isinstance(shape, int) or isinstance(stride, int):
        shape, stride = (shape,), (stride,)
    if len(shape) != len(stride):
        raise InputError(f"{text!r}: the shape has {len(shape)} modes and the stride {len(stride)}")
    return list(zip(shape, stride, strict=True))


def _parse(text: str) -> Any:
    tokens = re.findall(r"\d+|[(),]", text)

    def item(at: int) -> tuple[Any, int]:
        if at < len(tokens) and tokens[at] == "(":
            items, at = [], at + 1
            while at < len(tokens) and tokens[at] != ")":
                value, at = item(at)
                items.append(value)
                at += at < len(tokens) and tokens[at] == ","
            return tuple(items), at + 1
        if at >= len(tokens) or not tokens[at].isdigit():
            raise InputError(f"{text!r} is not a nest of numbers", fix='e.g. "((4,8),2)"')
        return int(tokens[at]), at + 1

    value, end = item(0)
    if end != len(tokens):
        raise InputError(f"{text!r} has something after its end", fix="check the parentheses")
    return value


def _leaves(shape: Any, stride: Any) -> Iterator[tuple[int, int]]:
    if isinstance(shape, int) and isinstance(stride, int):
        yield shape, stride
    elif isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride):
        for s, d in zip(shape, stride, strict=True):
            yield from _leaves(s, d)
    else:
        raise InputError(f"shape {shape} and stride {stride} are not nested alike")


def _digits(i: Any, mode: Sequence[tuple[int, int]]) -> Iterator[Any]:
    for k, (extent, _) in enumerate(mode):
        yield i if len(mode) == 1 else (i % extent if k < len(mode) - 1 else i)
        i = i // extent


def _product(numbers: Any) -> int:
    total = 1
    for n in numbers:
        total *= int(n)
    return total


# ------------------------------------------------------------------------------------------ symbolic values
class Sym:
    """An integer that remembers how it was computed: running a function on these gives its expression."""

    __slots__ = ("expr",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expr: ir.Expr) -> None:
        self.expr = expr

    def __bool__(self) -> bool:
        raise InputError("a layout function may not branch on its arguments", fix="use arithmetic: //, %, ^ and comparisons as 0 or 1")


def _bin(op: str, *, swap: bool = False) -> Callable[[Sym, Any], Sym]:
    def method(self: Sym, other: Any) -> Sym:
        a, b = (_expr(other), self.expr) if swap else (self.expr, _expr(other))
        if op.startswith("tirx."):
            return Sym(ir.Call(dtype="int32", op=op, args=(a, b)))
        return Sym(_fold(ir.Bin(dtype="int32", op=op, a=a, b=b)))

    return method


def _fold(e: ir.Bin) -> ir.Expr:
    """Drop what does nothing: ``x + 0``, ``x * 1``, ``x // 1``, ``x * 0``."""
    a, b = (x.value if isinstance(x, ir.Const) else None for x in (e.a, e.b))
    zero = ir.Const(dtype="int32", value=0)
    if (e.op == "add" and b == 0) or (e.op in ("mul", "floordiv") and b == 1):
        return e.a
    if (e.op == "add" and a == 0) or (e.op == "mul" and a == 1):
        return e.b
    if (e.op == "mul" and 0 in (a, b)) or (e.op in ("floordiv", "floormod") and a == 0) or (e.op == "floormod" and b == 1):
        return zero
    return e


_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "floordiv": "floordiv", "mod": "floormod", "xor": "tirx.bitwise_xor",
              "and": "tirx.bitwise_and", "or": "tirx.bitwise_or", "lshift": "tirx.shift_left", "rshift": "tirx.shift_right"}  # fmt: skip
for _name, _op in _OPERATORS.items():
    setattr(Sym, f"__{_name}__", _bin(_op))
    setattr(Sym, f"__r{_name}__", _bin(_op, swap=True))
for _op in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Sym, f"__{_op}__", _bin(_op))


def _expr(value: Any) -> ir.Expr:
    if isinstance(value, Sym):
        return value.expr
    if isinstance(value, int):
        return ir.Const(dtype="int32", value=value)
    raise InputError(f"a layout function gave {value!r}, which is not an integer")


def _params(rank: int, fn: Callable[..., Any]) -> tuple[ir.Var, ...]:
    code = getattr(fn, "__code__", None)
    names = list(code.co_varnames[: code.co_argcount]) if code else []
    if len(names) < rank:
        names = ["i", "j", "k", "l"][:rank] if rank <= 4 else [f"i{n}" for n in range(rank)]
    return tuple(ir.Var(dtype="int32", name=n) for n in names[:rank])


def _call(fn: Callable[..., Any], shape: Sequence[int], params: Sequence[ir.Var], more: Sequence[ir.Var]) -> Any:
    try:
        return fn(*(Sym(v) for v in (*params, *more)))
    except TypeError as e:
        raise InputError(f"the layout function does not fit {len(shape)} axes{' and a replica' if more else ''}: {e}") from e


def _shape(shape: Sequence[int]) -> tuple[ir.Expr, ...]:
    return tuple(ir.Const(dtype="int32", value=int(n)) for n in shape)


def _map(params: tuple[ir.Var, ...], shape: Sequence[int], index: tuple[ir.Expr, ...]) -> ir.IndexMap:
    return ir.IndexMap(params=params, shape=_shape(shape), index=index)

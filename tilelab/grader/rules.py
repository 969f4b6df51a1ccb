"""Rules about a Program itself: its signature, the operations it may and must use, and how often it launches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilelab import ir
from tilelab.analysis.expr import const_int, dtype_bits
from tilelab.grader.spec import Spec, Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Wiring:
    """How a Program's parameters and the puzzle's tensors belong together.

    Attributes:
        inputs: Parameter name → the puzzle's argument.
        outputs: The puzzle's written tensors → the key in ``Trace.outputs``.
        params: The puzzle's written tensors → the parameter that holds them.
    """

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    params: Mapping[str, ir.Param]


class Unfit(Exception):
    """The Program does not have the puzzle's signature; the message says both sides."""


def wire_up(program: ir.Program, spec: Spec, sizes: Mapping[str, int]) -> Wiring:
    """Match parameters to the puzzle's tensors by order, checking dtype and shape.

    What the puzzle has returned may also be passed in, after the arguments, and written in place.

    Raises:
        Unfit: A tensor is missing, or has another shape or dtype.
    """
    given = [p for i, p in enumerate(program.params) if i not in program.outputs]
    returned = [program.params[i] for i in program.outputs]
    names = [f"out{i}" for i in range(len(returned))]
    if not returned and len(given) == len(spec.arguments) + len(spec.returns):
        given, returned = given[: len(spec.arguments)], given[len(spec.arguments) :]
        names = [p.name for p in returned]
    for what, have, want in (("takes", given, spec.arguments), ("returns", returned, spec.returns)):
        if len(have) != len(want):
            raise Unfit(f"{spec.entry} {what} {_list(have)}; it should have {_wanted(want, sizes)}")
        for param, tensor in zip(have, want, strict=True):
            _check(param, tensor, sizes, spec.entry)
    written = [(t, p) for t, p in zip(spec.arguments, given, strict=True) if t.role != "in"]
    outputs = {t.name: p.name for t, p in written} | {t.name: n for t, n in zip(spec.returns, names, strict=True)}
    params = {t.name: p for t, p in written} | {t.name: p for t, p in zip(spec.returns, returned, strict=True)}
    return Wiring(inputs={p.name: t.name for t, p in zip(spec.arguments, given, strict=True)}, outputs=outputs, params=params)


def known_sizes(program: ir.Program, spec: Spec, sizes: Mapping[str, int]) -> dict[ir.Var, int]:
    """Return what the Program's symbolic sizes (``T.dynamic``) are, from the shapes of its parameters.

    Raises:
        Unfit: The Program does not have the puzzle's signature.
    """
    wiring = wire_up(program, spec, sizes)
    shapes = {t.name: t.extents(sizes) for t in (*spec.arguments, *spec.returns)}
    params = {wiring.inputs[p.name]: p for p in program.params if p.name in wiring.inputs} | dict(wiring.params)
    pairs = ((p.buffer.shape, shapes[name]) for name, p in params.items() if p.buffer is not None)
    return {e: size for extents, known in pairs for e, size in zip(extents, known, strict=True) if isinstance(e, ir.Var)}


def broken_rules(program: ir.Program, spec: Spec) -> list[str]:
    """Return a sentence for each rule on operations and launches that the Program breaks."""
    used = operations(program)
    out = [f"{spec.entry} uses {name}, which this puzzle does not allow" for name in sorted(spec.forbidden & used)]
    out += [f"{spec.entry} does not use {name}, which this puzzle is about" for name in sorted(spec.required - used)]
    launches = sum(isinstance(n, ir.Launch) for n in ir.walk(program))
    if launches > spec.launches:
        out.append(f"{spec.entry} launches {launches} kernels; this puzzle allows {spec.launches}")
    return out + list(_too_large(program))


#: Scope → bytes that one buffer may have; no GPU has more registers or shared memory, and a workspace needs no more.
_MOST_BYTES: Mapping[str, int] = {"global": 1 << 30}
_MOST_BYTES_IN_A_BLOCK = 16 << 20
_MOST_BLOCKS = 4 << 20


def _too_large(program: ir.Program) -> Iterator[str]:
    buffers = [
        b for n in ir.walk(program) for b in (n.allocs if isinstance(n, ir.Block) else (n.buffer,) if isinstance(n, ir.Alloc) else ())
    ]
    for b in buffers:
        size = dtype_bits(b.dtype) // 8 or 1
        for extent in b.shape:
            size *= max(const_int(extent) or 1, 1)
        if size > _MOST_BYTES.get(b.scope, _MOST_BYTES_IN_A_BLOCK):
            yield f"{b.name} has {size:,} bytes, more than any GPU has for {b.scope}"
    for launch in ir.walk(program):
        if isinstance(launch, ir.Launch):
            blocks = 1
            for extent in launch.grid:
                blocks *= max(const_int(extent) or 1, 1)
            if blocks > _MOST_BLOCKS:
                yield f"the grid has {blocks:,} blocks; {_MOST_BLOCKS:,} are more than enough here"


def operations(program: ir.Program) -> set[str]:
    """Return the operations of a Program: tile operations by name (``copy``), calls by full and last name (``tirx.exp``, ``exp``)."""
    out: set[str] = set()
    for n in ir.walk(program):
        if isinstance(n, ir.Tile):
            out.add(n.op)
        elif isinstance(n, ir.Call):
            out |= {n.op, n.op.rsplit(".", 1)[-1]}
    return out


def _check(param: ir.Param, tensor: Tensor, sizes: Mapping[str, int], entry: str) -> None:
    want = tensor.extents(sizes)
    if param.buffer is None:
        raise Unfit(f"{entry}: {param.name} is a {param.var.dtype}; it should be a tensor {_text(tensor, sizes)}")
    shape = tuple(e.value if isinstance(e, ir.Const) else None for e in param.buffer.shape)
    fits = len(shape) == len(want) and all(s is None or s == w for s, w in zip(shape, want, strict=True))
    if not fits or param.buffer.dtype != tensor.dtype:
        have = f"{_shape(tuple('?' if s is None else s for s in shape))} {param.buffer.dtype}"
        raise Unfit(f"{entry}: {param.name} is {have}; it should be {_shape(want)} {tensor.dtype}")


def _shape(shape: tuple[object, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _text(t: Tensor, sizes: Mapping[str, int]) -> str:
    return f"{t.name} {_shape(t.extents(sizes))} {t.dtype}"


def _list(params: list[ir.Param]) -> str:
    return ", ".join(p.name for p in params) or "nothing"


def _wanted(tensors: tuple[Tensor, ...], sizes: Mapping[str, int]) -> str:
    return ", ".join(_text(t, sizes) for t in tensors) or "nothing"

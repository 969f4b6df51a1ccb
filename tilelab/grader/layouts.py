"""Layout puzzles: a function of the sizes returns a layout, which is held against the owner map and the accesses of ``oracle.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.errors import InputError
from tilelab.grader import oracle
from tilelab.grader.compare import Mismatch
from tilelab.grader.requests import shared_requests
from tilelab.grader.rules import Unfit
from tilelab.grader.spec import Spec
from tilelab.layout import Layout, shape_text

Ints = NDArray[np.int64]
_MAP = "layout_map"
_MOST_ELEMENTS = 1 << 24
_MOST_ADDRESS = 1 << 20  # elements: more than any shared memory has


def wrap(name: str, index_map: ir.IndexMap) -> ir.Program:
    """Return a Program that holds nothing but a layout, for the way from the learner's process to the judge."""
    buffer = ir.Var(dtype="handle", name="layout")
    body = ir.Block(name="layout", body=(), attrs={_MAP: ir.AttrMap(items=((buffer, index_map),))})
    return ir.Program(name=name, level="tile", params=(), body=(body,))


def layout_of(program: ir.Program, spec: Spec, sizes: Mapping[str, int]) -> Layout:
    """Take the layout out of a Program that :func:`wrap` made.

    Raises:
        Unfit: There is none, or it is of another kind or shape than the puzzle asks for.
    """
    goal = spec.layout
    assert goal is not None
    found = [v for s in program.body if isinstance(s, ir.Block) for v in _maps(s)]
    if len(found) != 1:
        raise Unfit(f"{spec.entry} returns no layout; return a T.Layout or a T.Fragment")
    index_map = found[0]
    kind = "shared" if index_map.thread is None else "fragment"
    if kind != goal.kind:
        raise Unfit(f"{spec.entry} returns {_KINDS[kind]}; it should be {_KINDS[goal.kind]}")
    shape = tuple(int(e.value) if isinstance(e, ir.Const) else -1 for e in index_map.shape)
    want = goal.extents(sizes)
    if shape != want:
        raise Unfit(f"{spec.entry} returns a layout of {shape_text(shape)}; it should be {shape_text(want)}")
    if not 0 < int(np.prod(want)) * index_map.replicate_extent <= _MOST_ELEMENTS or index_map.replicate_extent > 1024:
        raise Unfit(f"{spec.entry} returns a layout of {index_map.replicate_extent} copies; no block has so many threads")
    layout = Layout(name=spec.entry, kind=kind, shape=want, dtype=goal.dtype, scope=_SCOPES[kind], map=index_map, threads=goal.threads)
    try:
        reach = layout.registers() if kind == "fragment" else layout.addresses()
        if kind == "fragment":
            layout.threads_of()
    except (InputError, ZeroDivisionError, OverflowError, ValueError) as e:
        raise Unfit(f"{spec.entry}'s layout cannot be evaluated: {e}") from None
    if int(np.abs(reach).max(initial=0)) > _MOST_ADDRESS:
        raise Unfit(f"{spec.entry} sends elements to place {int(np.abs(reach).max()):,}; no block has so much room")
    return layout


_KINDS = {"shared": "a layout of shared memory (T.Layout)", "fragment": "a fragment (T.Fragment)"}
_SCOPES = {"shared": "shared", "fragment": "local.fragment"}


def _maps(block: ir.Block) -> list[ir.IndexMap]:
    held = block.attrs.get(_MAP)
    return [v for _, v in held.items if isinstance(v, ir.IndexMap)] if isinstance(held, ir.AttrMap) else []


def difference(layout: Layout, spec: Spec, sizes: Mapping[str, int]) -> Mismatch | None:
    """Return the first element that is elsewhere than the oracle says, or None."""
    functions = oracle.load(spec.folder / "oracle.py")
    want = oracle.call(functions["oracle"], {}, sizes) if "oracle" in functions else None
    if want is None:
        return None
    if layout.kind == "fragment":
        places = want if isinstance(want, tuple) else (want, None)
        have: list[tuple[str, Ints]] = [("thread", layout.threads_of()), ("register", layout.registers())]
    else:
        places, have = (want,), [("address", layout.addresses()[..., None])]
    for (name, got), expected in zip(have, places, strict=False):
        if expected is None:
            continue
        right = np.broadcast_to(np.asarray(expected, np.int64).reshape(*layout.shape, -1), got.shape)
        wrong = (got != right).any(axis=-1)
        if wrong.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            return Mismatch(output=name, index=index, expected=int(right[index][0]), got=int(got[index][0]),
                            wrong=int(wrong.sum()), total=wrong.size, where=wrong)  # fmt: skip
    return None


def figures(program: ir.Program, spec: Spec) -> dict[str, float]:
    """Return the figures of a layout at the counted sizes: bytes or registers, and wavefronts of the oracle's accesses."""
    sizes = spec.count_sizes
    layout = layout_of(program, spec, sizes)
    if layout.kind == "fragment":
        return {"registers": int(layout.registers().max()) + 1, "threads": int(layout.threads_of().max()) + 1}
    address, size = layout.addresses(), layout.bits / 8
    out: dict[str, float] = {"smem_bytes": (int(address.max()) + 1) * size}
    functions = oracle.load(spec.folder / "oracle.py")
    if "accesses" not in functions:
        return out
    widths = oracle.call(functions["width"], {}, sizes) if "width" in functions else {}
    passes = least = 0
    for name, coordinates in oracle.call(functions["accesses"], {}, sizes).items():
        took, fewest = _requests(address, np.asarray(coordinates), int(widths.get(name, 1)), size)
        passes, least = passes + took, least + fewest
    return {**out, "wavefronts": passes, "excess_wavefronts": passes - least}


def _requests(address: Ints, coordinates: Ints, width: int, size: float) -> tuple[int, int]:
    """Passes of the requests, and the fewest; a vector whose elements do not lie side by side is taken element by element."""
    at = tuple(np.moveaxis(coordinates, -1, 0))
    rows = [address[(*at[:-1], at[-1] + k)] for k in range(width)]
    whole = width > 1 and all(np.array_equal(r, rows[0] + k) for k, r in enumerate(rows)) and not (rows[0] % width).any()
    _, least = shared_requests((rows[0] * size).astype(np.int64), int(width * size))
    if whole or width == 1:
        passes, _ = shared_requests((rows[0] * size).astype(np.int64), max(1, int(width * size)))
        return int(passes.sum()), int(least.sum())
    split = [shared_requests((r * size).astype(np.int64), max(1, int(size)))[0].sum() for r in rows]
    return int(sum(split)), int(least.sum())


def index_map_of(value: Any) -> ir.IndexMap | None:
    """Return the map of what a learner's function returned: TileLang's layout, or TileLab's; None for anything else."""
    if isinstance(value, Layout):
        return value.map
    if any(c.__module__.startswith("tilelang.layout") for c in type(value).__mro__):
        from tilelab.compiler.reader import Reader

        return Reader().layout(value)
    return None

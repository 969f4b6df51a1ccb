"""The layout view: which thread and register owns an element, or where in shared memory, in which bank, it lies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import FunctionType
from typing import Any, cast

import numpy as np

from tilelab import ir, layout_make
from tilelab.analysis import banks
from tilelab.artifact import Artifact
from tilelab.errors import InputError
from tilelab.finding import KernelRefused
from tilelab.layout import BANK_BYTES, Layout, shape_text
from tilelab.trace import Trace
from tilelab.views import layout_facts
from tilelab.views.conflict_view import conflict
from tilelab.views.formula import formula
from tilelab.views.layout_through import moved, pairs_of
from tilelab.views.layout_values import frames_of
from tilelab.views.schema import LayoutFrame, LayoutRecord
from tilelab.views.view import View

_MOST = 1 << 24  # elements × copies that one view may hold


def layout(
    source: Any,
    buffer: str | None = None,
    *,
    target: str = "sm_80",
    consts: Mapping[str, Any] | None = None,
    shape: Sequence[int] | None = None,
    kind: str = "shared",
    dtype: str = "float16",
    threads: int = 0,
    replicate: int = 1,
    values: Any = None,
    trace: Trace | None = None,
    step: int | None = None,
    block: Sequence[int] | None = None,
    through: Any = None,
    axes: tuple[int, int] | None = None,
    at: Sequence[int] | None = None,
    lang: str = "en",
) -> View:
    """Show a layout.

    Args:
        source: A kernel or Program (it is lowered), an Artifact, a :class:`~tilelab.layout.Layout`, TileLang's ``T.Layout`` or
            ``T.Fragment``, a function of the indices, CuTe's ``"shape:stride"``, or the name of a tensor-core operand.
        buffer: Which buffer of the kernel is shown first. Default: the first fragment.
        target: What a kernel is lowered for. Default: ``"sm_80"``.
        consts: Constants of the kernel.
        shape: Shape in elements, for a function (and for a CuTe thread-value layout).
        kind: For a function: ``"shared"`` (it gives an address) or ``"fragment"`` (it gives thread and register). Default: shared.
        dtype: Element type, where the source has none. Default: float16.
        threads: Threads of the block, where the source has none.
        replicate: Copies of each element, for a fragment's function.
        values: An array of the layout's shape, shown on the elements.
        trace: A run of the kernel that recorded a block: its values are shown on the buffers, and the steps can be walked.
        step: The step of the trace up to which values are shown. Default: the last.
        block: Which of the trace's blocks. Default: the first.
        through: A shared layout of the same shape (a buffer's name, or anything that ``source`` may be but a kernel): where the threads of
            a fragment find their elements in it. In a kernel, what is copied between the two is shown by itself.
        axes: Which axes run down and across. Default: the last two.
        at: Where to cut the other axes, one index for each axis. Default: zeros.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Returns:
        The view; where the kernel's layouts conflict (TL402), both maps side by side (kind ``"conflict"``).

    Raises:
        InputError: There is no such layout, or shapes do not fit.
    """
    given = {"shape": shape, "kind": kind, "dtype": dtype, "threads": threads, "replicate": replicate}
    try:
        layouts, canonical, tile = _layouts(source, target, consts, given)
    except KernelRefused as refused:
        if refused.finding.code == "TL402" and all(m.get("owners") for m in refused.finding.evidence.get("maps", ({},))):
            return conflict(refused.finding, lang=lang)
        raise
    selected = _select(layouts, buffer)
    shown = layouts[selected]
    wanted = moved(tile) if tile is not None else set()
    if through is not None:
        known = [one for one in layouts if one.name == through] if isinstance(through, str) else []
        other = known[0] if known else _layouts(through, target, consts, given)[0][0]
        layouts = layouts if known else [*layouts, other]
        wanted = {*wanted, (shown.name, other.name), (other.name, shown.name)}
    frames = [frames_of(trace, one, step=step, block=block) if trace is not None and one.kind != "loop" else [] for one in layouts]
    records = [
        record(
            one, values=values if one is shown else None, axes=axes if one is shown else None, at=at if one is shown else None, frames=held
        )
        for one, held in zip(layouts, frames, strict=True)
    ]  # fmt: skip
    pairs = pairs_of(layouts, wanted)
    if through is not None and not any(layouts[p["fragment"]] is shown or layouts[p["shared"]] is shown for p in pairs):
        raise InputError(
            f"{shown.name} ({shape_text(shown.shape)}) does not go through {other.name} ({shape_text(other.shape)})",
            fix="give a fragment and a shared layout of its shape",
        )
    data = {"layouts": records, "through": pairs, "selected": selected, "target": canonical}
    return View(kind="layout", title=shown.name, data=data, lang=lang)


def record(
    one: Layout,
    *,
    values: Any = None,
    axes: tuple[int, int] | None = None,
    at: Sequence[int] | None = None,
    frames: Sequence[LayoutFrame] = (),
) -> LayoutRecord:
    """Return what the view draws of one layout."""
    if one.size * one.map.replicate_extent > _MOST:
        raise InputError(f"{one.name} has {one.size * one.map.replicate_extent} places: too many to draw", fix="show a smaller tile")
    broken = one.check()
    arrays: Any
    owned = one.map.thread is not None
    names = [v.name.lstrip("_") for v in one.params]
    if owned:
        arrays = {"thread": one.threads_of(), "register": one.registers()}
        formulas = [["thread", formula(one.map.thread)], ["register", _index_text(one)]] if one.map.thread is not None else []
    else:
        arrays = {"address": one.addresses(), **_banks(one)}
        formulas = [["address", _index_text(one)]]
    if min(int(a.min()) for a in arrays.values()) < 0:
        raise InputError(broken[0].message, fix=broken[0].fix)
    if values is not None:
        arrays["value"] = _values(one, values)
    elif frames:
        arrays["value"] = frames[-1]["value"]
    everything: Any = {
        "name": one.name,
        "layout": one.kind,
        "dtype": one.dtype,
        "bits": one.bits,
        "scope": one.scope,
        "shape": list(one.shape),
        "params": names,
        "axes": list(_axes(one, axes)),
        "at": _cut(one, at),
        **_counts(one, arrays),
        "formula": formulas,
        "facts": layout_facts.facts(one),
        "conflicts": [] if owned else banks.conflicts(one),
        "findings": [f.to_json() for f in broken],
        "loc": {"file": one.loc.file, "line": one.loc.line} if one.loc else None,
        "arrays": arrays,
        "frames": list(frames),
    }
    return cast(LayoutRecord, everything)


def _counts(one: Layout, arrays: Mapping[str, Any]) -> Any:
    """How many threads, registers, copies, addresses and words there are."""
    if one.map.thread is None:
        words = int(arrays["word"].max()) + max(1, one.bits // 32)
        return {"threads": 0, "registers": 0, "replicas": 1, "addresses": int(arrays["address"].max()) + 1, "words": words}
    threads = max(one.threads, int(arrays["thread"].max()) + 1)
    registers = int(arrays["register"].max()) + 1
    return {"threads": threads, "registers": registers, "replicas": layout_facts.replicas(one), "addresses": 0, "words": 0}


def _banks(one: Layout) -> dict[str, Any]:
    before = ((one.offset_bytes or 0) + np.arange(one.size, dtype=np.int64).reshape(one.shape) * one.bits // 8) // BANK_BYTES % 32
    word = (one.byte_addresses() - (one.offset_bytes or 0) // 128 * 128) // BANK_BYTES  # from the first of the 128-byte lines it touches
    return {"bank": one.banks(), "bank_before": before, "word": word, **banks.column_hits(one)}


def _index_text(one: Layout) -> str:
    texts = [formula(e) for e in one.map.index]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)}) of {shape_text(one.index_shape())}"


def _values(one: Layout, values: Any) -> Any:
    array = np.asarray(values.detach().cpu().float() if hasattr(values, "detach") else values)
    if array.shape != one.shape:
        raise InputError(
            f"values are {shape_text(array.shape)}, but {one.name} is {shape_text(one.shape)}", fix="give one value for each element"
        )
    return array if array.dtype.kind in "iub" else array.astype(np.float32)


def _axes(one: Layout, axes: tuple[int, int] | None) -> tuple[int, ...]:
    rank = len(one.shape)
    if axes is None:
        return tuple(range(rank))[-2:]
    if len(set(axes)) != 2 or not all(0 <= a < rank for a in axes):
        raise InputError(f"axes={axes} are not two different axes of {shape_text(one.shape)}", fix=f"choose two of {tuple(range(rank))}")
    return tuple(axes)


def _cut(one: Layout, at: Sequence[int] | None) -> list[int]:
    cut = [0] * len(one.shape) if at is None else list(at)
    if len(cut) != len(one.shape) or not all(0 <= c < n for c, n in zip(cut, one.shape, strict=True)):
        raise InputError(f"at={tuple(cut)} is not an element of {shape_text(one.shape)}", fix="give one index for each axis")
    return cut


# --------------------------------------------------------------------------------------------------- sources
def _layouts(
    source: Any, target: str, consts: Mapping[str, Any] | None, given: Mapping[str, Any]
) -> tuple[list[Layout], str, ir.Program | None]:
    for test, make in _SOURCES:
        if test(source, given):
            return [make(source, given)], "", None
    artifact = source if isinstance(source, Artifact) else import_module("tilelab.compiler").lower(source, target=target, consts=consts)
    return _of_artifact(artifact), artifact.target, artifact.tile


def _of_artifact(artifact: Artifact) -> list[Layout]:
    """The inferred layouts, fragments first, and the shared buffers that have none: those are row-major."""
    found = artifact.all_layouts()
    if not found:
        raise InputError(f"{artifact.tile.name} has no fragment and no shared buffer, so there is no layout to show",
                         fix="look at a kernel that uses T.alloc_fragment or T.alloc_shared")  # fmt: skip
    order = {"fragment": 0, "shared": 1, "loop": 2}
    return sorted(found.values(), key=lambda one: order.get(one.kind, 3))


def _select(layouts: Sequence[Layout], buffer: str | None) -> int:
    if buffer is None:
        return 0
    names = [one.name for one in layouts]
    if buffer not in names:
        raise InputError(f"no buffer with a layout is called {buffer!r}", fix=f"there are {', '.join(names)}")
    return names.index(buffer)


def _from_text(text: str, given: Mapping[str, Any]) -> Layout:
    if text in layout_make.ATOMS:
        return layout_make.atom(text)
    if given["kind"] == "fragment" and given["shape"]:
        return layout_make.cute_fragment(text, given["shape"], dtype=given["dtype"])
    if ":" in text:
        return layout_make.cute_shared(text, dtype=given["dtype"])
    raise InputError(
        f"{text!r} is neither a CuTe layout nor a tensor-core operand", fix=f"write shape:stride, or one of {', '.join(layout_make.ATOMS)}"
    )


def _from_function(fn: Callable[..., Any], given: Mapping[str, Any]) -> Layout:
    if given["shape"] is None:
        raise InputError("a layout function needs a shape", fix="layout(lambda i, j: …, shape=(8, 8))")
    name = getattr(fn, "__name__", "layout").replace("<lambda>", "lambda")
    if given["kind"] == "fragment":
        return layout_make.make_fragment(
            given["shape"], fn, threads=given["threads"], replicate=given["replicate"], dtype=given["dtype"], name=name
        )
    return layout_make.make_shared(given["shape"], fn, dtype=given["dtype"], name=name)


def _is_function(source: Any, given: Mapping[str, Any]) -> bool:
    """A lambda, or a plain function with a shape; without one it builds a kernel."""
    return isinstance(source, FunctionType) and (source.__name__ == "<lambda>" or given["shape"] is not None)


def _is_tilelang(source: Any, _given: Mapping[str, Any]) -> bool:
    return any(c.__module__.startswith("tilelang.layout") for c in type(source).__mro__)


def _from_tilelang(source: Any, given: Mapping[str, Any]) -> Layout:
    index_map: ir.IndexMap = import_module("tilelab.compiler.reader").Reader().layout(source)
    shape = tuple(int(e.value) for e in index_map.shape if isinstance(e, ir.Const))
    kind, scope = ("shared", "shared") if index_map.thread is None else ("fragment", "local.fragment")
    one = Layout(name=type(source).__name__, kind=kind, shape=shape, dtype=given["dtype"], scope=scope, map=index_map)
    if index_map.thread is None:
        return one
    return replace(one, threads=given["threads"] or int(one.threads_of().max()) + 1)


#: what the source is → how to read it; anything else is lowered
_SOURCES: tuple[tuple[Callable[[Any, Mapping[str, Any]], bool], Callable[[Any, Mapping[str, Any]], Layout]], ...] = (
    (lambda s, _: isinstance(s, Layout), lambda s, _: s),
    (lambda s, _: isinstance(s, str), _from_text),
    (_is_tilelang, _from_tilelang),
    (_is_function, _from_function),
)

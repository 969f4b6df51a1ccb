"""The module after layout inference → :class:`tilelab.layout.Layout` records, and planned pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.artifact import PipelinePlan
from tilelab.compiler.provenance import loc_of_span
from tilelab.compiler.reader import Reader
from tilelab.finding import KernelRefused
from tilelab.layout import Layout

_SHARED = ("shared", "shared.dyn")


def read_layouts(module: Any, threads: int) -> tuple[dict[str, Layout], dict[str, ir.Buffer]]:
    """Return layouts by name, and the on-chip buffers of that stage (with their versions) by name."""
    reader = Reader()
    layouts: dict[str, Layout] = {}
    buffers: dict[str, ir.Buffer] = {}
    by_data: dict[ir.Var, ir.Buffer] = {}
    maps: dict[ir.Var, Any] = {}
    loops: list[Any] = []
    for node in _nodes(module):
        kind = type(node).__name__
        if kind == "SBlock":
            for b in node.alloc_buffers:
                buffer = reader.buffer(b)
                by_data.setdefault(buffer.data, buffer)
            for data, layout in (node.annotations.get("layout_map") or {}).items():
                # Users' maps name storage, inferred maps name buffers.
                maps.setdefault(reader.buffer(data).data if hasattr(data, "data") else reader.var(data), layout)
        elif kind == "For" and "parallel_loop_layout" in node.annotations:
            loops.append(node)
    for data, buffer in by_data.items():
        name = _fresh(buffer.name, buffers)
        buffers[name] = buffer
        if data in maps:
            made = _buffer_layout(reader, name, buffer, maps[data], threads)
            if made is not None:
                layouts[name] = made
    for node in loops:
        made = _loop_layout(reader, node, threads, layouts)
        if made is not None:
            layouts[made.name] = made
    return layouts, buffers


def _nodes(module: Any) -> list[Any]:
    """Every statement of every function, outermost first."""
    from tvm.tirx.stmt_functor import pre_order_visit

    out: list[Any] = []

    def visit(node: Any) -> bool:
        if type(node).__name__ in ("SBlock", "For"):
            out.append(node)
        return True

    for f in module.functions.values():
        if hasattr(f, "body"):
            pre_order_visit(f.body, visit)
    return out


def _fresh(name: str, taken: Mapping[str, Any]) -> str:
    if name not in taken:
        return name
    n = 1
    while f"{name}_{n}" in taken:
        n += 1
    return f"{name}_{n}"


def _buffer_layout(reader: Reader, name: str, buffer: ir.Buffer, layout: Any, threads: int) -> Layout | None:
    index_map = _map(reader, layout)
    shape = _shape(index_map) if index_map is not None else None
    if index_map is None or shape is None:
        return None
    index_map, threads = _in_block(index_map, layout, threads)
    fragment = index_map.thread is not None
    return Layout(
        name=name,
        kind="fragment" if fragment else "shared",
        shape=shape,
        dtype=buffer.dtype,
        scope=buffer.scope,
        map=index_map,
        threads=threads if fragment else 0,
        loc=buffer.loc,
    )


def _loop_layout(reader: Reader, node: Any, threads: int, taken: Mapping[str, Any]) -> Layout | None:
    layout = node.annotations["parallel_loop_layout"]
    index_map = _map(reader, layout)
    shape = _shape(index_map) if index_map is not None else None
    if index_map is None or shape is None:
        return None
    index_map, threads = _in_block(index_map, layout, threads)
    from tilelang.ir import get_stmt_span

    loc = loc_of_span(get_stmt_span(node))
    name = _fresh(f"loop at {loc.line}" if loc else "loop", taken)
    return Layout(name=name, kind="loop", shape=shape, dtype="", scope="", map=index_map, threads=threads, loc=loc)


def _map(reader: Reader, layout: Any) -> ir.IndexMap | None:
    try:
        return reader.layout(layout)
    except KernelRefused:
        return None


def _in_block(index_map: ir.IndexMap, layout: Any, threads: int) -> tuple[ir.IndexMap, int]:
    """Number threads within the block: TileLang numbers those of a warp-specialised role from the role's first."""
    over = getattr(layout, "thread_range", None)
    if index_map.thread is None or over is None:
        return index_map, threads
    first, count = (int(getattr(e, "value", 0)) for e in (over.min, over.extent))
    if first:
        base = ir.Const(dtype="int32", value=first)
        index_map = replace(index_map, thread=ir.Bin(dtype="int32", op="add", a=index_map.thread, b=base))
    return index_map, first + count


def _shape(index_map: ir.IndexMap) -> tuple[int, ...] | None:
    extents = [e.value for e in index_map.shape if isinstance(e, ir.Const)]
    return tuple(int(e) for e in extents) if len(extents) == len(index_map.shape) else None


# ------------------------------------------------------------------------------------------------- pipelines
def read_pipelines(module: Any) -> tuple[PipelinePlan, ...]:
    """Return the pipelines that ``tl.PipelinePlanning`` planned."""
    return tuple(_plans(module))


def _plans(module: Any) -> Iterator[PipelinePlan]:
    from tilelang.ir import get_stmt_span

    for node in _nodes(module):
        if type(node).__name__ != "For" or "software_pipeline_stage" not in node.annotations:
            continue
        notes = node.annotations
        stage = _ints(notes["software_pipeline_stage"])
        statements = _body(node.body)
        yield PipelinePlan(
            loop=str(node.loop_var.name),
            loc=loc_of_span(get_stmt_span(node)),
            num_stages=int(notes.get("tl_pipelined_num_stages", notes.get("num_stages", max(stage, default=0) + 1))),
            stage=stage,
            order=_ints(notes.get("software_pipeline_order", ())),
            async_stages=_ints(notes.get("software_pipeline_async_stages", ())),
            statements=tuple(_brief(s) for s in statements),
            locs=tuple(loc_of_span(get_stmt_span(s)) for s in statements),
        )


def _ints(items: Any) -> tuple[int, ...]:
    return tuple(int(i) for i in items)


def _body(s: Any) -> list[Any]:
    kind = type(s).__name__
    if kind == "SBlockRealize":
        return _body(s.block.body)
    if kind == "SeqStmt":
        return list(s.seq)
    return [s]


def _brief(s: Any) -> str:
    """Name a statement in a few words: its tile operation, or what kind of statement it is."""
    value = getattr(s, "value", None)
    op = getattr(getattr(value, "op", None), "name", "") if type(value).__name__ == "Call" else ""
    return op.removeprefix("tl.tileop.") or type(s).__name__

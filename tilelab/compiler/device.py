"""The lowered module → a thread-level Program, its shared-memory map and its resources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.artifact import Resources, SmemSlot
from tilelab.compiler.blame import located
from tilelab.compiler.statements import TileReader, sources_of

_AXES = {f"{kind}.{axis}": (kind, i) for kind in ("blockIdx", "threadIdx") for i, axis in enumerate("xyz")}
_DESCRIPTORS = {
    "__tvm_tensormap_create_tiled": "tl.create_tma_descriptor",
    "__tvm_tensormap_create_im2col": "tl.create_tma_im2col_descriptor",
}


def read_device(device: Any, host: Any, tile: ir.Program) -> ir.Program:
    """Read the kernels of a lowered module as one Program of level ``"thread"``.

    Parameters are those of the tile program, under the same names. The body allocates global workspaces, makes TMA
    descriptors (``Bind`` of ``tl.create_tma_descriptor``) and launches the kernels in the host's order.
    """
    reader = _DeviceReader()
    functions = {str(g.name_hint): f for g, f in device.functions.items()}
    order = [n for n in _called(host, functions) if n in functions] or list(functions)
    params, names = _params(reader, functions, tile)
    body: list[ir.Stmt] = []
    for name in order:
        for v in map(reader.var, functions[name].params):
            if v.pointee and v.scope != "grid_constant" and v.name not in names:
                names[v.name] = v
                body.append(_workspace(v, tile))
    launches = [reader.kernel(name, functions[name], names) for name in order]
    body.extend(_descriptors(reader, host, names))
    body.extend(launches)
    done = located(tuple(body), tile)
    return ir.Program(
        name=tile.name, level="thread", params=params, body=done, outputs=tile.outputs, attrs={"kernels": tuple(order)},
        sources={**tile.sources, **sources_of(done)},
    )  # fmt: skip


def _called(host: Any, functions: Mapping[str, Any]) -> list[str]:
    """Names of kernels in the order in which the host calls them."""
    from tvm.tirx.stmt_functor import post_order_visit

    out: list[str] = []

    def visit(node: Any) -> None:
        if type(node).__name__ == "Call" and len(node.args) and type(node.args[0]).__name__ == "StringImm":
            name = str(node.args[0].value)
            if name in functions:
                out.append(name)

    for f in host.functions.values():
        post_order_visit(f.body, visit)
    return out


def _params(reader: _DeviceReader, functions: Mapping[str, Any], tile: ir.Program) -> tuple[tuple[ir.Param, ...], dict[str, ir.Var]]:
    """The tile program's parameters over the variables of the kernels, and those variables by name."""
    names: dict[str, ir.Var] = {}
    for f in functions.values():
        for v in f.params:
            names.setdefault(str(v.name), reader.var(v))
    sizes: dict[ir.Var, ir.Var] = {}

    def size(e: ir.Expr) -> ir.Expr:
        return _renamed(e, names, sizes)

    out: list[ir.Param] = []
    for p in tile.params:
        if p.buffer is None:
            var = names.setdefault(p.var.name, p.var)
            out.append(ir.Param(name=p.name, var=var))
            continue
        var = names.setdefault(p.buffer.name, ir.Var(dtype="handle", name=p.buffer.name, pointee=p.buffer.dtype, scope="global"))
        shape, strides = tuple(map(size, p.buffer.shape)), tuple(map(size, p.buffer.strides))
        out.append(ir.Param(name=p.name, var=var, buffer=replace(p.buffer, data=var, shape=shape, strides=strides)))
    return tuple(out), {n: v for n, v in names.items() if any(v is q.var for q in out) or not v.pointee}


def _renamed(e: ir.Expr, names: Mapping[str, ir.Var], sizes: dict[ir.Var, ir.Var]) -> ir.Expr:
    """Return a size with its variables replaced by the kernels' variables of the same name."""
    if isinstance(e, ir.Var):
        return sizes.setdefault(e, names.get(e.name, e))
    if isinstance(e, ir.Bin):
        return replace(e, a=_renamed(e.a, names, sizes), b=_renamed(e.b, names, sizes))
    return e


def _workspace(v: ir.Var, tile: ir.Program) -> ir.Alloc:
    """Global scratch memory that the host allocates: its shape is that of the buffer in the tile program."""
    for n in ir.walk(tile):
        for b in n.allocs if isinstance(n, ir.Block) else ():
            if b.name == v.name and b.scope == "global":
                return ir.Alloc(buffer=replace(b, data=v), loc=b.loc)
    size = ir.Const(dtype="int32", value=0)
    return ir.Alloc(buffer=ir.Buffer(name=v.name, dtype=v.pointee, shape=(size,), scope="global", data=v))


def _descriptors(reader: _DeviceReader, host: Any, names: Mapping[str, ir.Var]) -> list[ir.Stmt]:
    out: list[ir.Stmt] = []
    for f in host.functions.values():
        for desc, args in ((f.attrs or {}).get("tma_descriptor_args") or {}).items():
            values = [reader.expr(a) for a in args]
            op = (
                _DESCRIPTORS.get(values[0].value, "tl.create_tma_descriptor")
                if isinstance(values[0], ir.Str)
                else "tl.create_tma_descriptor"
            )
            rest = tuple(names.get(a.name, a) if isinstance(a, ir.Var) else a for a in values[2:])
            out.append(ir.Bind(var=reader.named(desc), value=ir.Call(dtype="handle", op=op, args=rest)))
    return out


class _DeviceReader(TileReader):
    """Reads kernels: thread axes are gathered into the Launch that holds the kernel."""

    def __init__(self) -> None:
        super().__init__()
        self._axes: dict[str, tuple[ir.Var, ir.Expr]] = {}
        self._descriptors: dict[str, ir.Var] = {}

    def named(self, v: Any) -> ir.Var:
        """The host's variable of a descriptor is another object than the kernel's: they meet by name."""
        return self._descriptors.get(str(v.name)) or self.var(v)

    def kernel(self, name: str, func: Any, names: Mapping[str, ir.Var]) -> ir.Launch:
        self._axes = {}
        params = [self.var(v) for v in func.params]
        body = self.body(func.body)
        binds = [ir.Bind(var=v, value=names[v.name]) for v in params if v.name in names and names[v.name] is not v]
        bound = {b.var for b in binds}
        for v in params:
            if v.scope == "grid_constant":
                self._descriptors.setdefault(v.name, v)
        blocks = self._extents("blockIdx")
        threads = self._extents("threadIdx")
        attrs: dict[str, ir.Attr] = {"kernel": name, "params": tuple(names[v.name] if v in bound else v for v in params)}
        smem = (func.attrs or {}).get("dyn_shared_memory_buf")
        if smem is not None:
            value = self.expr(smem)
            attrs["smem_bytes"] = int(value.value) if isinstance(value, ir.Const) else value
        dims = (func.attrs or {}).get("cluster_dims")
        if dims is not None:
            attrs["cluster_dims"] = tuple(int(d) for d in dims)
        return ir.Launch(
            block_vars=tuple(v for v, _ in blocks), grid=tuple(e for _, e in blocks), thread_vars=tuple(v for v, _ in threads),
            threads=tuple(e for _, e in threads), body=(*binds, *body), attrs=attrs, loc=_first_loc(body),
        )  # fmt: skip

    def _extents(self, kind: str) -> list[tuple[ir.Var, ir.Expr]]:
        """Variable and extent of each axis of ``kind``, x first, up to the last one that the kernel names."""
        have = {_AXES[tag][1]: pair for tag, pair in self._axes.items() if _AXES[tag][0] == kind}
        count = max(have, default=0) + 1
        one = ir.Const(dtype="int32", value=1)
        return [have.get(i) or (ir.Var(dtype="int32", name=f"{kind[0]}{'xyz'[i]}"), one) for i in range(count)]

    def _attribute(self, s: Any, loc: ir.SourceLoc | None) -> ir.Body:
        if str(s.attr_key) != "thread_extent" or type(s.node).__name__ != "IterVar":
            return super()._attribute(s, loc)
        tag, var, extent = str(s.node.thread_tag), self.var(s.node.var), self.expr(s.value)
        if tag not in _AXES:
            return super()._attribute(s, loc)
        first = self._axes.setdefault(tag, (var, extent))[0]
        body = self.body(s.body)
        return body if first is var else (ir.Bind(var=var, value=first), *body)


def _first_loc(body: ir.Body) -> ir.SourceLoc | None:
    return next((s.loc for s in ir.walk(body) if isinstance(s, ir.Stmt) and s.loc is not None), None)


# ------------------------------------------------------------------------------------------------- resources
_BITS = {"bool": 8, "handle": 64}


def bytes_of(dtype: str, elements: int) -> int:
    """Return the bytes that ``elements`` of ``dtype`` take."""
    base, _, lanes = dtype.partition("x")
    digits = "".join(c if c.isdigit() else " " for c in base.split("_")[0]).split()
    bits = _BITS.get(base) or int(digits[0] if digits else 32)
    return (bits * int(lanes or 1) * elements + 7) // 8


def _elements(b: ir.Buffer) -> int | None:
    n = 1
    for e in b.shape:
        if not isinstance(e, ir.Const):
            return None
        n *= int(e.value)
    return n


def read_smem(program: ir.Program, staged: Mapping[str, ir.Buffer]) -> tuple[SmemSlot, ...]:
    """Return the shared-memory map. ``staged`` gives the buffers as they were before they were merged, by name."""
    return tuple(slot for launch in _launches(program) for slot in _slots(launch, staged))


def _launches(program: ir.Program) -> Iterator[ir.Launch]:
    return (s for s in ir.walk(program) if isinstance(s, ir.Launch))


def _slots(launch: ir.Launch, staged: Mapping[str, ir.Buffer]) -> Iterator[SmemSlot]:
    kernel = str(launch.attrs["kernel"])
    arenas: dict[ir.Expr, ir.Buffer] = {}
    views: list[tuple[ir.Var, int]] = []
    carved: set[ir.Expr] = set()
    for s in ir.walk(launch.body):
        if isinstance(s, ir.Alloc) and s.buffer.scope.startswith("shared"):
            arenas[s.buffer.data] = s.buffer
        elif isinstance(s, ir.Bind) and isinstance(s.value, ir.Call) and s.value.op == "tirx.handle_add_byte_offset":
            base, by = s.value.args
            if base in arenas and isinstance(by, ir.Const):
                carved.add(base)
                views.append((s.var, int(by.value)))
    total = launch.attrs.get("smem_bytes")
    ends = sorted({at for _, at in views} | ({total} if isinstance(total, int) else set()))
    for var, at in views:
        size = _size(staged[var.name]) if var.name in staged else next((e for e in ends if e > at), at) - at
        yield SmemSlot(kernel=kernel, name=var.name, dtype=var.pointee, offset_bytes=at, size_bytes=size, scope=var.scope)
    for data, b in arenas.items():
        if data not in carved:
            place = 0 if b.scope == "shared.dyn" else None
            yield SmemSlot(kernel=kernel, name=b.name, dtype=b.dtype, offset_bytes=place, size_bytes=_size(b), scope=b.scope)


def _size(b: ir.Buffer) -> int:
    """Bytes of a buffer; 0 where its shape is symbolic."""
    return bytes_of(b.dtype, _elements(b) or 0)


def read_resources(program: ir.Program) -> dict[str, Resources]:
    """Return what each kernel asks for: threads, and bytes of shared memory (dynamic and static)."""
    out = {}
    for launch in _launches(program):
        threads = 1
        for e in launch.threads:
            threads *= int(e.value) if isinstance(e, ir.Const) else 1
        dynamic = launch.attrs.get("smem_bytes")
        static = sum(
            _size(s.buffer)
            for s in ir.walk(launch.body)
            if isinstance(s, ir.Alloc) and s.buffer.scope in ("shared", "shared.barrier", "shared.cluster_barrier")
        )
        out[str(launch.attrs["kernel"])] = Resources(threads=threads, smem_bytes=(dynamic if isinstance(dynamic, int) else 0) + static)
    return out

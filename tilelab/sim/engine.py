"""``simulate``: a Program and its inputs → a Trace."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import Finding, finding
from tilelab.layout import Layout
from tilelab.sim import dtypes
from tilelab.sim.checks import Findings
from tilelab.sim.kernel import Compiler
from tilelab.sim.lanes import Frame, Stop, Unsupported
from tilelab.sim.launch import Launch
from tilelab.sim.memory import Buf
from tilelab.sim.outputs import Reach, collect
from tilelab.sim.ownership import settle
from tilelab.sim.pointers import Memory
from tilelab.sim.races import NeedShadow, Order, Partition, Shadow
from tilelab.sim.sync import Named
from tilelab.trace import PrintRecord, SimParams, Trace

_BY_ID: dict[tuple[int, bool], tuple[ir.Program, Any]] = {}


def simulate(
    program: ir.Program, inputs: Mapping[str, Any], params: SimParams | None = None, *, layouts: Mapping[str, Layout] | None = None
) -> Trace:
    """Run a tile-level Program.

    Args:
        program: What was captured.
        inputs: By parameter name: numpy arrays (``ml_dtypes`` for bfloat16 and narrow floats), Python numbers for
            scalars; None or missing means uninitialised (or, for outputs, allocated). Sizes that the shapes of the
            inputs do not tell are given by their own names. A table of pointers is a list of the arrays that they
            point to; those that the kernel writes are outputs ``NAME[i]``. Nothing here is changed.
        params: How to simulate.
        layouts: Inferred layouts by buffer name, where known: they tell who owns the elements of fragments.

    Returns:
        The Trace. Where something in the program is not simulated yet, it has a TL703 finding and no outputs.

    Raises:
        InputError: An input has the wrong shape or dtype, or a size is not known.
    """
    params = params or SimParams()
    if program.level != "tile":
        lowered = Unsupported(f"a program of level '{program.level}'", fix="simulate what was captured")
        return Trace(outputs={}, findings=(_not_yet(lowered),))
    try:
        compiled = _compiled(program, bool(params.record_blocks))
    except Unsupported as e:
        return Trace(outputs={}, findings=(_not_yet(e),))
    except Stop as e:
        return Trace(outputs={}, findings=(e.finding,))
    shadowed: set[str] = set()
    while True:
        run = Run(program, compiled, params, frozenset(shadowed), layouts or {})
        try:
            with np.errstate(all="ignore"):
                return run.go(inputs)
        except NeedShadow as e:
            shadowed |= e.buffers
        except Unsupported as e:
            return Trace(outputs={}, findings=(*run.findings.done(), _not_yet(e)), prints=tuple(run.prints))


def _compiled(program: ir.Program, recording: bool) -> Compiler:
    """The compiled program, from the cache if it was compiled before."""
    key = (id(program), recording)
    kept = _BY_ID.get(key)
    if kept is not None and kept[0] is program:
        if isinstance(kept[1], Exception):
            raise kept[1]
        return kept[1]  # type: ignore[no-any-return]
    result: Any
    try:
        if recording:
            from tilelab.sim.record import Recording

            result = Recording(program)
        else:
            result = Compiler(program)
    except (Unsupported, Stop) as e:
        result = e
    if len(_BY_ID) >= 256:
        _BY_ID.pop(next(iter(_BY_ID)))
    _BY_ID[key] = (program, result)
    if isinstance(result, Exception):
        raise result
    return result  # type: ignore[no-any-return]


def _not_yet(e: Unsupported) -> Finding:
    return finding(
        "TL703", f"{e.what} is not simulated yet.", fix=e.fix or "run this kernel on a GPU, or write it with other operations",
        file=e.loc.file if e.loc else None, line=e.loc.line if e.loc else None, evidence={"what": e.what},
    )  # fmt: skip


class Run:
    """One run of a compiled program: its memory, its findings, its records."""

    def __init__(
        self, program: ir.Program, compiled: Compiler, params: SimParams, shadowed: frozenset[str], layouts: Mapping[str, Layout]
    ) -> None:
        self.layouts = layouts
        self.program, self.compiled, self.params, self.shadowed = program, compiled, params, shadowed
        self.checks = params.checks
        self.findings = Findings(params.max_findings)
        self.prints: list[PrintRecord] = []
        self.prints_lost = 0
        self.blocks = 0
        self.flops = 0
        self.bytes_read = 0
        self.bytes_written = 0
        self.launches = 0
        self.block_axes = 0
        self.born: set[Any] = set()  # places where a NaN or Inf was seen first
        self.clipped: set[Any] = set()  # lines where a cast overflowed
        self.recorder: Any = None
        if params.record_blocks:
            from tilelab.sim.record import Recorder

            self.recorder = Recorder(program, params)
        self.version = 0  # grows with every change that somebody may be waiting for
        self.grid_barrier = Named()
        self.grid_blocks = 1
        self.grid_seen = 0
        self.budget = params.max_steps
        self.deadline = time.monotonic() + params.max_seconds if params.max_seconds else math.inf
        self.memory = Memory()
        self.order: Order | None = None  # which blocks are known to come before which
        self.pending: Any = None  # blocks of the launch that have not begun, where others may take them over
        self._racing: list[Buf] = []

    # ------------------------------------------------------------------------------------------------- the run
    def go(self, inputs: Mapping[str, Any]) -> Trace:
        """Bind the inputs, run, collect the outputs."""
        comp = self.compiled
        host = Frame(self, comp.slots, len(comp.specs), comp.max_rank)
        self._bind(host, inputs)
        findings = self._budget()
        if any(f.severity == "error" for f in findings):
            return Trace(outputs={}, findings=findings)
        if self.checks:
            for item in comp.static:
                item = dict(settle(item, self.layouts) or {}) if item["code"] == "TL401" else dict(item)
                if not item:
                    continue
                self.findings.report(item.pop("key"), item.pop("code"), item.pop("message"), item.pop("loc"), **item)
        stopped: tuple[Finding, ...] = ()
        try:
            comp.op.run(host)
        except Stop as e:
            stopped = (e.finding,)
            if e.finding.code == "TL206":
                self.findings.drop("roles")
        outputs, result = collect(self, host, complete=not stopped)
        return Trace(
            outputs=outputs, result=result, findings=(*findings, *self.findings.done(), *stopped), prints=tuple(self.prints),
            **(self.recorder.done() if self.recorder is not None else {}),
            counts={n: getattr(self, n) for n in ("blocks", "bytes_read", "bytes_written", "flops", "launches", "prints_lost")},
        )  # fmt: skip

    def _budget(self) -> tuple[Finding, ...]:
        """What does not fit the chosen GPU is said before anything runs."""
        if not self.checks:
            return ()
        try:
            from tilelab.analysis.budget import budget_findings
        except ImportError:
            return ()
        known = self.compiled.budgets
        if self.params.target not in known:
            known[self.params.target] = tuple(budget_findings(self.program, self.params.target))
        return known[self.params.target]

    def steps(self, n: int, loc: Any = None) -> None:
        """Count loop turns.

        Raises:
            Stop: More than ``max_steps`` were taken: the kernel does not end. Or ``max_seconds`` are over.
        """
        self.budget -= n
        if time.monotonic() > self.deadline:
            raise Stop(
                finding(
                    "TL206", f"the kernel does not end: after {self.params.max_seconds:g} seconds this loop still runs.",
                    fix="check the condition that ends the loop, or give a smaller problem or more time",
                    file=loc.file if loc else None, line=loc.line if loc else None,
                )
            )  # fmt: skip
        if self.budget < 0:
            raise Stop(
                finding(
                    "TL206", f"the kernel does not end: more than {self.params.max_steps:,} loop turns were run.",
                    fix="check the condition that ends the loop", file=loc.file if loc else None, line=loc.line if loc else None,
                    evidence={"steps": self.params.max_steps},
                )
            )  # fmt: skip

    def more_blocks(self, grid: tuple[int, ...], loc: Any = None) -> None:
        """Some more blocks of a grid begin.

        Raises:
            Stop: ``max_seconds`` are over.
        """
        if time.monotonic() > self.deadline:
            total = math.prod(grid)
            raise Stop(
                finding(
                    "TL703",
                    f"{self.blocks:,} of {total:,} blocks were simulated in {self.params.max_seconds:g} seconds; all take too long.",
                    fix="give a smaller problem (--const), or more time", file=loc.file if loc else None, line=loc.line if loc else None,
                    evidence={"blocks": self.blocks, "grid": list(grid)},
                )
            )  # fmt: skip

    # -------------------------------------------------------------------------------------------------- inputs
    def _bind(self, host: Frame, inputs: Mapping[str, Any]) -> None:
        comp = self.compiled
        sizes = {ex_key.name: None for ex_key in comp.scope}
        for name in inputs:
            if name not in {p.name for p in self.program.params} and name not in sizes:
                raise InputError(
                    f"'{name}' is not a parameter of {self.program.name}",
                    fix=f"Parameters: {', '.join(p.name for p in self.program.params)}",
                )
        named = {v.name: v for p, _ in comp.params for v in _size_vars(p)}
        for name, v in named.items():
            if name in inputs and isinstance(inputs[name], int | np.integer):
                self._set(host, v, int(inputs[name]))
        inputs = {**inputs}
        for p, _ in comp.params:
            given = inputs.get(p.name)
            if p.buffer is not None and isinstance(given, list | tuple):
                inputs[p.name] = self.memory.add(p.name, given, _dtype_of).astype(dtypes.storage(p.buffer.dtype))
        if comp.pools and not self.memory.arrays:
            raise InputError(
                f"{self.program.name} makes tensors from addresses, and what they point to is not known",
                fix="pass the table of pointers as a list of tensors",
            )
        for slot, flat, _ in comp.pools.values():
            host.mem[slot] = self.memory.pool(slot, flat)
        for p, slot in comp.params:
            given = inputs.get(p.name)
            if p.buffer is None:
                if given is not None:
                    host.v[slot] = _scalar(p, given)
                elif host.v[slot] is None and p.name in named:
                    pass
            elif given is not None:
                self._unify(host, p, np.asarray(given))
        for p, slot in comp.params:
            if p.buffer is None:
                if host.v[slot] is None:
                    raise InputError(f"the scalar '{p.name}' is not given", fix=f"pass {p.name}=…")
                continue
            given = inputs.get(p.name)
            shape = self._shape(host, p, inputs)
            buf = Buf(p.name, p.buffer.dtype, "global", shape, 0, p.buffer.loc)
            if given is None:
                buf.reserve()
            else:
                buf.root = _carried(p, np.asarray(given), copy=p.buffer.data in comp.stored)
                buf.strides = buf.root.strides
                buf.init, buf.own = True, True
            if p.buffer.data in comp.tiled and self.checks:
                buf.reach = Reach(len(shape))
            host.mem[slot] = buf
            if p.buffer.data in comp.aliased:
                buf.pin(())
                comp.make_views(host, slot)

    def _set(self, host: Frame, v: ir.Var, value: int) -> None:
        slot = _slot_of_var(self.compiled, v)
        if host.v[slot] not in (None, value):
            raise InputError(f"the size {v.name} is {host.v[slot]} in one place and {value} in another", fix="make the shapes agree")
        host.v[slot] = value

    def _unify(self, host: Frame, p: ir.Param, array: Any) -> None:
        assert p.buffer is not None
        want = p.buffer.shape
        shown = "(" + ", ".join(str(e.value) if isinstance(e, ir.Const) else e.name if isinstance(e, ir.Var) else "…" for e in want) + ")"
        if array.ndim != len(want):
            raise InputError(
                f"'{p.name}' has shape {array.shape}, but {self.program.name} wants {shown}", fix="pass a tensor of that many dimensions"
            )
        for e, n in zip(want, array.shape, strict=True):
            if isinstance(e, ir.Const) and int(e.value) != n:
                raise InputError(
                    f"'{p.name}' has shape {array.shape}, but {self.program.name} wants {shown}", fix="pass a tensor of that shape"
                )
            if isinstance(e, ir.Var):
                self._set(host, e, n)
        for axis, e in enumerate(p.buffer.strides):
            if isinstance(e, ir.Var) and array.itemsize:
                self._set(host, e, array.strides[axis] // array.itemsize)

    def _shape(self, host: Frame, p: ir.Param, inputs: Mapping[str, Any]) -> tuple[int, ...]:
        assert p.buffer is not None
        shape = []
        for e in p.buffer.shape:
            for v in ir.walk(e):
                if isinstance(v, ir.Var) and host.v[_slot_of_var(self.compiled, v)] is None:
                    raise InputError(
                        f"the size {v.name} of '{p.name}' is not known", fix=f"pass {v.name}=…, or a tensor that has it in its shape"
                    )
            shape.append(int(self.compiled.expr(e, self.compiled.host).fn(host)))
        given = inputs.get(p.name)
        if given is not None and tuple(np.shape(given)) != tuple(shape):
            raise InputError(
                f"'{p.name}' has shape {tuple(np.shape(given))}, but {self.program.name} wants {tuple(shape)}",
                fix="pass a tensor of that shape",
            )
        return tuple(shape)

    # ------------------------------------------------------------------------------------------------ launches
    def begin_launch(self, launch: Launch, host: Frame, shape: tuple[int, ...]) -> None:
        """Start watching the global buffers that blocks share."""
        self.launches += 1
        self.block_axes = len(shape)
        self.grid_barrier, self.grid_seen = Named(), 0
        self.grid_blocks = int(np.prod(shape, dtype=np.int64))
        self._racing = []
        self.order = None
        if not self.checks or all(n == 1 for n in shape):
            return
        order = self.order = Order(shape)
        views = [own for slot in launch.shared for own, *_ in self.compiled.views_of.get(slot, ())]
        for slot in (*launch.shared, *views):
            buf = host.mem[slot]
            if buf is None:
                continue
            buf.partition = Shadow(buf.shape, shape, order) if buf.name in self.shadowed else Partition(shape)
            self._racing.append(buf)

    def end_launch(self, launch: Launch, host: Frame, shape: tuple[int, ...]) -> None:
        """Look at how the blocks divided the buffers."""
        need = set()
        for buf in self._racing:
            if buf.partition is not None and isinstance(buf.partition, Partition) and not buf.partition.proven():
                need.add(buf.name)
            buf.partition = None
        if need:
            raise NeedShadow(need)

    def order_all(self) -> None:
        """Everything that any block did so far is ordered before what follows."""
        for buf in self._racing:
            if isinstance(buf.partition, Shadow):
                buf.partition.reset()

    def alloc_global(self, fr: Frame, slot: int, buffer: ir.Buffer, shape: tuple[int, ...]) -> None:
        """Scratch in global memory."""
        buf = Buf(buffer.name, buffer.dtype, "global", shape, 0, buffer.loc)
        buf.reserve()
        fr.mem[slot] = buf
        if buffer.data in self.compiled.aliased:
            buf.pin(())
            self.compiled.make_views(fr, slot)

    def blocks_of(self, fr: Frame) -> int:
        """How many blocks the frame runs."""
        n = 1
        for a in range(self.block_axes):
            n *= fr.size[a]
        return n


def _size_vars(p: ir.Param) -> set[ir.Var]:
    if p.buffer is None:
        return set()
    return {v for e in (*p.buffer.shape, *p.buffer.strides) for v in ir.walk(e) if isinstance(v, ir.Var)}


def _slot_of_var(comp: Compiler, v: ir.Var) -> int:
    key = comp.scope[v][0].key
    return int(key[2])


def _dtype_of(array: Any) -> str:
    """The dtype of an array behind a pointer."""
    name = str(getattr(array, "dtype", ""))
    if name not in dtypes.DTYPES:
        raise InputError(f"a pointer to {type(array).__name__} {name}", fix="a table of pointers is a list of tensors")
    return name


def _scalar(p: ir.Param, given: Any) -> Any:
    from tilelab.sim import arith

    if isinstance(given, str | bytes) or np.ndim(given) != 0:
        raise InputError(f"'{p.name}' is a scalar of {p.var.dtype}", fix="pass one number")
    return arith.scalar(p.var.dtype, np.asarray(given).item())


def _carried(p: ir.Param, array: Any, *, copy: bool) -> Any:
    """An input in its carrier dtype, C-contiguous, not shared with the caller if it may be written."""
    assert p.buffer is not None
    want = dtypes.storage(p.buffer.dtype)
    if array.dtype != want:
        same_bits = array.dtype.kind in "u" and array.dtype.itemsize == want.itemsize and dtypes.info(p.buffer.dtype).kind == "f"
        if not same_bits and not (want == np.bool_ and array.dtype in (np.uint8, np.int8)):
            raise InputError(f"'{p.name}' is {array.dtype}, but {p.buffer.dtype} is wanted", fix=f"convert it to {p.buffer.dtype}")
        array = array.view(want) if same_bits else array.astype(want)
    out = np.ascontiguousarray(dtypes.load(np.ascontiguousarray(array), p.buffer.dtype)).reshape(array.shape)
    return out.copy() if copy and np.shares_memory(out, array) else out

"""What if? Edited copies of a kernel, each lowered, and what changes: as a record, a table, text, HTML and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.analysis.banks import conflicts
from tilelab.analysis.budget import budget_findings
from tilelab.analysis.occupancy import occupancy
from tilelab.analysis.roofline import roofline
from tilelab.analysis.work import Work, work
from tilelab.artifact import Artifact
from tilelab.compiler import edits
from tilelab.compiler.front import capture
from tilelab.compiler.lowering import lower, threads_of
from tilelab.errors import InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.layout import Layout
from tilelab.machine import canonical_target, gpu

SCHEMA, VERSION = "tilelab.whatif", 1
_MOST = 256  # variants at a time
#: axis → how the Program is edited; the axis ``target`` edits nothing
_EDITS = {"num_stages": edits.with_stages, "threads": edits.with_threads, "pad": edits.with_padding}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variant:
    """One edited kernel. What is None is unknown: the kernel was refused, or there is no such limit.

    Attributes:
        edits: What was changed, by axis; empty for the kernel as it is written.
        target: Canonical target.
        threads: Threads of a block as lowered, the most of its kernels.
        smem_bytes: Shared memory of a block as lowered, the most of its kernels.
        smem_limit_bytes: Shared memory that a block may have on the target.
        source_lines: Lines of generated source that hold code.
        statements: Statements of the lowered program.
        registers: Registers of a thread, where the kernel was assembled.
        spill_bytes: Bytes of registers that spill to memory, likewise.
        blocks_per_sm: Blocks that an SM holds at once.
        occupancy: Which part of the warps of an SM they are.
        banks: Access of a warp (``row``, ``column``, ``ldmatrix``) → its passes over the banks, the most of any shared buffer.
        bytes_asked: Bytes of global memory that its accesses ask for, where that does not depend on data.
        least_s: No kernel with this work is faster on the target, in seconds (roofline).
        layouts: Names of buffers and loops whose layout is another than in the first variant (or is new).
        seconds: Time that lowering took.
        findings: Budgets that it breaks.
        refusal: Why it cannot be lowered.
        artifact: What it was lowered to.
    """

    edits: Mapping[str, int | str]
    target: str
    threads: int | None = None
    smem_bytes: int | None = None
    smem_limit_bytes: int | None = None
    source_lines: int | None = None
    statements: int | None = None
    registers: int | None = None
    spill_bytes: int | None = None
    blocks_per_sm: int | None = None
    occupancy: float | None = None
    banks: Mapping[str, int] = field(default_factory=dict)
    bytes_asked: int | None = None
    least_s: float | None = None
    layouts: tuple[str, ...] = ()
    seconds: float | None = None
    findings: tuple[Finding, ...] = ()
    refusal: Finding | None = None
    artifact: Artifact | None = field(default=None, repr=False)

    @property
    def runs(self) -> bool:
        """Whether it lowers and breaks no budget."""
        return self.refusal is None and not any(f.severity == "error" for f in self.findings)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WhatIf:
    """The outcome of :func:`whatif`: the kernel as it is written first, then each combination of the edits."""

    kernel: str
    axes: Mapping[str, tuple[int | str, ...]]
    variants: tuple[Variant, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the table as JSON values, with ``schema`` and ``version``."""
        rows = [_row(v) for v in self.variants]
        axes = {name: list(values) for name, values in self.axes.items()}
        return {"schema": SCHEMA, "version": VERSION, "kernel": self.kernel, "axes": axes, "variants": rows}

    def view(self, lang: str = "en") -> Any:
        """Return the table as a :class:`tilelab.views.View`: text, SVG, HTML, table."""
        return import_module("tilelab.views.whatif_view").whatif_view(self.to_json(), lang)  # a higher layer, asked for by name

    def to_text(self) -> str:
        """Return the table for a terminal."""
        return str(self.view().to_text())

    def to_html(self) -> str:
        """Return a self-contained page."""
        return str(self.view().to_html())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return text and HTML for a notebook."""
        bundle: dict[str, Any] = self.view()._repr_mimebundle_()
        return bundle


def whatif(
    kernel: Any,
    *tensors: Any,
    num_stages: Iterable[int] | int | None = None,
    threads: Iterable[int] | int | None = None,
    pad: Iterable[int] | int | None = None,
    target: Iterable[str] | str = "sm_80",
    consts: Mapping[str, Any] | None = None,
    assemble: bool = False,
) -> WhatIf:
    """Lower edited copies of a kernel and say what changes.

    Every combination of the values given is lowered, by itself, from an edited Program; the source stays as it is.

    Args:
        kernel: What :func:`tilelab.capture` takes, a Program included.
        tensors: Tensors that settle the sizes of an eager kernel.
        num_stages: Stages of every pipelined loop.
        threads: Threads of a block of every launch.
        pad: Unused elements after each row of the shared buffers of two axes or more (the layout is row-major then; 0: as it is).
        target: Targets. The first one is that of the kernel as it is written. Default: ``"sm_80"``.
        consts: Constants by name.
        assemble: Compile each for registers and spills; takes nvcc, and seconds a variant. Default: False.

    Raises:
        InputError: A value makes no sense for this kernel (no pipelined loop, no shared buffer), or there are too many combinations.
        KernelRefused: The kernel itself cannot be captured. One that cannot be lowered is a row that says why.
    """
    program = capture(kernel, *tensors, consts=consts)
    targets = tuple(dict.fromkeys(canonical_target(t) for t in _values(target)))
    if not targets:
        raise InputError("target=[] names no target", fix='for example target=["sm_80", "sm_90"]')
    given = {"num_stages": num_stages, "threads": threads, "pad": pad}
    axes: dict[str, tuple[int | str, ...]] = {name: _values(v) for name, v in given.items() if v is not None}
    if len(targets) > 1:
        axes["target"] = targets
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    if len(combinations) > _MOST:
        raise InputError(f"these are {len(combinations)} variants; {_MOST} is the most", fix="give fewer values")
    edited = [(changes, _edited(program, changes)) for changes in combinations if changes]
    first = _variant(program, {}, targets[0], None, assemble)
    rest = [_variant(one, changes, str(changes.get("target", targets[0])), first.artifact, assemble) for changes, one in edited]
    return WhatIf(kernel=program.name, axes=axes, variants=(first, *rest))


def _values(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, int | str) else tuple(given)


def _edited(program: ir.Program, changes: Mapping[str, Any]) -> ir.Program:
    for name, edit in _EDITS.items():
        if name in changes:
            program = edit(program, changes[name])
    return program


def _variant(program: ir.Program, changes: Mapping[str, Any], target: str, first: Artifact | None, assemble: bool) -> Variant:
    limit = _limit(target)
    budget = budget_findings(program, target)
    try:
        a = lower(program, target=target, assemble=assemble)
    except KernelRefused as refused:
        asked = threads_of(program) or None
        told = _unpadded(refused.finding, target) if changes.get("pad") else refused.finding
        return Variant(edits=changes, target=target, threads=asked, smem_limit_bytes=limit, findings=budget, refusal=told)
    smem = max((r.smem_bytes for r in a.resources.values()), default=0)
    if limit is not None and smem > limit and not any(f.code == "TL501" for f in budget):
        budget = (*budget, _too_much(smem, limit, target))
    registers = [r.registers for r in a.resources.values() if r.registers is not None]
    spills = [r.spill_bytes for r in a.resources.values() if r.spill_bytes is not None]
    return Variant(
        edits=changes,
        target=target,
        threads=max((r.threads for r in a.resources.values()), default=None),
        smem_bytes=smem,
        smem_limit_bytes=limit,
        source_lines=sum(1 for line in _code(a.source)),
        statements=sum(isinstance(s, ir.Stmt) for s in ir.walk(a.program)),
        registers=max(registers, default=None),
        spill_bytes=max(spills, default=None),
        **_held(a, target),
        banks=_banks(a),
        **_least(work(program), target),
        layouts=changed_layouts(first, a) if first is not None else (),
        seconds=float(a.attrs["seconds"]) if "seconds" in a.attrs else None,
        findings=budget,
        artifact=a,
    )


def _held(a: Artifact, target: str) -> dict[str, Any]:
    """The occupancy of the kernel that has the least."""
    found = []
    for r in a.resources.values():
        try:
            found.append(occupancy(target, threads=max(1, r.threads), smem_bytes=r.smem_bytes, registers=r.registers))
        except InputError:  # no GPU's limits are known for this target
            return {}
    least = min(found, key=lambda o: o.fraction, default=None)
    return {"blocks_per_sm": least.blocks_per_sm, "occupancy": round(least.fraction, 4)} if least else {}


def _banks(a: Artifact) -> dict[str, int]:
    out: dict[str, int] = {}
    for layout in a.all_layouts().values():
        for c in conflicts(layout) if layout.kind == "shared" else ():
            out[c["pattern"]] = max(out.get(c["pattern"], 0), c["after"] // max(1, c["ideal"]))
    return out


def _least(done: Work | None, target: str) -> dict[str, Any]:
    if done is None or not done.bytes_asked:
        return {}
    try:
        one = roofline(
            target, flops=done.flops, bytes=done.bytes_least or done.bytes_asked, dtype=done.dtype, matrix=bool(done.matrix_flops)
        )
    except InputError:
        return {"bytes_asked": done.bytes_asked}
    return {"bytes_asked": done.bytes_asked, "least_s": one.bound_s}


def _unpadded(told: Finding, target: str) -> Finding:
    """Say why padding cannot be had where an instruction wants its own layout."""
    if "different layout" not in told.message:
        return told
    message = f"For {target} TileLang lays the operands of its matrix instructions out itself, so they cannot be padded."
    return replace(told, code="TL402", message=message, fix="Leave the padding out: that layout keeps the banks apart.")


def _code(source: str) -> Iterable[str]:
    """Lines that hold code: no blank ones, no preprocessor, no lone braces."""
    return (line for line in map(str.strip, source.splitlines()) if line.strip("{};") and not line.startswith(("#", "//")))


def _limit(target: str) -> int | None:
    try:
        return gpu(target).smem_per_block_bytes
    except InputError:
        return None


def _too_much(smem: int, limit: int, target: str) -> Finding:
    message = f"A block takes {smem:,} bytes of shared memory once lowered; {gpu(target).name} gives it {limit:,}."
    return finding(
        "TL501", message, fix="Use fewer stages, less padding or a smaller tile.", evidence={"smem_bytes": smem, "limit_bytes": limit}
    )


# ------------------------------------------------------------------------------------------------- layouts
def changed_layouts(before: Artifact, after: Artifact) -> tuple[str, ...]:
    """Return the names of layouts of ``after`` that ``before`` has not, or has otherwise; versions made by pipelining are one layout."""
    ranks = {b.name: len(b.shape) for s in ir.walk(after.tile) if isinstance(s, ir.Block) for b in s.allocs}
    out = []
    for name, layout in after.layouts.items():
        known = before.layouts.get(name)
        if known is None or not _same(_pictures(known, ranks.get(name)), _pictures(layout, ranks.get(name))):
            out.append(name)
    return tuple(sorted(out))


def _pictures(layout: Layout, rank: int | None) -> list[Any]:
    if layout.map.thread is not None:
        return [layout.threads_of(), layout.registers()]
    places = layout.addresses()
    while rank is not None and places.ndim > rank:
        places = places[0]
    return [places]


def _same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


# ---------------------------------------------------------------------------------------------------- JSON
_PLAIN = (
    "target",
    "threads",
    "smem_bytes",
    "smem_limit_bytes",
    "source_lines",
    "statements",
    "registers",
    "spill_bytes",
    "blocks_per_sm",
    "occupancy",
    "bytes_asked",
    "least_s",
    "seconds",
    "runs",
)


def _row(v: Variant) -> dict[str, Any]:
    refusal = v.refusal.to_json() if v.refusal else None
    plain = {name: getattr(v, name) for name in _PLAIN}
    return {
        "edits": dict(v.edits),
        **plain,
        "banks": dict(v.banks),
        "layouts": list(v.layouts),
        "findings": [f.to_json() for f in v.findings],
        "refusal": refusal,
    }

"""The Artifact: what TileLang's compiler made of a Program for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tilelab.errors import InputError
from tilelab.finding import Finding
from tilelab.ir import Block, Const, Program, SourceLoc, walk
from tilelab.layout import Layout
from tilelab.layout_make import row_major


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """One compiler pass: its name, time and whether it changed the IR.

    ``after`` is the IR's text, where it changed and texts were kept (``lower(…, history=True)``).
    """

    name: str
    seconds: float
    changed: bool
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a kernel asks of the hardware. None means unknown (it takes nvcc to know registers)."""

    threads: int
    smem_bytes: int
    registers: int | None = None
    spill_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemSlot:
    """Where a buffer lies in the shared memory of a kernel. ``offset_bytes`` is None where the assembler decides."""

    kernel: str
    name: str
    dtype: str
    offset_bytes: int | None
    size_bytes: int
    scope: str = "shared.dyn"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """How a pipelined loop was planned: for each statement of its body, in the order of the source, stage and order.

    ``async_stages`` are the stages whose copies are asynchronous; ``locs`` the statements' lines, where known.
    """

    loop: str
    loc: SourceLoc | None
    num_stages: int
    stage: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    async_stages: tuple[int, ...] = ()
    statements: tuple[str, ...] = ()
    locs: tuple[SourceLoc | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """The outcome of lowering.

    Attributes:
        tile: The captured Program that was lowered.
        target: Canonical target, e.g. ``"sm_90a"``.
        program: The lowered device program (level ``"thread"``).
        source: Generated source (CUDA, HIP, …).
        layouts: Inferred layouts by buffer name; those of parallel loops under ``"loop at LINE"``.
        passes: The pass history in order.
        resources: By kernel name.
        findings: What lowering found (budgets, layouts).
        smem: The shared-memory map.
        pipelines: The planned software pipelines.
        ptx: PTX, where it was assembled (``lower(…, assemble=True)``), else empty.
        sass: Machine code as text, likewise; empty also where there is no nvdisasm.
        lines: ``"ptx"`` or ``"sass"`` → for each of its lines, the line of ``source`` that it comes from (1-based; 0: none).
        start: The IR's text before the first pass, where texts are kept.
        attrs: Other facts as text: ``tilelang`` (its version), ``seconds`` (of lowering), ``warp_specialized``.
    """

    tile: Program
    target: str
    program: Program
    source: str
    layouts: Mapping[str, Layout]
    passes: tuple[PassRecord, ...]
    resources: Mapping[str, Resources]
    findings: tuple[Finding, ...] = ()
    smem: tuple[SmemSlot, ...] = ()
    pipelines: tuple[PipelinePlan, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)
    ptx: str = ""
    sass: str = ""
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    start: str = ""

    def text_before(self, which: int) -> str:
        """Return the IR's text before pass ``which``: that after the last pass before it that changed something.

        Raises:
            InputError: No texts were kept.
        """
        return next((p.after for p in reversed(self.passes[:which]) if p.after), "") or self._kept(self.start)

    def text_after(self, which: int) -> str:
        """Return the IR's text after pass ``which``, whether it changed something or not.

        Raises:
            InputError: No texts were kept.
        """
        return self.passes[which].after or self.text_before(which)

    @staticmethod
    def _kept(text: str) -> str:
        if not text:
            raise InputError("the texts of the passes were not kept", fix="lower with history=True")
        return text

    def all_layouts(self) -> dict[str, Layout]:
        """Return ``layouts``, shared ones where they lie in shared memory, and the shared buffers that have none: those are row-major."""
        starts = {slot.name: slot.offset_bytes for slot in self.smem}
        found = {name: replace(one, offset_bytes=starts.get(name)) if one.kind == "shared" else one for name, one in self.layouts.items()}
        for n in walk(self.tile):
            for b in n.allocs if isinstance(n, Block) else ():
                extents = [int(e.value) for e in b.shape if isinstance(e, Const)]
                if b.name not in found and b.scope in ("shared", "shared.dyn") and extents and len(extents) == len(b.shape):
                    plain = row_major(extents, dtype=b.dtype, name=b.name)
                    found[b.name] = replace(plain, scope=b.scope, loc=b.loc, offset_bytes=starts.get(b.name))
        return found

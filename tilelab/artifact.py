"""The Artifact: what TileLang's compiler made of a Program for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelab.finding import Finding
from tilelab.ir import Program
from tilelab.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRecord:
    """One compiler pass: its name, time and whether it changed the IR. ``after`` is the IR's text, where kept."""

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
class Artifact:
    """The outcome of lowering.

    Attributes:
        tile: The captured Program that was lowered.
        target: Canonical target, e.g. ``"sm_90a"``.
        program: The lowered device program (level ``"thread"``).
        source: Generated source (CUDA, HIP, …).
        layouts: Inferred layouts by buffer name.
        passes: The pass history in order.
        resources: By kernel name.
        findings: What lowering found (budgets, layouts).
    """

    tile: Program
    target: str
    program: Program
    source: str
    layouts: Mapping[str, Layout]
    passes: tuple[PassRecord, ...]
    resources: Mapping[str, Resources]
    findings: tuple[Finding, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)

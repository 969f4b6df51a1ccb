"""The pipeline view: which statement of which iteration runs in which step, what the buffers hold then, and what other depths would do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from tilelab import ir
from tilelab.analysis import pipeline as analysis
from tilelab.analysis.roles import role_schedules
from tilelab.analysis.shared import shared_use
from tilelab.artifact import Artifact
from tilelab.errors import InputError
from tilelab.machine import canonical_target, gpu
from tilelab.schedule import Schedule
from tilelab.views.schema_pipeline import PipelineLoop, PipelinePlanRecord
from tilelab.views.view import View


def pipeline(
    source: Any,
    loop: str | int | None = None,
    *,
    target: str = "sm_80",
    consts: Mapping[str, Any] | None = None,
    stages: Sequence[int] = (1, 2, 3, 4, 5),
    order: Sequence[int] | None = None,
    stage: Sequence[int] | None = None,
    shown: int = 0,
    lang: str = "en",
) -> View:
    """Show the schedule of a kernel's pipelined loops, and of roles that wait for each other by hand.

    Args:
        source: A kernel (it is lowered, so that the plan is TileLang's own), an Artifact, a captured Program (TileLang's rule is applied,
            nothing is lowered) or a Schedule.
        loop: Which loop is shown first: its variable, or its line. Default: the first.
        target: What a kernel is lowered for; its GPU's shared memory is the limit. Default: ``"sm_80"``.
        consts: Constants of the kernel.
        stages: Depths to set beside it. Default: 1 to 5.
        order: An order to try by hand, one number a statement; with ``stage``.
        stage: A stage to try by hand, one number a statement.
        shown: Iterations to lay out. Default: enough for the steady state.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Raises:
        InputError: The kernel has no pipelined loop, there is no such loop, or only one of ``order`` and ``stage`` is given.
    """
    if isinstance(source, Schedule):
        record = _loop_record([source], 0, 0)
        data = {"kernel": "", "target": "", "gpu": "", "limit_bytes": 0, "axis": "steps", "loops": [record], "selected": 0}
        return View(kind="pipeline", title=source.loop, data=data, lang=lang)
    if (order is None) != (stage is None):
        raise InputError("order and stage go together", fix="give one number for each statement of the loop in both")
    origin, program = _source(source, target, consts)
    name, limit, canonical = _limit(origin.target if isinstance(origin, Artifact) else target)
    own, by_roles = analysis.schedules(origin, shown=shown), role_schedules(program, shown=shown)
    if not own and not by_roles:
        raise InputError(
            f"{program.name} has no pipelined loop and no roles that wait for each other",
            fix="look at a kernel with `for k in T.Pipelined(n, num_stages=…)`",
        )
    records = []
    for one, at in zip(own, analysis.pipelined_loops(program), strict=True):
        roles = one.basis == "roles"
        first = analysis.by_hand(at, order, stage, shown=shown) if order is not None and stage is not None else one
        plans = [first, *analysis.what_if(at, stages, roles=roles, shown=shown)]
        records.append(_loop_record(plans, _other_bytes(program, at, plans), limit))
    kernel_bytes = max((u.bytes for u in shared_use(program)), default=0)
    records += [_loop_record([s], max(0, kernel_bytes - s.smem_bytes), limit) for s in by_roles]
    data = {
        "kernel": program.name, "target": canonical, "gpu": name, "limit_bytes": limit, "axis": "steps", "loops": records,
        "selected": _select(records, loop),
    }  # fmt: skip
    return View(kind="pipeline", title=program.name, data=data, lang=lang)


def _source(source: Any, target: str, consts: Mapping[str, Any] | None) -> tuple[ir.Program | Artifact, ir.Program]:
    if isinstance(source, ir.Program):
        return source, source
    artifact = source if isinstance(source, Artifact) else import_module("tilelab.compiler").lower(source, target=target, consts=consts)
    return artifact, artifact.tile


def _limit(target: str) -> tuple[str, int, str]:
    """The GPU's name, its shared memory a block, and the target; no limit where none is known."""
    canonical = canonical_target(target)
    try:
        machine = gpu(target)
    except InputError:
        return "", 0, canonical
    return machine.name, machine.smem_per_block_bytes, canonical


def _select(records: Sequence[PipelineLoop], loop: str | int | None) -> int:
    if loop is None:
        return 0
    for k, r in enumerate(records):
        if str(loop) in (r["name"], str(r["line"])):
            return k
    names = ", ".join(f"{r['name']} (line {r['line']})" for r in records)
    raise InputError(f"no pipelined loop is called {loop!r}", fix=f"there is {names}")


def _other_bytes(program: ir.Program, loop: ir.For, plans: Sequence[Schedule]) -> int:
    """Shared memory that the kernel around ``loop`` uses besides the loop's buffers."""
    mine = {b.name for p in plans for b in p.buffers}
    for use in shared_use(program):
        if any(n is loop for n in ir.walk(use.launch.body)):
            return sum(b.bytes for b in use.peak if b.buffer.name not in mine)
    return 0


def _loop_record(plans: Sequence[Schedule], other: int, limit: int) -> PipelineLoop:
    first = plans[0]
    return {
        "name": first.loop,
        "file": first.loc.file if first.loc else "",
        "line": first.loc.line if first.loc else 0,
        "iterations": first.iterations,
        "plans": [record(p, other, limit) for p in plans],
    }


def record(s: Schedule, other: int = 0, limit: int = 0) -> PipelinePlanRecord:
    """Return what the view draws of one schedule; ``other``: shared memory outside the loop, ``limit``: of a block (0: unknown)."""
    names = [b.name for b in s.buffers]
    total = s.smem_bytes + other
    everything: Any = {
        "basis": s.basis,
        "num_stages": s.num_stages,
        "steps": s.steps,
        "shown": s.shown,
        "lanes": list(s.lanes),
        "statements": [
            {
                "text": w.text, "lane": s.lanes.index(w.lane), "stage": w.stage, "order": w.order, "asynchronous": w.is_async,
                "reads": list(w.reads), "writes": list(w.writes), "file": w.loc.file if w.loc else "", "line": w.loc.line if w.loc else 0,
            }
            for w in s.statements
        ],
        "cells": [
            {"statement": c.statement, "step": c.step, "iteration": c.iteration, "start_ns": c.start_ns, "end_ns": c.end_ns}
            for c in s.slots
        ],
        "phases": [{"key": key, "first": first, "end": end} for key, (first, end) in s.phases.items()],
        "buffers": [
            {"name": b.name, "dtype": b.dtype, "scope": b.scope, "bytes": b.version_bytes, "versions": b.versions} for b in s.buffers
        ],
        "held": [
            {"buffer": names.index(h.buffer), "version": h.version, "iteration": h.iteration, "written": h.written, "read": h.read,
             "last": h.last}
            for h in s.held
        ],
        "alive": list(s.alive_bytes()),
        "smem_bytes": s.smem_bytes,
        "kernel_bytes": total,
        "fits": not limit or total <= limit,
        "overlap": s.overlap,
        "findings": [f.to_json() for f in s.findings],
    }  # fmt: skip
    return cast(PipelinePlanRecord, everything)

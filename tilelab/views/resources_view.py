"""The resources view: what a kernel asks of a GPU and what that allows, the roofline with its points, and where it would run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any, cast

from tilelab import ir
from tilelab.analysis.expr import const_int
from tilelab.analysis.occupancy import occupancy
from tilelab.analysis.roofline import roofline
from tilelab.analysis.runs import verdict
from tilelab.analysis.shared import shared_use
from tilelab.analysis.work import Work, work
from tilelab.artifact import Artifact, Resources
from tilelab.errors import InputError
from tilelab.machine import GPUS, Gpu, canonical_target, gpu, is_nvidia
from tilelab.trace import Trace
from tilelab.views.schema_resources import ResourceGpu, ResourceKernel, ResourcePoint, ResourceRoofline
from tilelab.views.view import View

_RECORDS = Path(__file__).parent.parent / "bench" / "records"
_NAMED_BARRIERS = 16  # PTX ISA, "bar": barriers 0 to 15 of a CTA
_NEAR = 0.02  # a record is of this work if its FLOPs are this close


def resources(
    source: Any,
    gpu_name: str | None = None,
    *,
    target: str = "sm_80",
    consts: Mapping[str, Any] | None = None,
    gpus: Sequence[str] | None = None,
    trace: Trace | None = None,
    measured_s: float | None = None,
    lang: str = "en",
) -> View:
    """Show what a kernel asks of the hardware.

    Args:
        source: A kernel (it is lowered), an Artifact, or a captured Program (what can be known without lowering).
        gpu_name: The GPU shown first, e.g. ``"H100"``. Default: that of the target.
        target: What a kernel is lowered for. Default: ``"sm_80"``.
        consts: Constants of the kernel.
        gpus: GPUs to compare. Default: all whose limits are known.
        trace: A run of the kernel: its counts of arithmetic are used instead of the predicted ones.
        measured_s: A measured time in seconds on ``gpu_name``. Default: that of a record of this repository, where there is one.
        lang: Language of the fixed words, ``"en"`` or ``"zh"``.

    Raises:
        InputError: A GPU or the target is unknown.
    """
    if isinstance(source, ir.Program):
        artifact, program = None, source
    else:
        artifact = source if isinstance(source, Artifact) else import_module("tilelab.compiler").lower(source, target=target, consts=consts)
        program = artifact.tile
    canonical = artifact.target if artifact is not None else canonical_target(target)
    chosen = _chosen(gpu_name, target, canonical)
    machines = [gpu(name) for name in gpus] if gpus is not None else list(GPUS)
    if all(g.name != chosen.name for g in machines):
        machines.insert(0, chosen)
    done = _work(program, trace)
    asks, plain = _asks(program, artifact), _asks(program, None)
    exact = {g.name for g in machines if g.target == canonical or g is chosen}  # elsewhere, what can be told from the source
    records = [_gpu(program, g, asks if g.name in exact else plain, done, measured_s if g is chosen else None) for g in machines]
    data = {
        "kernel": program.name,
        "target": canonical,
        "lowered": artifact is not None,
        "flops": done.flops if done else None,
        "bytes_asked": done.bytes_asked if done else None,
        "bytes_least": done.bytes_least if done else None,
        "dtype": done.dtype if done else "",
        "matrix_share": done.matrix_share if done else None,
        "gpus": records,
        "selected": next(k for k, g in enumerate(machines) if g.name == chosen.name),
    }
    return View(kind="resources", title=program.name, data=data, lang=lang)


def _chosen(name: str | None, target: str, canonical: str) -> Gpu:
    for text in (name,) if name else (target, canonical):
        try:
            return gpu(text)
        except InputError:
            if name:
                raise
    return gpu("sm_80")


def _work(program: ir.Program, trace: Trace | None) -> Work | None:
    done = work(program)
    counts = trace.counts if trace is not None else {}
    if done is None or not counts.get("flops"):
        return done
    asked = counts.get("bytes_read", 0) + counts.get("bytes_written", 0) or done.bytes_asked
    return Work(matrix_flops={done.dtype: counts["flops"]}, vector_flops=done.vector_flops, bytes_asked=asked, bytes_least=done.bytes_least)


# ------------------------------------------------------------------------------------------------ what it asks
def _asks(program: ir.Program, artifact: Artifact | None) -> dict[str, tuple[Resources, int, int | None, int | None]]:
    """Kernel → (resources, blocks of the grid, mbarriers, named barriers), as lowered or, without that, as can be told from the source."""
    launches = [n for n in ir.walk(program) if isinstance(n, ir.Launch)]
    grids = [prod(const_int(e) or 0 for e in n.grid) for n in launches]
    if artifact is None:
        uses = shared_use(program)
        names = [program.name] if len(uses) == 1 else [f"{program.name}_{k}" for k in range(len(uses))]
        return {
            name: (Resources(threads=prod(const_int(e) or 1 for e in u.launch.threads), smem_bytes=u.bytes), grid, None, None)
            for name, u, grid in zip(names, uses, grids, strict=True)
        }
    found: dict[str, tuple[Resources, int, int | None, int | None]] = {}
    lowered = [n for n in ir.walk(artifact.program) if isinstance(n, ir.Launch)]
    for k, (name, r) in enumerate(artifact.resources.items()):
        body = next((n for n in lowered if n.attrs.get("kernel") == name), None)
        grid = prod(const_int(e) or 0 for e in body.grid) if body is not None else grids[k] if k < len(grids) else 0
        objects = sum(s.size_bytes // 8 for s in artifact.smem if s.kernel == name and "barrier" in s.scope)
        found[name] = (r, grid, objects, _named(body) if body is not None else None)
    return found


def _named(launch: ir.Launch) -> int:
    """How many of a block's named barriers are used, number 0 of the whole block among them."""
    numbers = {0} if any(isinstance(n, ir.Call) and "sync" in n.op for n in ir.walk(launch.body)) else set()
    for n in ir.walk(launch.body):
        if isinstance(n, ir.Call) and n.op in ("tirx.tvm_storage_sync", "tl.sync_threads_partial") and len(n.args) > 1:
            number = const_int(n.args[1])
            numbers |= {number} if number is not None else set()
    return len(numbers)


# ----------------------------------------------------------------------------------------------------- a GPU
def _gpu(program: ir.Program, g: Gpu, asks: Mapping[str, Any], done: Work | None, measured_s: float | None) -> ResourceGpu:
    v = verdict(program, g.name)
    over = [name for name, (r, *_rest) in asks.items() if r.smem_bytes > g.smem_per_block_bytes or r.threads > g.threads_per_block]
    return {
        "name": g.name,
        "target": g.target,
        "sms": g.sms,
        "source": g.source,
        "kernels": [_kernel(g, name, *ask) for name, ask in asks.items()],
        "roofline": _roofline(program, g, done, measured_s),
        "runs": v.runs and not over,
        "change": v.change,
        "tried": v.tried,
        "findings": [f.to_json() for f in v.findings],
    }


def _kernel(g: Gpu, name: str, r: Resources, grid: int, mbarriers: int | None, named: int | None) -> ResourceKernel:
    held = occupancy(g.name, threads=max(1, r.threads), smem_bytes=r.smem_bytes, registers=r.registers)
    waves = held.waves(grid) if grid and held.blocks_per_sm else 0.0
    uses: list[Any] = [
        {"key": "block_smem", "used": r.smem_bytes, "limit": g.smem_per_block_bytes, "unit": "bytes"},
        {"key": "block_threads", "used": r.threads, "limit": g.threads_per_block, "unit": ""},
        {"key": "thread_registers", "used": r.registers, "limit": g.registers_per_thread, "unit": ""},
    ]
    if is_nvidia(g.target):
        uses.append({"key": "named_barriers", "used": named, "limit": _NAMED_BARRIERS, "unit": ""})
        uses.append({"key": "mbarriers", "used": mbarriers, "limit": None, "unit": ""})
    return {
        "name": name,
        "uses": uses,
        "blocks": held.blocks_per_sm,
        "warps": held.warps_per_sm,
        "warps_most": g.warps_per_sm,
        "warps_of_block": -(-max(1, r.threads) // g.warp),
        "occupancy": round(held.fraction, 6),
        "limits": [{"key": f"limit_{key}", "blocks": n, "binds": key in held.limited_by} for key, n in held.limits.items()],
        "registers_known": held.registers_known,
        "grid": grid,
        "waves": round(waves, 3),
    }


def _roofline(program: ir.Program, g: Gpu, done: Work | None, measured_s: float | None) -> ResourceRoofline | None:
    if done is None or done.flops + done.bytes_least <= 0 or not done.bytes_asked:
        return None
    dtype, matrix, label = done.dtype, bool(done.matrix_flops), ""
    if measured_s is None:
        measured_s, label = _record(program, g, done)
    points: list[ResourcePoint] = []
    try:
        for key, moved in (("asked", done.bytes_asked), ("least", done.bytes_least)):
            if moved:
                one = roofline(g.name, flops=done.flops, bytes=moved, dtype=dtype, matrix=matrix, measured_s=measured_s)
                points.append(_point(key, one.intensity, done.flops, one.bound_s, one.bound, ""))
        one = roofline(g.name, flops=done.flops, bytes=done.bytes_least or done.bytes_asked, dtype=dtype, matrix=matrix)
    except InputError:
        return None  # this GPU does not compute in that dtype
    if measured_s is not None:
        points.append(_point("measured", one.intensity, done.flops, measured_s, one.bound, label))
    bandwidth = g.memory_bytes_per_s
    return {"dtype": dtype, "peak": one.ridge * bandwidth, "bandwidth": bandwidth, "ridge": one.ridge, "points": points}


def _point(key: str, intensity: float, flops: int, seconds: float, bound: str, label: str) -> ResourcePoint:
    rate = flops / seconds if seconds else 0.0
    found: Any = {
        "key": f"point_{key}",
        "intensity": intensity,
        "rate": rate,
        "seconds": seconds,
        "bound": f"bound_{bound}",
        "label": label,
    }
    return cast(ResourcePoint, {k: v if not isinstance(v, float) or math.isfinite(v) else 0.0 for k, v in found.items()})


def _record(program: ir.Program, g: Gpu, done: Work) -> tuple[float | None, str]:
    """The time of this work among the repository's records: of the same family of kernels, on this GPU, and with as many FLOPs."""
    family = next((name.replace("\\", "/").rpartition("/")[2].removesuffix(".py") for name in program.sources if "kernels" in name), "")
    for file in sorted(_RECORDS.glob("*.json")) if family else ():
        record = json.loads(file.read_text(encoding="utf-8"))
        if g.name not in str(record.get("environment", {}).get("device", "")):
            continue
        for row in record["rows"]:
            seconds = row.get("ours", {}).get("burst_us", 0) * 1e-6
            if row.get("family") == family and seconds and abs(row["tflop_s"] * 1e12 * seconds / done.flops - 1) < _NEAR:
                return seconds, str(row["name"])
    return None, ""

"""What lowering says of a verified Program: whether it lowers at all, its budgets, and the figures that puzzles count."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tilelab import ir
from tilelab.artifact import Artifact
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.grader import isolate, wire
from tilelab.grader.sandbox import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The outcome of lowering one Program.

    Attributes:
        findings: What lowering found; one of severity error means that it does not lower.
        figures: ``smem_bytes`` and ``threads`` (of the largest kernel), ``tensor_core`` (1 where the code uses them), ``occupancy``,
            and the requests to memory (:mod:`tilelab.grader.requests`).
        source: The generated source.
    """

    findings: tuple[Finding, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


_KEPT = 64
_known: OrderedDict[tuple[str, str], Facts] = OrderedDict()


def lowering_facts(program: ir.Program, target: str) -> Facts:
    """Lower ``program`` for ``target``, from a cache where its content was lowered before.

    Raises:
        EnvironmentLacks: Lowering is not possible on this machine.
    """
    from tilelab import serde

    key = (serde.digest(program), target)
    if key not in _known:
        _known[key] = _facts_of(_ask(serde.dumps(program), target))
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return _known[key]


def _ask(data: Any, target: str, element: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Ask for the facts of a lowering, or who writes an element, where TVM may crash without harm."""
    blob = data if isinstance(data, bytes) else data.encode()
    if not isolate.can_fork() or ("tilelang" in sys.modules and not isolate.fork_server().running):
        # a notebook's process has TileLang already: a second one would only take time and memory
        return owner(blob, target, element) if element else facts(blob, target)
    limits = Limits(cpu_seconds=120, wall_seconds=180, output_bytes=1 << 20)
    request = {"job": "lower", "target": target, "element": element, "limits": asdict(limits)}
    answer, frames = isolate.fork_server().ask(request, (blob,))
    return wire_facts(answer, frames)


def wire_facts(answer: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """Read the frames of a lowering; TVM may have crashed on the way, which is a finding and no fault of the grader."""
    import json

    try:
        for tag, body in wire.parse(data):
            if tag == wire.FACTS:
                out: dict[str, Any] = json.loads(body)
                return out
    except wire.Garbled:
        pass
    said = str(answer.get("output", "")).strip().splitlines()
    why = "took too long" if answer.get("cut") == "time" else f"ended with status {answer.get('status')}{': ' + said[-1] if said else ''}"
    return {"findings": [finding("TL702", f"TileLang's compiler {why} while lowering this kernel", fix="make it smaller").to_json()]}


def facts(data: bytes, target: str) -> dict[str, Any]:
    """Lower a serialised Program and return what a grade needs of it, as JSON values."""
    from tilelab import serde
    from tilelab.compiler import lower

    try:
        artifact = lower(serde.loads(data, ir.Program), target=target)
    except KernelRefused as refused:
        return {"findings": [refused.finding.to_json()]}
    except EnvironmentLacks as e:
        return {"lacks": [e.message, e.fix]}
    return {"findings": [f.to_json() for f in artifact.findings], "figures": _figures(artifact), "source": artifact.source}


def _figures(artifact: Artifact) -> dict[str, float]:
    from tilelab.analysis.occupancy import occupancy
    from tilelab.grader.requests import request_figures

    resources = artifact.resources.values()
    tensor_core = any(isinstance(n, ir.Call) and "mma" in n.op for n in ir.walk(artifact.program))
    out = {
        "smem_bytes": max((r.smem_bytes for r in resources), default=0),
        "threads": max((r.threads for r in resources), default=0),
        "tensor_core": int(tensor_core or "mma_sync" in artifact.source or "wgmma" in artifact.source),
        **request_figures(artifact.program),
    }
    try:
        out["occupancy"] = min(occupancy(artifact.target, threads=r.threads, smem_bytes=r.smem_bytes).fraction for r in resources)
    except (InputError, ValueError):  # no kernel, or no GPU of NVIDIA's
        pass
    return out


def writing_thread(program: ir.Program, param: str, index: tuple[int, ...], block: tuple[int, int, int], target: str) -> int | None:
    """Return which thread of ``block`` writes element ``index`` of a parameter once lowered, or None where that is not known."""
    from tilelab import serde

    element = {"param": param, "index": list(index), "block": list(block)}
    try:
        answer = _ask(serde.dumps(program), target, element)
    except EnvironmentLacks:
        return None
    thread = answer.get("thread")
    return thread if isinstance(thread, int) else None


def owner(data: bytes, target: str, element: Mapping[str, Any]) -> dict[str, Any]:
    """Lower a serialised Program and look for the thread that writes an element: see :func:`writing_thread`."""
    from tilelab import serde
    from tilelab.compiler import lower
    from tilelab.grader.requests import storing_thread

    try:
        artifact = lower(serde.loads(data, ir.Program), target=target)
    except (KernelRefused, EnvironmentLacks):
        return {}
    thread = storing_thread(artifact.program, element["param"], tuple(element["index"]), tuple(element["block"]))
    return {} if thread is None else {"thread": thread}


def _facts_of(data: Mapping[str, Any]) -> Facts:
    if "lacks" in data:
        raise EnvironmentLacks(data["lacks"][0], fix=data["lacks"][1])
    findings = tuple(isolate.finding_of(f) for f in data["findings"])
    return Facts(findings=findings, figures=data.get("figures", {}), source=data.get("source", ""))

"""Which picture says more about a report: from what went wrong to the view that shows it."""

from __future__ import annotations

import re

from tilelab.grader.report import Report
from tilelab.grader.spec import Spec

#: first digits of a finding code → the kind of view
_VIEWS = {"TL1": "trace", "TL2": "trace", "TL3": "trace", "TL4": "layout", "TL5": "resources", "TL60": "memory"}
_SAYS = {
    "trace": "step through the block",
    "layout": "the layout of {name}",
    "pipeline": "its pipeline",
    "resources": "its resources",
    "memory": "its memory accesses",
    "program": "its program",
}
_SLOW = {"overlap": "pipeline", "smem_bytes": "resources", "threads": "resources", "occupancy": "resources", "excess_wavefronts": "layout",
         "wavefronts": "layout", "sectors": "program", "tensor_core": "program", "bytes_moved": "program", "speed": "pipeline"}  # fmt: skip


def pictures(spec: Spec, report: Report) -> tuple[tuple[str, str], ...]:
    """Return what to look at, at most three: what each picture shows, and the Python that draws it."""
    kinds: list[str] = []
    if report.first_wrong is not None and spec.layout is None:
        kinds.append("trace")
    for f in report.findings:
        if f.severity != "info":
            kinds += [view for head, view in _VIEWS.items() if f.code.startswith(head)]
    kinds += [_SLOW[n] for n, f in report.counts.items() if f.points < f.most and n in _SLOW]
    kinds += [_SLOW[c.name] for c in report.checks if not c.passed and c.name in _SLOW]
    if spec.layout is not None:
        kinds = ["layout"] if not report.passed or kinds else []
    shown = [(_SAYS[k].format(name=spec.entry), _code(spec, report, k)) for k in dict.fromkeys(kinds) if k in _drawn()][:2]
    if report.passed and report.score < report.max:
        shown.append(("yours beside the target", f'tilelab.puzzle("{spec.number}").show({spec.entry})'))
    return tuple(shown)


def _drawn() -> set[str]:
    """The views that there are."""
    from tilelab import view

    return {"trace", *(k for k in _SAYS if hasattr(view, k))}


def _code(spec: Spec, report: Report, kind: str) -> str:
    sizes = dict(spec.visible[0] if spec.visible else spec.count_sizes)
    if kind == "trace" and report.first_wrong is not None:  # the block that is wrong is one of that case
        sizes = {k: int(v) for k, v in re.findall(r"(\w+) = (\d+)", report.first_wrong.case)} or sizes
    given = ", ".join(f"{k}={v}" for k, v in sizes.items())
    if spec.layout is not None:
        return f"tilelab.view.layout({spec.entry}({given}))"
    consts = f"consts=dict({given})" if given else ""
    if kind == "trace":
        block = report.first_wrong.block if report.first_wrong and report.first_wrong.block else None
        return f"tilelab.debug({', '.join(x for x in (spec.entry, f'block={block}' if block else '', consts) if x)})"
    return f"tilelab.view.{kind}({', '.join(x for x in (spec.entry, consts) if x)})"

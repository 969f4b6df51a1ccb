"""``tilelab bench sim``: the simulator timed on a few kernels, side by side with what one would use instead.

For each case, in one run: the simulator with checks on and off, torch in float32 on the upcast inputs (conversions
included), and Triton's interpreter on an equal kernel where Triton is installed. Times are wall-clock, warm: each variant
runs once before it is timed. Every result is compared with numpy first, so that nothing wrong is ever timed.
"""

from __future__ import annotations

import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilelab.bench import sim_startup
from tilelab.errors import EnvironmentLacks, InputError

SCHEMA, VERSION = "tilelab.bench.sim", 1
#: variants in the order in which they are shown
VARIANTS = ("checks", "no checks", "torch", "triton")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kernel: ``kernel`` of :mod:`tilelab.bench.sim_kernels` with ``consts``, its inputs and what it should give."""

    name: str
    what: str
    kernel: str
    consts: Mapping[str, int]
    inputs: Mapping[str, tuple[tuple[int, ...], str]]
    output: str
    reference: Callable[..., Any]
    torch: Callable[..., Any]
    triton: Callable[[Any], Callable[..., Any]] | None = None
    tolerance: float = 1e-5
    bars: Mapping[str, float] = field(default_factory=dict)


def _f32(a: Any) -> Any:
    return a.astype(np.float32)


def _softmax(a: Any) -> Any:
    e = np.exp(a - a.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _matmul_case(n: int, bm: int, bn: int, bk: int, bars: Mapping[str, float], triton: bool) -> Case:
    return Case(
        name=f"matmul {n}³",
        what=f"float16 matmul {n}³ in {bm}×{bn}×{bk} tiles",
        kernel="matmul",
        consts={"n": n, "bm": bm, "bn": bn, "bk": bk},
        inputs={"A": ((n, n), "float16"), "B": ((n, n), "float16")},
        output="C",
        reference=lambda A, B: _f32(A) @ _f32(B),
        torch=lambda A, B: (A.float() @ B.float()).half(),
        triton=(lambda t: t.matmul((bm, bn, bk))) if triton else None,
        tolerance=2e-3,
        bars=bars,
    )


#: ``bars``: "seconds" is the most that checks on may take; other names, how many times faster (below 1: slower) than that variant.
CASES: tuple[Case, ...] = (
    Case(
        name="row sum", what="row sum of float32 1024×1024, a row a block", kernel="row_sum", consts={},
        inputs={"A": ((1024, 1024), "float32")}, output="C", reference=lambda A: A.astype(np.float64).sum(1),
        torch=lambda A: A.sum(1), triton=lambda t: t.row_sum, tolerance=1e-3, bars={"seconds": 0.1},
    ),
    _matmul_case(512, 64, 64, 32, {"seconds": 0.1, "triton": 50}, triton=True),
    Case(
        name="vector add", what="float32 1M in 1024 blocks", kernel="add", consts={},
        inputs={"A": ((1 << 20,), "float32"), "B": ((1 << 20,), "float32")}, output="C", reference=lambda A, B: A + B,
        torch=lambda A, B: A + B, triton=lambda t: t.add, bars={"triton": 100},
    ),
    Case(
        name="softmax", what="float32 1024×1024, a row a block", kernel="softmax", consts={},
        inputs={"A": ((1024, 1024), "float32")}, output="C", reference=_softmax, torch=lambda A: A.softmax(1),
        triton=lambda t: t.softmax, bars={"triton": 200},
    ),
    _matmul_case(1024, 128, 128, 32, {"torch": 0.1}, triton=False),
    Case(
        name="65,536 blocks", what="elementwise float32, 65,536 blocks × 1024", kernel="scale", consts={},
        inputs={"A": ((1 << 26,), "float32")}, output="C", reference=lambda A: A * np.float32(2) + np.float32(1),
        torch=lambda A: A * 2 + 1, bars={"seconds": 0.3},
    ),
)  # fmt: skip
_CHECKS_FACTOR = 3.0  # checks on take at most this many times as long as checks off


def run(
    cases: Sequence[str] = (),
    *,
    seconds: float = 2.0,
    variants: Sequence[str] = VARIANTS,
    rounds: int = 1,
    progress: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Time the cases and return the record.

    Args:
        cases: Names (or parts of names) of the cases; all if empty.
        seconds: How long to time each variant of each case.
        variants: Which variants.
        rounds: How often to go through all of them; their spread tells what the machine's other work costs.
        progress: Called with a line before each measurement.

    Raises:
        InputError: No case has such a name.
        EnvironmentLacks: TileLang or torch is missing.
    """
    chosen = [c for c in CASES if not cases or any(n.lower() in c.name for n in cases)]
    if not chosen:
        raise InputError(f"no case of 'bench sim' is called {' or '.join(cases)}", fix=f"Known: {', '.join(c.name for c in CASES)}")
    triton, why_not = _triton() if "triton" in variants else (None, "left out")
    samples: dict[tuple[str, str], list[list[float]]] = {}
    load = [_load()]
    for turn in range(rounds):
        for case in chosen:
            inputs = _inputs(case)
            for variant, call in _calls(case, inputs, triton, variants).items():
                progress(f"{case.name}: {variant} …" + (f" (round {turn + 1} of {rounds})" if rounds > 1 else ""))
                _verify(case, inputs, variant, call())
                samples.setdefault((case.name, variant), []).append(_time(call, seconds))
        load.append(_load())
    what = {c.name: c.what for c in chosen}
    results = [{"case": name, "what": what[name], "variant": variant, **_summary(found)} for (name, variant), found in samples.items()]
    started = sim_startup.measure() if not cases else None
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "machine": {**_machine(triton), "load": load},
        "notes": [] if triton else [f"Triton's interpreter was not timed: {why_not}"],
        "results": results,
        **({"start": started["seconds"]} if started else {}),
        "bars": [*_bars(chosen, results), *(started["bars"] if started else [])],
    }


def table(record: Mapping[str, Any]) -> str:
    """Return the record as a table: medians in milliseconds with their spread, and how much faster the simulator is."""
    rows: list[tuple[str, ...]] = [("case", *VARIANTS, "torch/checks", "triton/checks")]
    by_case: dict[str, dict[str, Any]] = {}
    for r in record["results"]:
        by_case.setdefault(r["case"], {})[r["variant"]] = r
    for name, found in by_case.items():
        cells = [f"{found[v]['median_ms']:.3g} ±{found[v]['spread_ms']:.2g}" if v in found else "–" for v in VARIANTS]
        ours = found.get("checks")
        ratios = [f"{found[v]['median_ms'] / ours['median_ms']:.3g}×" if ours and v in found else "–" for v in ("torch", "triton")]
        rows.append((name, *cells, *ratios))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))) for row in rows
    ]
    lines.insert(1, "  ".join("─" * w for w in widths))
    met = [
        f"{'ok  ' if b['met'] else 'MISS'} {b['case']}: {b['text']} (here {b['value']:.3g}, of the quickest runs {b['least']:.3g})"
        for b in record["bars"]
    ]
    return "\n".join(["milliseconds, median ± half the middle half's width", *lines, "", *met, *record["notes"]])


# ------------------------------------------------------------------------------------------------ the variants
def _calls(case: Case, inputs: Mapping[str, Any], triton: Any, variants: Sequence[str]) -> dict[str, Callable[[], Any]]:
    calls: dict[str, Callable[[], Any]] = {}
    for variant, checks in (("checks", True), ("no checks", False)):
        if variant in variants:
            calls[variant] = _simulated(case, inputs, checks)
    if "torch" in variants or (triton and case.triton):
        try:
            import torch
        except ImportError as error:
            raise EnvironmentLacks(f"torch cannot be imported: {error}", fix="pip install torch") from None
        tensors = [torch.from_numpy(a) for a in inputs.values()]
        if "torch" in variants:
            calls["torch"] = lambda: case.torch(*tensors).numpy()
        if triton and case.triton and "triton" in variants:
            other = case.triton(triton)
            calls["triton"] = lambda: other(*tensors).numpy()
    return calls


def _simulated(case: Case, inputs: Mapping[str, Any], checks: bool) -> Callable[[], Any]:
    from tilelab.compiler import capture
    from tilelab.sim import simulate
    from tilelab.trace import SimParams

    kernels = importlib.import_module("tilelab.bench.sim_kernels")
    program = capture(getattr(kernels, case.kernel)(**case.consts))
    params = SimParams(checks=checks)

    def call() -> Any:
        trace = simulate(program, inputs, params)
        errors = [f for f in trace.findings if f.severity == "error"]
        if errors:
            raise RuntimeError(f"the simulator finds fault with a right kernel: {errors[0]}")
        return trace.outputs[case.output]

    return call


def _triton() -> tuple[Any, str]:
    from tilelab.bench import sim_triton

    try:
        return sim_triton.load(), ""
    except EnvironmentLacks as error:
        return None, str(error)


def _inputs(case: Case) -> dict[str, Any]:
    rng = np.random.Generator(np.random.PCG64(0))
    return {name: rng.standard_normal(shape, np.float32).astype(dtype) for name, (shape, dtype) in case.inputs.items()}


def _verify(case: Case, inputs: Mapping[str, Any], variant: str, got: Any) -> None:
    want = case.reference(*inputs.values()).astype(np.float32)
    worst = float(np.max(np.abs(np.asarray(got, np.float32) - want) / np.maximum(np.abs(want), np.sqrt(np.mean(want * want)))))
    if not worst <= case.tolerance:
        raise RuntimeError(f"{case.name}: {variant} is wrong by {worst:.2g}, more than {case.tolerance:.2g}")


# ------------------------------------------------------------------------------------------------ timing
def _time(call: Callable[[], Any], seconds: float) -> list[float]:
    """Time ``call`` for about ``seconds``: at least 3 times (once if it takes far longer than that), at most 200; in milliseconds."""
    samples: list[float] = []
    end = time.perf_counter() + seconds
    while len(samples) < 200 and (time.perf_counter() < end or len(samples) < 3):
        start = time.perf_counter()
        call()
        samples.append((time.perf_counter() - start) * 1e3)
        if samples[0] > 5 * seconds * 1e3:
            break
    return samples


def _load() -> float | None:
    """How many processes want to run, over the last minute; None where nobody counts."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def _summary(found: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The samples of all rounds in a few numbers."""
    samples = [s for one in found for s in one]
    quarters = statistics.quantiles(samples, n=4) if len(samples) > 1 else [samples[0]] * 3
    return {
        "median_ms": statistics.median(samples),
        "spread_ms": (quarters[2] - quarters[0]) / 2,
        "min_ms": min(samples),
        "max_ms": max(samples),
        "samples": len(samples),
        "rounds_ms": [statistics.median(one) for one in found],
    }


def _bars(cases: Sequence[Case], results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    median = {(r["case"], r["variant"]): r["median_ms"] for r in results}
    least = {(r["case"], r["variant"]): r["min_ms"] for r in results}
    found = []
    for case in cases:
        ours = median.get((case.name, "checks"))
        if ours is None:
            continue
        best = least[case.name, "checks"]
        for against, bar in case.bars.items():
            if against == "seconds":
                found.append(
                    {"case": case.name, "text": f"within {bar} s", "value": ours / 1e3, "least": best / 1e3, "met": ours / 1e3 < bar}
                )
            elif (case.name, against) in median:
                value, quiet = median[case.name, against] / ours, least[case.name, against] / best
                text = f"at least {bar:g}× faster than {against}" if bar >= 1 else f"within {1 / bar:g}× of {against}"
                told = (value, quiet) if bar >= 1 else (1 / value, 1 / quiet)
                found.append({"case": case.name, "text": text, "value": told[0], "least": told[1], "met": value >= bar})
        if (case.name, "no checks") in median:
            value, quiet = ours / median[case.name, "no checks"], best / least[case.name, "no checks"]
            text = f"checks cost at most {_CHECKS_FACTOR:g}×"
            found.append({"case": case.name, "text": text, "value": value, "least": quiet, "met": value <= _CHECKS_FACTOR})
    return found


def _machine(triton: Any) -> dict[str, Any]:
    import torch

    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        "triton": getattr(triton, "version", None),
    }


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor()

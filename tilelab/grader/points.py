"""What a correct submission still has to show: that it lowers, required figures, cleanliness, and the points for counts or speed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tilelab import ir
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.grader import layouts
from tilelab.grader.draw import Case, case_name, draw_inputs
from tilelab.grader.normal import changed, statements
from tilelab.grader.report import Check, Figure, amount
from tilelab.grader.rules import Unfit, known_sizes, wire_up
from tilelab.grader.spec import FIGURES, Spec, Speed

CORRECTNESS, CLEAN, COUNTED = 60.0, 15.0, 25.0
_PER_WARNING = 5.0
#: Measures the ratio (baseline's time over the kernel's), with a sentence; None where the kernel is wrong at a timed size.
Timer: TypeAlias = Callable[[], "tuple[float | None, str]"]


@dataclass(slots=True, kw_only=True)
class Tally:
    """What accumulates on the way to a report."""

    checks: list[Check] = field(default_factory=list)
    findings: dict[tuple[str, str | None, int | None], Finding] = field(default_factory=dict)
    advice: list[str] = field(default_factory=list)

    def add(self, findings: Sequence[Finding]) -> None:
        """Keep each (code, file, line) once, as severe as it was anywhere."""
        for f in findings:
            at = (f.code, f.file, f.line)
            if at not in self.findings or (f.severity == "error" and self.findings[at].severity != "error"):
                self.findings[at] = f


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Figures of the counted Program, and the checks that belong to correctness.

    Attributes:
        values: Figure → value, as far as they are known.
        checks: Whether it lowers, and the required figures.
        complete: Whether all was measured that this TileLab can measure.
        lacking: If not, why not.
    """

    values: Mapping[str, float]
    checks: tuple[Check, ...]
    complete: bool = True
    lacking: str = ""


def measure(spec: Spec, program: ir.Program, tally: Tally) -> Measured:
    """Lower the counted Program for the puzzle's GPU, where that is possible, and take the figures that the puzzle names."""
    if spec.layout is not None:
        try:
            values = layouts.figures(program, spec)
        except Unfit as e:
            return Measured(values={}, checks=(Check(name=case_name(spec.count_sizes), passed=False, message=str(e)),))
        return Measured(values=values, checks=tuple(_required(spec, values)))
    lowers, lowered, lacking = _lower(spec, program, tally)
    if not all(c.passed for c in lowers):
        return Measured(values={}, checks=lowers, complete=not lacking, lacking=lacking)
    named = {c.name for c in spec.counts} | {b.name for b in spec.require}
    values = {**lowered, **_predicted(spec, program, named)}
    return Measured(values=values, checks=(*lowers, *_required(spec, values)), complete=not lacking, lacking=lacking)


def _lower(spec: Spec, program: ir.Program, tally: Tally) -> tuple[tuple[Check, ...], Mapping[str, float], str]:
    """Check the budgets of the puzzle's GPU, and that the kernel lowers for it; without figures where that is not possible here."""
    from tilelab.analysis.budget import budget_findings
    from tilelab.analysis.pipeline import schedules
    from tilelab.grader.lowering import lowering_facts

    name = f"lowers for {spec.arch}"
    before = (*budget_findings(program, spec.arch), *(f for s in schedules(program) for f in s.findings))
    tally.add(before)
    errors = [f for f in before if f.severity == "error"]
    if errors:  # it cannot launch, or its schedule changes its meaning (and TileLang may lower that without a word)
        return (Check(name=name, passed=False, message=f"{errors[0].code}: {errors[0].message}"),), {}, ""
    try:
        facts = lowering_facts(program, spec.arch)
    except EnvironmentLacks:
        return (), {}, "lowering is not possible on this machine"
    tally.add(facts.findings)
    errors = [f for f in facts.findings if f.severity == "error"]
    return (Check(name=name, passed=not errors, message=f"{errors[0].code}: {errors[0].message}" if errors else ""),), facts.figures, ""


def _predicted(spec: Spec, program: ir.Program, named: set[str]) -> dict[str, float]:
    """Figures that need no lowering, of those that are named."""
    from tilelab.analysis.pipeline import schedules
    from tilelab.analysis.traffic import traffic
    from tilelab.grader.waves import wave_bytes

    out: dict[str, float] = {}
    sizes = known_sizes(program, spec, spec.count_sizes)
    moved = traffic(program, sizes) if named & {"bytes_moved", "bytes_read", "bytes_written"} else None
    if moved is not None:
        out |= {"bytes_read": moved.bytes_read, "bytes_written": moved.bytes_written, "bytes_moved": moved.bytes_moved}
    if "overlap" in named:
        out["overlap"] = min((s.overlap for s in schedules(program)), default=0)
    if "wave_bytes" in named and (wave := wave_bytes(program, spec.arch, sizes)) is not None:
        out["wave_bytes"] = wave
    out |= _launched(program, sizes)
    if named & {n for n, needs in FIGURES.items() if needs == "program"} - set(out):
        out = {**_simulated(spec, program), **out}
    return out


def _launched(program: ir.Program, sizes: Mapping[ir.Var, int]) -> dict[str, float]:
    """Count launches and blocks where that needs no run: every launch happens once, with a grid that is known."""
    from tilelab.layout import evaluate

    if any(not isinstance(s, ir.Launch) and any(isinstance(n, ir.Launch) for n in ir.walk(s)) for s in _top(program.body)):
        return {}
    launches = [n for n in ir.walk(program) if isinstance(n, ir.Launch)]
    try:
        blocks = sum(math.prod(int(evaluate(e, sizes)) for e in n.grid) for n in launches)
    except InputError:
        return {}
    return {"launches": len(launches), "blocks": blocks}


def _top(body: ir.Body) -> Iterator[ir.Stmt]:
    """The statements of ``body``, those of its blocks among them."""
    for s in body:
        if isinstance(s, ir.Block):
            yield from _top(s.body)
        else:
            yield s


def _simulated(spec: Spec, program: ir.Program) -> dict[str, float]:
    """What the simulator counts in a run on the counted sizes."""
    from tilelab.sim import simulate
    from tilelab.trace import SimParams

    case = Case(name=case_name(spec.count_sizes), sizes=spec.count_sizes, inputs="random", weight=0, seed=1)
    try:
        inputs, wiring = draw_inputs(spec, case), wire_up(program, spec, case.sizes)
        trace = simulate(program, {p: inputs[a] for p, a in wiring.inputs.items()}, SimParams(target=spec.arch, max_steps=spec.steps))
    except (Unfit, InputError, KernelRefused):
        return {}
    return {k: float(v) for k, v in trace.counts.items() if k in FIGURES}


def _required(spec: Spec, values: Mapping[str, float]) -> list[Check]:
    """Return a check for each required figure that is known."""
    out = []
    for bound in spec.require:
        value = values.get(bound.name)
        if value is None:
            continue
        low = bound.least is not None and value < bound.least
        high = bound.most is not None and value > bound.most
        asked = f"at least {amount(bound.least)}" if low else f"at most {amount(bound.most)}"
        out.append(
            Check(name=bound.name, passed=not (low or high), message=f"it is {amount(value)}; {asked} is right" if low or high else "")
        )
    return out


# ------------------------------------------------------------------------------------------------ the points
def clean(spec: Spec, tally: Tally) -> float:
    """Return the points for cleanliness: less for each distinct warning that the puzzle does not allow."""
    warnings = [f for f in tally.findings.values() if f.severity == "warning" and f.code not in spec.allowed]
    lost = min(CLEAN, _PER_WARNING * len(warnings))
    codes = ", ".join(f"{f.code} at line {f.line}" if f.line else f.code for f in warnings)
    tally.checks.append(Check(name="clean", passed=not warnings, message=f"−{lost:.0f}: {codes}" if warnings else ""))
    tally.advice += [f"{f.code}{f' (line {f.line})' if f.line else ''}: {f.fix or f.message}" for f in warnings]
    return CLEAN - lost


def count(spec: Spec, measured: Measured, tally: Tally) -> dict[str, Figure]:
    """Grade the named figures: each is worth an equal share, between the starter's and the best."""
    known = [c for c in spec.counts if c.name in measured.values]
    out: dict[str, Figure] = {}
    for c in spec.counts:
        if c.name not in measured.values:
            here = FIGURES[c.name] == "lowering" and measured.lacking
            out[c.name] = Figure(value=None, best=c.best, points=0.0, note="not measured here" if here else "not measured yet")
            continue
        if measured.lacking:  # a part of the figures would not be comparable
            out[c.name] = Figure(value=float(measured.values[c.name]), best=c.best, points=0.0, note="not graded here")
            continue
        value, most = float(measured.values[c.name]), COUNTED / len(known)
        share = min(1.0, max(0.0, (c.start - value) / (c.start - c.best)))
        note = ""
        if c.floor is not None and value < c.floor:
            share, note = 0.0, "below the compulsory minimum"
            tally.add((finding("TL604", f"{c.name} is {value:.0f}, below the {c.floor:.0f} that this work takes: some of it was skipped"),))
        elif share < 1:
            tally.advice.append(f"{c.name} is {amount(value)}, the best known is {amount(c.best)}: {most * (1 - share):.1f} points more.")
        out[c.name] = Figure(value=value, best=c.best, points=most * share, most=most, note=note)
    skipped = any(f.note.startswith("below") for f in out.values())
    tally.checks.append(Check(name="counts", passed=not skipped, message="compulsory work was skipped" if skipped else ""))
    return out


def change(spec: Spec, broken: ir.Program, fixed: ir.Program, tally: Tally) -> Figure:
    """Grade how small a fix is: statements that differ from the broken Program."""
    goal, value = spec.debug, changed(broken, fixed)
    rewrite = goal.rewrite or max(len(statements(broken)), goal.best + 1)
    share = min(1.0, max(0.0, (rewrite - value) / (rewrite - goal.best)))
    if share < 1:
        tally.advice.append(
            f"The fix changes {value} statements, the smallest known {goal.best}: {COUNTED * (1 - share):.1f} points more. "
            "Start from the broken kernel again and change only what is wrong."
        )
    return Figure(value=value, best=goal.best, points=COUNTED * share, most=COUNTED)


def speed(goal: Speed, timed: tuple[float | None, str], tally: Tally) -> Figure:
    """Grade measured speed: between the ratio that passes and the full one."""
    ratio, note = timed
    if ratio is None:
        tally.checks.append(Check(name="speed", passed=False, message=note))
        return Figure(value=None, best=goal.full, points=0.0, most=COUNTED, note=note)
    share = min(1.0, max(0.0, (ratio - goal.passing) / (goal.full - goal.passing)))
    tally.checks.append(Check(name="speed", passed=True, message=note))
    if share < 1:
        tally.advice.append(
            f"It runs at {ratio:.2f} of the baseline's speed, all points begin at {goal.full:.2f}: {COUNTED * (1 - share):.1f} points more."
        )
    return Figure(value=ratio, best=goal.full, points=COUNTED * share, most=COUNTED, note="measured")

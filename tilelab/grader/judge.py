"""The trusted judgement: simulate a submission's Programs on secret inputs, compare, and count points."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.analysis.traffic import traffic
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.grader import oracle
from tilelab.grader.blame import writer_of
from tilelab.grader.compare import Mismatch, compare
from tilelab.grader.draw import Case, case_name, draw_inputs
from tilelab.grader.lowering import Facts, lowering_facts
from tilelab.grader.report import Check, Figure, Report, WrongElement
from tilelab.grader.rules import Unfit, Wiring, broken_rules, wire_up
from tilelab.grader.spec import FIGURES, Spec
from tilelab.trace import SimParams, Trace

Array = NDArray[Any]
#: Runs a Program on inputs by parameter name: the simulator, or a GPU.
Runner: TypeAlias = Callable[[ir.Program, Mapping[str, Any]], Trace]

CORRECTNESS, CLEAN, COUNTED = 60.0, 15.0, 25.0
_PER_WARNING = 5.0
#: Turns of loops that a run may take: a limit in steps, never in seconds.
_MAX_STEPS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One hidden case, judged."""

    case: Case
    message: str = ""  # empty: passed
    findings: tuple[Finding, ...] = ()
    mismatch: Mismatch | None = None
    wrong: WrongElement | None = None


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What accumulates on the way to a report."""

    checks: list[Check] = field(default_factory=list)
    findings: dict[tuple[str, str | None, int | None], Finding] = field(default_factory=dict)
    advice: list[str] = field(default_factory=list)

    def add(self, findings: Sequence[Finding]) -> None:
        for f in findings:
            self.findings.setdefault((f.code, f.file, f.line), f)


def judge(
    spec: Spec,
    name: str,
    cases: Sequence[Case],
    programs: Sequence[ir.Program | Finding],
    *,
    run: Runner | None = None,
    basis: str,
    seed: int | None = None,
) -> Report:
    """Grade the Programs of one submission.

    Args:
        spec: The puzzle.
        name: The submission, as it was given.
        cases: The hidden cases.
        programs: For each case, and last for the counted sizes, a verified Program or the finding that refused it.
        run: What runs a Program. Default: the simulator at tile level.
        basis: What the runs rest on, for the report.
        seed: The seed of the cases, for the report.
    """
    run = run or simulator(spec)
    tally = _Tally()
    outcomes: list[Outcome] = []
    endless = ""  # the case that did not end: each one more would take as long again
    for case, program in zip(cases, programs[:-1], strict=True):
        o = Outcome(case=case, message=f"not run: it does not end for {endless}") if endless else judge_case(spec, case, program, run)
        outcomes.append(o)
        if any("steps" in f.evidence for f in o.findings if f.code == "TL206"):
            endless = case.name
    for o in outcomes:
        tally.checks.append(Check(name=o.case.name, passed=not o.message, message=o.message))
        tally.add(o.findings)
    counted = programs[-1]
    maximum, lowered = 100.0, None
    weights = [(o.case.weight, not o.message) for o in outcomes]
    if all(ok for _, ok in weights) and isinstance(counted, ir.Program):
        check, lowered = _lowers(spec, counted, tally)
        if check is not None:
            tally.checks.append(check)
            weights.append((1, check.passed))
        else:
            maximum = CORRECTNESS + CLEAN
            basis += "; lowering is not possible on this machine, so counts are not graded and 75 is the most"
    passed = all(ok for _, ok in weights)
    score = CORRECTNESS * sum(w for w, ok in weights if ok) / sum(w for w, _ in weights)
    counts: dict[str, Figure] = {}
    if passed:
        score += _clean(spec, tally)
        if lowered is not None and isinstance(counted, ir.Program):
            counts = _counts(spec, counted, lowered, run, tally)
            score += sum(f.points for f in counts.values())
    first = next((o.wrong for o in outcomes if o.wrong), None)
    return Report(
        puzzle=spec.id,
        submission=name,
        score=score,
        max=maximum,
        passed=passed,
        basis=basis,
        checks=tuple(tally.checks),
        findings=tuple(tally.findings.values()),
        counts=counts,
        first_wrong=first,
        advice=tuple(_advice(spec, outcomes, tally, passed)),
        heat=next((_heat(o.mismatch) for o in outcomes if o.mismatch), ()),
        seed=seed,
    )


def simulator(spec: Spec) -> Runner:
    """Return the runner that simulates at tile level, with every check on."""
    from tilelab.sim import simulate

    params = SimParams(target=spec.arch, max_steps=_MAX_STEPS)
    return lambda program, inputs: simulate(program, inputs, params)


# ------------------------------------------------------------------------------------------------ correctness
def judge_case(spec: Spec, case: Case, program: ir.Program | Finding, run: Runner) -> Outcome:
    """Run one hidden case and say what is wrong with it, if anything."""
    if isinstance(program, Finding):
        return Outcome(case=case, message=program.message, findings=(program,))
    try:
        wiring = wire_up(program, spec, case.sizes)
    except Unfit as e:
        return Outcome(case=case, message=str(e))
    broken = broken_rules(program, spec)
    if broken:
        return Outcome(case=case, message=broken[0])
    inputs = draw_inputs(spec, case)
    try:
        trace = run(program, {p: inputs[a] for p, a in wiring.inputs.items()})
    except KernelRefused as refused:
        return Outcome(case=case, message=refused.finding.message, findings=(refused.finding,))
    except InputError as e:
        return Outcome(case=case, message=e.message)
    except Exception as e:  # a Program comes from a stranger: whatever it does to the simulator is its own failure
        odd = finding("TL703", f"the simulator cannot run this Program ({type(e).__name__}: {e})", fix="write it with ordinary operations")
        return Outcome(case=case, message=odd.message, findings=(odd,))
    wanted = _expected(spec, case, inputs)
    findings = tuple(_settled(f, spec, wanted) for f in trace.findings)
    mismatch = _first_mismatch(spec, trace, wiring, wanted)
    errors = [f for f in findings if f.severity == "error"]
    message = f"{errors[0].code}: {errors[0].message}" if errors else mismatch.sentence() if mismatch else ""
    wrong = _wrong_element(program, case, wiring, mismatch) if mismatch else None
    return Outcome(case=case, message=message, findings=findings, mismatch=mismatch, wrong=wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    outputs: Mapping[str, Array]
    magnitudes: Mapping[str, Array]


def _expected(spec: Spec, case: Case, inputs: Mapping[str, Array | None]) -> _Expected:
    """Ask the oracle, in float64; integers stay what they are."""
    functions = oracle.load(spec.folder / "oracle.py")
    wide = {n: a if a is None or a.dtype.kind in "iub" else a.astype(np.float64) for n, a in inputs.items()}
    kw = {n: a for n, a in wide.items() if a is not None}
    names = [t.name for t in (*(a for a in spec.arguments if a.role != "in"), *spec.returns)]
    with np.errstate(all="ignore"):
        values = oracle.by_name(oracle.call(functions["oracle"], kw, case.sizes), names)
        scale = functions.get("magnitude")
        scales = oracle.by_name(oracle.call(scale, kw, case.sizes), names) if scale else {}
    return _Expected(outputs=values, magnitudes=scales)


def _settled(f: Finding, spec: Spec, wanted: _Expected) -> Finding:
    """Give a finding the severity that it has for this puzzle: a NaN that the oracle lacks is an error, one it has is none."""
    if f.code in spec.refused:
        return dataclasses.replace(f, severity="error")
    if f.code == "TL301":
        finite = all(np.isfinite(a).all() for a in wanted.outputs.values() if a.dtype.kind == "f")
        return dataclasses.replace(f, severity="error" if finite else "info")
    return f


def _first_mismatch(spec: Spec, trace: Trace, wiring: Wiring, wanted: _Expected) -> Mismatch | None:
    for name, key in wiring.outputs.items():
        got, want = trace.outputs.get(key), wanted.outputs[name]
        if got is None:
            return Mismatch(output=name, index=(), expected=0, got=0, wrong=want.size, total=want.size, where=np.ones(want.shape, bool))
        mismatch = compare(name, np.asarray(got), want.reshape(np.shape(got)), spec.tolerance, wanted.magnitudes.get(name))
        if mismatch is not None:
            return mismatch
    return None


def _wrong_element(program: ir.Program, case: Case, wiring: Wiring, m: Mismatch) -> WrongElement:
    writer = writer_of(program, wiring.params[m.output], m.index)
    loc = writer.loc if writer else None
    return WrongElement(
        case=case.name,
        output=m.output,
        index=m.index,
        expected=m.expected,
        got=m.got,
        wrong=m.wrong,
        total=m.total,
        block=writer.block if writer else None,
        file=loc.file if loc else None,
        line=loc.line if loc else None,
    )


def _heat(m: Mismatch | None) -> tuple[tuple[float, ...], ...]:
    """Share of wrong elements by cell of a picture of at most 16×32."""
    if m is None or m.where.ndim != 2 or 0 in m.where.shape:
        return ()
    rows = np.array_split(m.where, min(16, m.where.shape[0]), axis=0)
    return tuple(tuple(float(c.mean()) for c in np.array_split(r, min(32, r.shape[1]), axis=1)) for r in rows)


# ---------------------------------------------------------------------------------- lowering, cleanliness, counts
def _lowers(spec: Spec, program: ir.Program, tally: _Tally) -> tuple[Check | None, Facts | None]:
    """Check the budgets of the puzzle's GPU and that the kernel lowers for it; (None, None) where that is not possible."""
    from tilelab.analysis.budget import budget_findings

    name = f"lowers for {spec.arch}"
    budget = tuple(budget_findings(program, spec.arch))
    tally.add(budget)
    try:
        facts = lowering_facts(program, spec.arch)
    except EnvironmentLacks:
        bad = [f for f in budget if f.severity == "error"]
        return (Check(name=f"fits {spec.arch}", passed=False, message=bad[0].message), None) if bad else (None, None)
    tally.add(facts.findings)
    errors = [f for f in (*budget, *facts.findings) if f.severity == "error"]
    return Check(name=name, passed=not errors, message=f"{errors[0].code}: {errors[0].message}" if errors else ""), facts


def _clean(spec: Spec, tally: _Tally) -> float:
    warnings = [f for f in tally.findings.values() if f.severity == "warning" and f.code not in spec.allowed]
    lost = min(CLEAN, _PER_WARNING * len(warnings))
    codes = ", ".join(f"{f.code} at line {f.line}" if f.line else f.code for f in warnings)
    tally.checks.append(Check(name="clean", passed=not warnings, message=f"−{lost:.0f}: {codes}" if warnings else ""))
    tally.advice += [f"{f.code}{f' (line {f.line})' if f.line else ''}: {f.fix or f.message}" for f in warnings]
    return CLEAN - lost


def _counts(spec: Spec, program: ir.Program, facts: Facts, run: Runner, tally: _Tally) -> dict[str, Figure]:
    """Measure the named figures on the counted sizes; each is worth an equal share, between the starter's and the best."""
    case = Case(name=case_name(spec.count_sizes), sizes=spec.count_sizes, inputs="random", weight=0, seed=1)
    inputs, wiring = draw_inputs(spec, case), wire_up(program, spec, case.sizes)
    simulated = simulator(spec)(program, {p: inputs[a] for p, a in wiring.inputs.items()}).counts
    values = {**_predicted(program, simulated), **facts.figures}
    known = [c for c in spec.counts if c.name in values]
    out: dict[str, Figure] = {}
    for c in spec.counts:
        if c.name not in values:
            out[c.name] = Figure(value=None, best=c.best, points=0.0, note="not measured yet")
            continue
        value, most = float(values[c.name]), COUNTED / len(known)
        share = min(1.0, max(0.0, (c.start - value) / (c.start - c.best)))
        note = ""
        if c.floor is not None and value < c.floor:
            share, note = 0.0, "below the compulsory minimum"
            tally.add((finding("TL604", f"{c.name} is {value:.0f}, below the {c.floor:.0f} that this work takes: some of it was skipped"),))
        elif share < 1:
            tally.advice.append(f"{c.name} is {value:.0f}, the best known is {c.best:.0f}: {most * (1 - share):.1f} points more.")
        out[c.name] = Figure(value=value, best=c.best, points=most * share, most=most, note=note)
    skipped = any(f.note for f in out.values() if f.value is not None)
    tally.checks.append(Check(name="counts", passed=not skipped, message="compulsory work was skipped" if skipped else ""))
    return out


def _predicted(program: ir.Program, counts: Mapping[str, int]) -> dict[str, float]:
    """Figures that need no lowering: what the simulator counted, and the traffic of the Program's accesses."""
    out = {k: float(v) for k, v in counts.items() if k in FIGURES}
    moved = traffic(program)
    if moved is not None:
        out |= {"bytes_read": moved.bytes_read, "bytes_written": moved.bytes_written, "bytes_moved": moved.bytes_moved}
    return out


def _advice(spec: Spec, outcomes: Sequence[Outcome], tally: _Tally, passed: bool) -> list[str]:
    """Say how to gain the next points: first what failed, then what is left to win."""
    if passed:
        return tally.advice
    fixes = [
        f"{f.code}{f' (line {f.line})' if f.line else ''}: {f.fix}" for f in tally.findings.values() if f.severity == "error" and f.fix
    ]
    failed = [o.case for o in outcomes if o.message]
    if failed:
        smallest = min(failed, key=lambda c: (int(np.prod(list(c.sizes.values()))), c.name))
        fixes.append(f"Try {smallest.name} first, the smallest case that fails.")
        fixes.append(f'Stuck? tilelab.puzzle("{spec.number}").hint(1) gives the first of {spec.hints} hints; it costs nothing.')
    return list(dict.fromkeys(fixes))

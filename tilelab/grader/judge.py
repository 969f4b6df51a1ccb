"""The trusted judgement: simulate a submission's Programs on secret inputs, compare, and count points."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import Finding, KernelRefused, finding
from tilelab.grader import layouts, oracle
from tilelab.grader.blame import writer_of
from tilelab.grader.compare import Mismatch, compare
from tilelab.grader.draw import Case, case_name, draw_inputs
from tilelab.grader.lowering import writing_thread
from tilelab.grader.normal import statements
from tilelab.grader.points import CLEAN, CORRECTNESS, COUNTED, Tally, Timer, change, clean, count, measure, speed
from tilelab.grader.report import Check, Report, WrongElement
from tilelab.grader.rules import Unfit, Wiring, broken_rules, wire_up
from tilelab.grader.spec import Spec
from tilelab.trace import SimParams, Trace

Array = NDArray[Any]
#: Runs a Program on inputs by parameter name: the simulator, or a GPU.
Runner: TypeAlias = Callable[[ir.Program, Mapping[str, Any]], Trace]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One hidden case, judged."""

    case: Case
    message: str = ""  # empty: passed
    findings: tuple[Finding, ...] = ()
    mismatch: Mismatch | None = None
    blame: Callable[[Mismatch], WrongElement] | None = None  # who wrote the first wrong element: worth asking once only


def judge(
    spec: Spec,
    name: str,
    cases: Sequence[Case],
    programs: Sequence[ir.Program | Finding],
    *,
    run: Runner | None = None,
    basis: str,
    seed: int | None = None,
    broken: ir.Program | None = None,
    timer: Timer | None = None,
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
        broken: The starter's Program, where the size of the change is graded.
        timer: Measures speed on a GPU, where that is graded instead of counts.
    """
    run = run or simulator(spec)
    tally = Tally()
    outcomes = _outcomes(spec, cases, programs[:-1], run)
    for o in outcomes:
        tally.checks.append(Check(name=o.case.name, passed=not o.message, message=o.message))
        tally.add(o.findings)
    weights = [(o.case.weight, not o.message) for o in outcomes]
    counted, measured = programs[-1], None
    if all(ok for _, ok in weights) and isinstance(counted, ir.Program):
        measured = measure(spec, counted, tally)
        tally.checks += measured.checks
        weights += [(1, c.passed) for c in measured.checks]
    elif isinstance(counted, Finding):
        tally.checks.append(Check(name=case_name(spec.count_sizes), passed=False, message=counted.message))
        tally.add((counted,))
        weights.append((1, False))
    passed = all(ok for _, ok in weights)
    score = CORRECTNESS * sum(w for w, ok in weights if ok) / sum(w for w, _ in weights)
    if spec.kind == "debug" and measured is not None and not passed:
        score = 0.0  # right values were no task where what is broken is the compiling: nothing is mended yet
    maximum, counts = CORRECTNESS + CLEAN + COUNTED, {}
    if measured is not None and passed and isinstance(counted, ir.Program):
        score += clean(spec, tally)
        if timer is not None and spec.speed is not None:
            counts = {"speed": speed(spec.speed, timer(), tally)}
        elif broken is not None:
            counts = {"diff": change(spec, broken, counted, tally)}
        else:
            counts = count(spec, measured, tally)
        score += sum(f.points for f in counts.values())
        below = any(f.note.startswith("below") for f in counts.values())
        skipped = _skipped(spec, counted, run) if below else None
        if skipped is not None:  # it knows the counted sizes, and does less there
            tally.checks.append(Check(name=skipped.case.name, passed=False, message=skipped.message))
            passed, score = False, CORRECTNESS * sum(w for w, _ in weights) / (sum(w for w, _ in weights) + 1)
    if measured is not None and not sum(f.most for f in counts.values()) and (passed or not measured.complete):
        maximum = CORRECTNESS + CLEAN
        basis += f"; {measured.lacking or 'its counts are not measured yet'}, so counts are not graded and 75 is the most"
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
        first_wrong=next((o.blame(o.mismatch) for o in outcomes if o.mismatch and o.blame), None),
        advice=tuple(_advice(spec, outcomes, tally, passed)),
        heat=next((_heat(o.mismatch) for o in outcomes if o.mismatch), ()),
        seed=seed,
        statements=statements(counted) if isinstance(counted, ir.Program) else (),
    )


def _skipped(spec: Spec, program: ir.Program, run: Runner) -> Outcome | None:
    """Return how the counted sizes fail, where a figure lies below what the work takes; None where they do not."""
    case = Case(name=case_name(spec.count_sizes), sizes=spec.count_sizes, inputs="random", weight=1, seed=secrets.randbits(63))
    outcome = judge_case(spec, case, program, run)
    return outcome if outcome.message else None


def _outcomes(spec: Spec, cases: Sequence[Case], programs: Sequence[ir.Program | Finding], run: Runner) -> list[Outcome]:
    out: list[Outcome] = []
    endless = ""  # the case that did not end: each one more would take as long again
    for case, program in zip(cases, programs, strict=True):
        o = Outcome(case=case, message=f"not run: it does not end for {endless}") if endless else judge_case(spec, case, program, run)
        out.append(o)
        if any("steps" in f.evidence for f in o.findings if f.code == "TL206"):
            endless = case.name
    return out


def simulator(spec: Spec) -> Runner:
    """Return the runner that simulates at tile level, with every check on."""
    from tilelab.sim import simulate

    params = SimParams(target=spec.arch, max_steps=spec.steps)
    return lambda program, inputs: simulate(program, inputs, params)


# ------------------------------------------------------------------------------------------------ correctness
def judge_case(spec: Spec, case: Case, program: ir.Program | Finding, run: Runner) -> Outcome:
    """Run one hidden case and say what is wrong with it, if anything."""
    if isinstance(program, Finding):
        return Outcome(case=case, message=program.message, findings=(program,))
    if spec.layout is not None:
        return _layout_case(spec, case, program)
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
    wanted = expected(spec, case, inputs)
    mismatch = _first_mismatch(spec, trace, wiring, wanted, inputs)
    findings = tuple(_settled(f, spec, wanted, right=mismatch is None) for f in trace.findings)
    errors = [f for f in findings if f.severity == "error"]
    message = f"{errors[0].code}: {errors[0].message}" if errors else mismatch.sentence() if mismatch else ""
    blame = partial(_wrong_element, program, case, wiring, spec.arch)
    return Outcome(case=case, message=message, findings=findings, mismatch=mismatch, blame=blame)


def _layout_case(spec: Spec, case: Case, program: ir.Program) -> Outcome:
    """Hold the layout that a function returned against what the puzzle asks for."""
    try:
        layout = layouts.layout_of(program, spec, case.sizes)
    except Unfit as e:
        return Outcome(case=case, message=str(e))
    found = layout.check() if spec.layout and spec.layout.injective else ()
    mismatch = None if found else layouts.difference(layout, spec, case.sizes)
    message = f"{found[0].code}: {found[0].message}" if found else mismatch.sentence() if mismatch else ""
    return Outcome(case=case, message=message, findings=found, mismatch=mismatch, blame=partial(_element, case))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the oracle says: outputs by name, and the scales of their tolerances where it has a ``magnitude``."""

    outputs: Mapping[str, Array]
    magnitudes: Mapping[str, Array]


def expected(spec: Spec, case: Case, inputs: Mapping[str, Array | None]) -> Expected:
    """Ask the oracle, in float64; integers stay what they are."""
    functions = oracle.load(spec.folder / "oracle.py")
    wide = {n: a if a is None or a.dtype.kind in "iub" else a.astype(np.float64) for n, a in inputs.items()}
    kw = {n: a for n, a in wide.items() if a is not None}
    names = [t.name for t in (*(a for a in spec.arguments if a.role != "in"), *spec.returns)]
    with np.errstate(all="ignore"):
        values = oracle.by_name(oracle.call(oracle.need(spec.folder / "oracle.py", "oracle"), kw, case.sizes), names)
        scale = functions.get("magnitude")
        scales = oracle.by_name(oracle.call(scale, kw, case.sizes), names) if scale else {}
    return Expected(outputs=values, magnitudes=scales)


def _settled(f: Finding, spec: Spec, wanted: Expected, *, right: bool) -> Finding:
    """Give a finding the severity that it has for this puzzle: a NaN is an error if the oracle lacks it and it reached the outputs."""
    if f.code in spec.refused:
        return dataclasses.replace(f, severity="error")
    if f.code == "TL301":
        finite = all(np.isfinite(a).all() for a in wanted.outputs.values() if a.dtype.kind == "f")
        return dataclasses.replace(f, severity="error" if finite and not right else "info")
    return f


def _unwritten(name: str, want: Array) -> Mismatch:
    first = want.reshape(-1)[0].item() if want.size else 0
    every = np.ones(want.shape, bool)
    return Mismatch(
        output=name, index=(0,) * want.ndim, expected=first, got=np.nan, wrong=want.size, total=want.size, where=every, written=False
    )


def _first_mismatch(spec: Spec, trace: Trace, wiring: Wiring, wanted: Expected, given: Mapping[str, Array | None]) -> Mismatch | None:
    for name, key in wiring.outputs.items():
        got, want = trace.outputs.get(key, given.get(name)), wanted.outputs[name]
        if got is None:  # an argument that is only written, and was not
            return _unwritten(name, want)
        mismatch = compare(name, np.asarray(got), want.reshape(np.shape(got)), spec.tolerance_of(name), wanted.magnitudes.get(name))
        if mismatch is not None:
            return mismatch
    return None


def _wrong_element(program: ir.Program, case: Case, wiring: Wiring, arch: str, m: Mismatch) -> WrongElement:
    writer = writer_of(program, wiring.params[m.output], m.index)
    if writer is None:
        return _element(case, m)
    loc, param = writer.loc, wiring.params[m.output]
    thread = writing_thread(program, param.name, m.index, writer.block, arch) if writer.block else None
    return dataclasses.replace(
        _element(case, m), block=writer.block, thread=thread, file=loc.file if loc else None, line=loc.line if loc else None
    )


def _element(case: Case, m: Mismatch) -> WrongElement:
    return WrongElement(case=case.name, output=m.output, index=m.index, expected=m.expected, got=m.got, wrong=m.wrong, total=m.total)


def _heat(m: Mismatch | None) -> tuple[tuple[float, ...], ...]:
    """Share of wrong elements by cell of a picture of at most 16×32."""
    if m is None or m.where.ndim != 2 or 0 in m.where.shape:
        return ()
    rows = np.array_split(m.where, min(16, m.where.shape[0]), axis=0)
    return tuple(tuple(float(c.mean()) for c in np.array_split(r, min(32, r.shape[1]), axis=1)) for r in rows)


def _advice(spec: Spec, outcomes: Sequence[Outcome], tally: Tally, passed: bool) -> list[str]:
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
    cases = {o.case.name for o in outcomes}
    fixes += [f"{c.name}: {c.message}." for c in tally.checks if not c.passed and c.name not in cases and not c.message.startswith("TL")]
    return list(dict.fromkeys(fixes))

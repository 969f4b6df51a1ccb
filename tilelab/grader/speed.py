"""Measured speed: the kernel against the puzzle's baseline in the same run, on rotated inputs, right results first."""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import Finding, KernelRefused
from tilelab.grader import oracle
from tilelab.grader.compare import compare
from tilelab.grader.draw import Case, case_name, draw_inputs
from tilelab.grader.rules import Unfit, wire_up
from tilelab.grader.spec import Spec

_ROTATED_BYTES = 256 << 20  # all input sets together: several times an L2
_SETS = (2, 8)
_ROUNDS = 9
_ROUND_MS = 4.0
_IDLE_S = 0.05
#: Up to this product of all sizes the oracle itself says what is right; above, the baseline does.
_ORACLE_POINTS = 1 << 28
_LIKE_THE_BASELINE = 2e-2
Launch = Callable[[], Any]


def measured_ratio(spec: Spec, programs: Sequence[ir.Program | Finding], seed: int) -> tuple[float | None, str]:
    """Time the kernel for each of the puzzle's speed sizes.

    Args:
        spec: The puzzle.
        programs: The kernel's Program for each of the sizes.
        seed: Decides the inputs.

    Returns:
        The geometric mean of (baseline's time over the kernel's), or None where it is wrong at a timed size; and a sentence.
    """
    assert spec.speed is not None
    ratios, said = [], []
    for sizes, program in zip(spec.speed.sizes, programs, strict=True):
        case = Case(name=case_name(sizes), sizes=sizes, inputs="random", weight=0, seed=seed)
        if isinstance(program, Finding):
            return None, f"{case.name}: {program.message}"
        try:
            ours, theirs = _time(spec, case, program)
        except (KernelRefused, InputError, Unfit, _Wrong) as e:
            return None, f"{case.name}: {e}"
        ratios.append(theirs / ours)
        said.append(f"{case.name}: {ours:.1f} µs, the baseline {theirs:.1f} µs")
    ratio = math.exp(statistics.fmean(map(math.log, ratios)))
    return ratio, f"{ratio:.2f} of the baseline's speed ({'; '.join(said)})"


class _Wrong(Exception):
    """What the kernel computes at a timed size is not right."""


def _time(spec: Spec, case: Case, program: ir.Program) -> tuple[float, float]:
    """Return microseconds of a launch of the kernel, and of the baseline."""
    import torch

    from tilelab.build import build, to_device

    assert spec.speed is not None
    functions = oracle.load(spec.folder / "oracle.py")
    baseline = functions.get(spec.speed.baseline)
    if baseline is None:
        raise InputError(f"{spec.id}/oracle.py has no function {spec.speed.baseline}()", fix="tell the author")
    wiring = wire_up(program, spec, case.sizes)
    drawn = draw_inputs(spec, case)
    built = build(program)
    sets = _rotated(drawn)
    launches: list[Launch] = []
    rivals: list[Launch] = []
    for inputs in sets:
        arguments = []
        for i, p in enumerate(program.params):
            if i in program.outputs:
                continue
            value: Any = inputs.get(wiring.inputs.get(p.name, ""))
            if p.buffer is None:
                arguments.append(value.item() if hasattr(value, "item") else value)
            elif isinstance(value, torch.Tensor):
                arguments.append(value)
            else:  # only written
                shape = [int(e.value) for e in p.buffer.shape if isinstance(e, ir.Const)]
                arguments.append(to_device(np.zeros(shape, np.float32), p.buffer).to(_torch_dtype(p.buffer.dtype)))
        launches.append(partial(built.kernel, *arguments))
        rivals.append(partial(baseline, **oracle.taken(baseline, {**inputs, **case.sizes})))
    _check(spec, case, program, drawn, built, rivals[0])
    times: tuple[list[float], list[float]] = ([], [])
    with _alone():
        replays = [_replay(launches), _replay(rivals)]
        for _ in range(_ROUNDS):  # in turns and rested, so that the clock favours neither
            for replay, own in zip(replays, times, strict=True):
                time.sleep(_IDLE_S)
                own.append(replay())
    return statistics.median(times[0]), statistics.median(times[1])


@contextmanager
def _alone() -> Iterator[None]:
    """No two processes of this machine time at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with open(os.path.join(tempfile.gettempdir(), f"tilelab-timing-{os.getuid()}"), "w") as f:  # noqa: PTH118, PTH123
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def _torch_dtype(name: str) -> Any:
    import torch

    return getattr(torch, name)


def _rotated(drawn: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return sets of the inputs on the device: floats turned by a few elements in each, so that no set's values are another's."""
    import torch

    from tilelab.tensors import to_torch

    given = {n: a for n, a in drawn.items() if a is not None}
    size = sum(a.nbytes for a in given.values())
    count = min(_SETS[1], max(_SETS[0], -(-_ROTATED_BYTES // max(size, 1))))
    first = {n: a if a.ndim == 0 else to_torch(np.ascontiguousarray(a)).cuda() for n, a in given.items()}
    sets = [first]
    for i in range(1, count):
        turned = {}
        for n, t in first.items():
            if not isinstance(t, torch.Tensor):
                turned[n] = t
            elif t.is_floating_point() and t.element_size() > 1:
                turned[n] = t.reshape(-1).roll(7 * i).reshape(t.shape).contiguous()
            else:
                turned[n] = t.clone()
        sets.append(turned)
    return sets


def _check(spec: Spec, case: Case, program: ir.Program, drawn: Mapping[str, Any], built: Any, rival: Launch) -> None:
    """A kernel may know the timed sizes: what it computes there is held against the oracle, or where that is too slow the baseline."""
    from tilelab.grader.judge import expected
    from tilelab.tensors import to_numpy

    wiring = wire_up(program, spec, case.sizes)
    inputs = {p: drawn[a] for p, a in wiring.inputs.items()}
    poison(program)
    outputs = built.run(inputs)
    if math.prod(case.sizes.values()) <= _ORACLE_POINTS:
        wanted = expected(spec, case, drawn)
        for name, key in wiring.outputs.items():
            got = np.asarray(outputs[key])
            wrong = compare(name, got, wanted.outputs[name].reshape(got.shape), spec.tolerance_of(name), wanted.magnitudes.get(name))
            if wrong is not None:
                raise _Wrong(wrong.sentence())
        return
    said = rival()
    said = said[0] if isinstance(said, tuple) else said
    name, key = next(iter(wiring.outputs.items()))
    got = np.asarray(outputs[key]).astype(np.float64)
    want = np.asarray(to_numpy(said)).astype(np.float64)
    if want.size != got.size:
        return  # the baseline computes something else: it is a yardstick alone
    norm = float(np.linalg.norm(want)) or 1.0
    error = float(np.linalg.norm(got - want.reshape(got.shape))) / norm
    if not error <= _LIKE_THE_BASELINE:
        raise _Wrong(f"{name} is {error:.1%} away from the baseline's")


def poison(program: ir.Program) -> None:
    """Fill the memory that the next outputs will be given, so that nothing which lay there passes for a result."""
    import torch

    from tilelab.analysis.expr import const_int, dtype_bits

    held = []
    for i in program.outputs:
        buffer = program.params[i].buffer
        shape = [const_int(e) for e in buffer.shape] if buffer is not None else [None]
        if buffer is not None and None not in shape:
            size = math.prod(n or 0 for n in shape) * dtype_bits(buffer.dtype) // 8
            held.append(torch.full((max(size, 1),), 0xFF, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    del held  # the allocator hands these blocks out first


def _replay(launches: Sequence[Launch]) -> Callable[[], float]:
    """Return a function that times a few milliseconds of launches, from a graph where they can be captured: µs a launch."""
    import torch

    def timed(run: Callable[[], object], count: int) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) * 1e3 / count

    def around(turns: int) -> Callable[[], None]:
        def run() -> None:
            for _ in range(turns):
                for launch in launches:
                    launch()

        return run

    around(2)()
    once = timed(around(2), 2 * len(launches))
    turns = max(1, math.ceil(_ROUND_MS * 1e3 / (once * len(launches))))
    count = turns * len(launches)
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            around(turns)()
        graph.replay()
        return lambda: timed(graph.replay, count)
    except RuntimeError:  # it synchronises or allocates in ways that no graph holds
        torch.cuda.synchronize()
        return lambda: timed(around(turns), count)

"""Grading on the GPU that is here: the trusted side lowers and launches verified Programs, never the learner's bytes."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from tilelab import ir
from tilelab.errors import EnvironmentLacks
from tilelab.grader.judge import Runner, simulator
from tilelab.grader.spec import Spec
from tilelab.grader.speed import poison
from tilelab.trace import Trace

_KEPT = 32


def native_runner(spec: Spec) -> tuple[Runner, str]:
    """Return what runs a Program on the GPU, and the words for the basis.

    Each Program is simulated first: what is wrong with it is explained there, and a kernel that would write out of
    bounds never reaches the device. Fresh copies of the inputs go to the GPU, and its outputs are what is compared.

    Raises:
        EnvironmentLacks: There is no CUDA device, or it is older than the puzzle's solution needs.
    """
    from tilelab.build import device_target

    here = device_target()
    if _generation(here) < _generation(spec.min_arch):
        raise EnvironmentLacks(f"{spec.id} needs {spec.min_arch}, the GPU here is {here}", fix="grade it with --device sim")
    simulate = simulator(spec)
    built: OrderedDict[str, Any] = OrderedDict()

    def run(program: ir.Program, inputs: Mapping[str, Any]) -> Trace:
        trace = simulate(program, inputs)
        if any(f.severity == "error" for f in trace.findings):
            return trace
        kernel = _build(program, built)
        poison(program)
        outputs = kernel.run(inputs)
        return dataclasses.replace(trace, outputs={**trace.outputs, **outputs})

    return run, f"run on {_device_name()} ({here}) and simulated at tile level, counts predicted for {spec.arch}"


def _build(program: ir.Program, built: OrderedDict[str, Any]) -> Any:
    from tilelab import serde
    from tilelab.build import build

    key = serde.digest(program)
    if key not in built:
        built[key] = build(program)
        while len(built) > _KEPT:
            built.popitem(last=False)
    return built[key]


def _generation(target: str) -> int:
    """The number in a target: 90 for sm_90a."""
    digits = "".join(c for c in target if c.isdigit())
    return int(digits or 0)


def _device_name() -> str:
    import torch

    return str(torch.cuda.get_device_name())

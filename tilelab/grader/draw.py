"""Hidden cases: generators are public, draws are secret. A seed decides sizes and inputs through PCG64."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.grader import shapes
from tilelab.grader.oracle import ruled_inputs
from tilelab.grader.spec import Spec, Tensor
from tilelab.tensors import numpy_dtype

Array = NDArray[Any]

#: Smallest float type → its largest finite value; what "large" inputs stay well below.
_LARGEST: Mapping[str, float] = {"float16": 65504.0, "float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float4_e2m1fn": 6.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One hidden case: its sizes (known to the kernel's author at capture), and a seed for its inputs (never known)."""

    name: str
    sizes: Mapping[str, int]
    inputs: str
    weight: int
    seed: int


def class_seed(key: bytes, puzzle: str, student: str) -> int:
    """Return the seed of ``student`` for ``puzzle``: HMAC-SHA256 under the teacher's key, so that anyone can recompute it later."""
    return int.from_bytes(hmac.new(key, f"{puzzle}\0{student}".encode(), hashlib.sha256).digest()[:8], "big")


def draw_cases(spec: Spec, seed: int) -> tuple[Case, ...]:
    """Return the hidden cases of ``seed``: the always-cases first, then the drawn ones."""
    rng = np.random.Generator(np.random.PCG64([seed, spec.number]))
    plans = [(dict(c.sizes), c.inputs, c.weight) for c in spec.always]
    for i in range(spec.draw.count):
        plans.append(({n: _size(spec, n, rng) for n in spec.sizes}, spec.draw.inputs[i % len(spec.draw.inputs)], spec.draw.weight))
    return tuple(
        Case(name=case_name(sizes, kind), sizes=sizes, inputs=kind, weight=weight, seed=int(rng.integers(1 << 63)))
        for sizes, kind, weight in plans
    )


def case_name(sizes: Mapping[str, int], kind: str = "random") -> str:
    """Return how a case is called in reports: ``"N = 129"``, ``"M = 16, N = 200 (large)"``; ``"as it is"`` without sizes."""
    text = ", ".join(f"{k} = {v}" for k, v in sizes.items()) or "as it is"
    return text if kind == "random" else f"{text} ({kind})"


def draw_inputs(spec: Spec, case: Case) -> dict[str, Array | None]:
    """Return the inputs of ``case`` by argument name; an argument that is only written gets None."""
    rng = np.random.Generator(np.random.PCG64(case.seed))
    drawn = {t.name: None if t.role == "out" else draw_tensor(t, case.sizes, case.inputs, rng) for t in spec.arguments}
    return ruled_inputs(spec.folder / "oracle.py", drawn, case.sizes, rng)


def draw_tensor(t: Tensor, sizes: Mapping[str, int], kind: str, rng: np.random.Generator) -> Array:
    """Draw one tensor of an input kind, in its own dtype (bfloat16 and float8 through ml_dtypes)."""
    shape = t.extents(sizes)
    if t.dtype == "bool":
        return rng.integers(0, 2, shape).astype(np.bool_)
    if t.dtype.startswith(("int", "uint")):
        low, high = shapes.evaluate(t.low, sizes), shapes.evaluate(t.high, sizes)
        return rng.integers(low, max(high, low + 1), shape).astype(numpy_dtype(t.dtype))
    values = INPUT_KINDS[kind](rng, shape, _LARGEST.get(t.dtype, 3.0e38))
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(numpy_dtype(t.dtype))


def _size(spec: Spec, name: str, rng: np.random.Generator) -> int:
    if name in spec.draw.ranges:
        choices = spec.draw.ranges[name]
        return choices[int(rng.integers(len(choices)))]
    low, high, step = spec.draw.steps[name]
    return low + step * int(rng.integers((high - low) // step + 1))


def _sprinkled(value: float) -> Callable[[np.random.Generator, tuple[int, ...], float], Array]:
    """Normal numbers in which about one in sixteen (and at least one) is ``value``."""

    def make(rng: np.random.Generator, shape: tuple[int, ...], largest: float) -> Array:
        a = rng.standard_normal(shape)
        if a.size:
            a[rng.random(shape) < 1 / 16] = value
            a.reshape(-1)[int(rng.integers(a.size))] = value
        return a

    return make


#: Input kind → generator of float64 values of a shape, given the dtype's largest finite value.
INPUT_KINDS: Mapping[str, Callable[[np.random.Generator, tuple[int, ...], float], Array]] = {
    "random": lambda rng, shape, _: rng.standard_normal(shape),
    "uniform": lambda rng, shape, _: rng.random(shape),
    "large": lambda rng, shape, largest: rng.standard_normal(shape) * min(1e4, largest / 64),
    "tiny": lambda rng, shape, _: rng.standard_normal(shape) * 1e-4,
    "negative": lambda rng, shape, _: -1.0 - rng.random(shape),
    "zeros": lambda rng, shape, _: np.zeros(shape),
    "ones": lambda rng, shape, _: np.ones(shape),
    "-inf": _sprinkled(-np.inf),
    "inf": _sprinkled(np.inf),
    "nan": _sprinkled(np.nan),
    "empty": lambda rng, shape, _: np.zeros(shape),  # for cases with a size of 0
}

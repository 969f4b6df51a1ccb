"""What the whole kernels share: inputs, a run in which no error may be found, a comparison."""

import ml_dtypes
import numpy as np

from tilelab.compiler import capture
from tilelab.sim import simulate
from tilelab.trace import SimParams

bf = ml_dtypes.bfloat16
rng = np.random.default_rng(5)


class Cases(dict):
    """Functions by name, each of which runs one kernel and compares."""

    def __call__(self, function):
        self[function.__name__] = function
        return function


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


def go(kernel, consts=None, target="sm_80", quiet=False, **inputs):
    """Simulate; no error may be found unless ``quiet``."""
    trace = simulate(capture(kernel, consts=consts), inputs, SimParams(target=target))
    assert quiet or not [f for f in trace.findings if f.severity == "error"], [str(f) for f in trace.findings]
    return trace


def eq(trace, name, want, tolerance=0):
    """Compare one output."""
    got, want = (np.asarray(x).astype(np.float64) for x in (trace.outputs[name], want))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

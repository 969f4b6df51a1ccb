"""Every case of the corpus, simulated at tile level, agrees with its oracle, and nothing in it is reported as an error."""

import numpy as np
import pytest
from cases import cases

import tilelab
from tilelab.sim import simulate
from tilelab.tensors import default_inputs


@pytest.mark.parametrize("case", [c for c in cases() if "tile" in c.levels], ids=lambda c: c.name)
def test_the_simulator_agrees_with_the_oracle(case):
    program = tilelab.capture(case.load(), consts=case.consts)
    inputs = case.make_inputs() or default_inputs(program)
    before = {k: np.array(v) for k, v in inputs.items() if v is not None}
    expected = case.expected({k: v for k, v in inputs.items() if v is not None})
    trace = simulate(program, inputs)
    assert [str(f) for f in trace.findings if f.severity == "error"] == []
    assert set(expected) <= set(trace.outputs)
    for name, want in expected.items():
        got = np.asarray(trace.outputs[name])
        assert got.shape == np.shape(want)
        np.testing.assert_allclose(got.astype(np.float64), np.asarray(want, np.float64), rtol=case.rtol, atol=case.atol)
    for name, value in before.items():  # inputs are never changed
        assert np.array_equal(value, inputs[name])


def test_names_are_unique_and_files_are_there():
    from cases import HERE

    names = [c.name for c in cases()]
    assert len(set(names)) == len(names)
    assert len(names) >= 60
    files = {f"kernels/{p.name}" for p in (HERE / "kernels").glob("*.py")}
    assert {c.file for c in cases()} <= files

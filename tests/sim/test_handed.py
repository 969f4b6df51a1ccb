"""The kernels that learners meet: each has exactly the tile-level outcome that it stands for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.conftest import CORPUS, codes, load
from tilelab.finding import KernelRefused

handed = load("corpus_handed", CORPUS / "kernels" / "handed.py")


def inputs_of(kernel, rng):
    from tilelab.compiler import capture

    program = capture(kernel)
    out = {}
    for p in program.params:
        shape = tuple(int(e.value) for e in p.buffer.shape)
        if p.name in ("Y", "C"):
            out[p.name] = None
        elif p.name == "N":
            out[p.name] = np.zeros(shape, p.buffer.dtype)
        elif p.name == "I":
            out[p.name] = np.arange(-1, 64, 4, dtype=np.int32)[: shape[0]]
        elif p.buffer.dtype.startswith("int"):
            out[p.name] = rng.integers(0, 50, shape).astype(p.buffer.dtype)
        else:
            out[p.name] = rng.standard_normal(shape).astype(p.buffer.dtype)
    return program, out


@pytest.mark.parametrize("name", list(handed.EXPECTED))
def test_findings_are_exactly_these(name, rng):
    from tilelab.sim import simulate

    program, inputs = inputs_of(getattr(handed, name)(), rng)
    if name == "sum_into_one_cell":
        inputs["Y"] = np.zeros(1, np.float32)
    trace = simulate(program, inputs)
    found = tuple((f.code, f.severity) for f in trace.findings if f.severity != "info")
    assert found == handed.EXPECTED[name]
    for f in trace.findings:
        assert f.file.endswith("handed.py")
        assert f.line
        assert f.message
        assert f.fix
    if name == "loop_by_every_thread":
        np.testing.assert_array_equal(trace.outputs["Y"], inputs["X"])
    elif name == "table_in_shared":
        np.testing.assert_array_equal(trace.outputs["Y"], np.arange(512) % 32)
    elif name == "add_then_load":
        np.testing.assert_array_equal(trace.outputs["Y"], inputs["X"] + inputs["A"][:7].sum(0))
    elif name == "tickets":
        positive = np.flatnonzero(inputs["X"] > 0)
        assert trace.outputs["N"][0] == positive.size
        np.testing.assert_array_equal(np.sort(trace.outputs["Y"][: positive.size]), positive)
    elif name == "odd_width":
        np.testing.assert_array_equal(trace.outputs["Y"], inputs["X"] * 2)
    elif name == "scores_then_values":
        scores = (inputs["Q"].astype(np.float32) @ inputs["K"].astype(np.float32).T).astype(np.float16).astype(np.float32)
        np.testing.assert_allclose(trace.outputs["Y"].astype(np.float32), scores @ inputs["V"].astype(np.float32), rtol=2e-3, atol=0.1)
    elif name == "rows_by_index":
        rows = inputs["I"]
        want = np.where(((rows >= 0) & (rows < 64))[:, None], inputs["V"][np.clip(rows, 0, 63)], np.float16(0))
        np.testing.assert_array_equal(trace.outputs["Y"], want)


def first(name, rng, **given):
    from tilelab.sim import simulate

    program, inputs = inputs_of(getattr(handed, name)(), rng)
    inputs.update(given)
    return simulate(program, inputs)


def test_uninitialised_accumulator_names_the_product_and_the_remedy(rng):
    trace = first("accumulator_not_cleared", rng)
    (f,) = trace.findings
    assert "T.gemm reads total[0, 0]" in f.message
    assert "T.clear(total)" in f.fix
    assert f.block == (0, 0, 0)
    assert f.evidence["buffer"] == "total"


def test_fill_says_which_elements(rng):
    trace = first("fill_beyond", rng)
    (f,) = trace.findings
    assert "8..11" in f.message
    assert (f.evidence["low"], f.evidence["high"]) == (8, 11)
    np.testing.assert_array_equal(trace.outputs["Y"], [0, 0, 0, 0, 0, 0, 7, 7])


def test_masked_gather_says_index_and_row(rng):
    trace = first("rows_by_index", rng)
    (f,) = trace.findings
    assert f.evidence["index"][0] == -1
    assert f.indices["i"] == 0
    assert "reads" in f.message or "read gives 0" in f.message


def test_prints_are_tables(rng):
    trace = first("print_everywhere", rng)
    assert len(trace.prints) == 4
    assert [p.block for p in trace.prints] == [(b, 0, 0) for b in range(4)]
    assert all(p.values.shape == (16, 16) and p.dtype == "float16" for p in trace.prints)


def test_mismatched_copy_is_refused_in_words():
    from tilelab.compiler import capture, loading

    with pytest.raises(KernelRefused) as e, loading():
        capture(handed.copy_does_not_fit())
    f = e.value.finding
    assert f.code == "TL701"
    assert "64" in f.message
    assert "32" in f.message


def test_a_race_is_not_reported_where_there_is_none(rng, run):
    import tilelang.language as T

    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                Y[i] = Y[i] + X[i]

    x = rng.standard_normal(64).astype(np.float32)
    trace = run(kernel, X=x, Y=x)
    assert codes(trace) == []
    np.testing.assert_array_equal(trace.outputs["Y"], x + x)

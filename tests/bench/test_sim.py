"""`tilelab bench sim`: the record, the table, and that nothing wrong is timed."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tilelab.bench import sim, sim_startup
from tilelab.cli import main
from tilelab.errors import InputError


def test_record_and_table():
    record = sim.run(["row sum"], seconds=0.05, variants=("checks", "no checks", "torch"), progress=lambda _: None)
    assert (record["schema"], record["version"]) == ("tilelab.bench.sim", 1)
    assert [r["variant"] for r in record["results"]] == ["checks", "no checks", "torch"]
    for r in record["results"]:
        assert 0 < r["min_ms"] <= r["median_ms"] <= r["max_ms"]
        assert r["samples"] >= 1
    assert {b["text"] for b in record["bars"]} == {"within 0.1 s", "checks cost at most 3×"}
    assert json.loads(json.dumps(record)) == record
    text = sim.table(record)
    assert "row sum" in text
    assert "Triton's interpreter was not timed" in text


def test_a_wrong_result_is_never_timed():
    case = sim.CASES[0]
    inputs = {"A": np.ones((4, 4), np.float32)}
    sim._verify(case, inputs, "checks", np.full(4, 4.0))
    with pytest.raises(RuntimeError, match="wrong"):
        sim._verify(case, inputs, "checks", np.full(4, 4.5))
    with pytest.raises(RuntimeError, match="wrong"):
        sim._verify(case, inputs, "checks", np.full(4, np.nan))


def test_bars_compare_with_the_right_side():
    case = dataclasses.replace(sim.CASES[0], bars={"triton": 50, "torch": 0.1})
    rows = [
        {"case": case.name, "variant": v, "median_ms": t, "min_ms": t / 2 if v == "checks" else t}
        for v, t in (("checks", 10.0), ("no checks", 4.0), ("torch", 2.0), ("triton", 400.0))
    ]
    bars = {b["text"]: (b["value"], b["met"]) for b in sim._bars([case], rows)}
    assert bars["at least 50× faster than triton"] == (40.0, False)
    assert bars["within 10× of torch"] == (5.0, True)
    assert bars["checks cost at most 3×"] == (2.5, True)
    least = {b["text"]: b["least"] for b in sim._bars([case], rows)}
    assert least == {"at least 50× faster than triton": 80.0, "within 10× of torch": 2.5, "checks cost at most 3×": 1.25}


def test_rounds_show_how_steady_the_machine_is():
    record = sim.run(["row sum"], seconds=0.02, variants=("checks", "torch"), rounds=3, progress=lambda _: None)
    for r in record["results"]:
        assert len(r["rounds_ms"]) == 3
        assert r["min_ms"] <= min(r["rounds_ms"])
    assert len(record["machine"]["load"]) == 4
    assert main(["bench", "sim", "--rounds", "0"]) == 2


def test_starting_is_timed_in_processes_of_their_own():
    found = sim_startup.measure(runs=2)
    assert 0 < found["seconds"]["python"]["min_s"] < found["seconds"]["help"]["min_s"]
    assert [b["text"] for b in found["bars"]] == ["import tilelab over bare Python within 0.05 s", "tilelab --help within 0.3 s"]


def test_equal_work_in_every_case():
    for case in sim.CASES:
        small = {
            name: np.random.default_rng(0).standard_normal(tuple(min(n, 64) for n in shape)).astype(dtype)
            for name, (shape, dtype) in case.inputs.items()
        }
        import torch

        got = case.torch(*(torch.from_numpy(a) for a in small.values())).float().numpy()
        np.testing.assert_allclose(got, case.reference(*small.values()), rtol=case.tolerance, atol=5e-3 if "matmul" in case.name else 1e-4)


def test_unknown_names_are_refused(capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(InputError, match="row sum"):
        sim.run(["nonsense"])
    assert main(["bench", "nonsense"]) == 2
    assert main(["bench", "gemm"]) == 3
    assert main(["bench", "sim", "--without", "everything"]) == 2
    assert main(["bench", "sim", "--seconds", "0"]) == 2
    assert "nonsense" in capsys.readouterr().err

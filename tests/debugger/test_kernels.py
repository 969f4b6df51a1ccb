"""Real kernels: values after each step are those that numpy works out, forwards and back; stops are where they belong."""

from __future__ import annotations

import numpy as np
import pytest

import tilelab
from tests.corpus.cases import cases
from tests.sim.conftest import CORPUS, load
from tilelab import api
from tilelab.debugger import Session, debug
from tilelab.errors import InputError
from tilelab.tensors import default_inputs
from tilelab.trace import SimParams

kernels = load("debugger_kernels", CORPUS.parent / "debugger" / "kernels.py")


@pytest.fixture(scope="module")
def product():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 64), (64, 96)))
    return a, b, debug(kernels.matmul, a, b, block=(2, 1))


def test_a_product_grows_by_one_tile_a_turn(product):
    a, b, session = product
    a, b = a[32:64].astype(np.float32), b[:, 64:96].astype(np.float32)
    session.goto(0)
    session.clear()
    session.break_at(_line("T.gemm(a, b, c)"))
    for k in range(4):
        step = session.cont()
        assert step.event.loops == {"k": k}
        np.testing.assert_allclose(step.values["c"], a[:, : 16 * k + 16] @ b[: 16 * k + 16], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(step.values["a"], a[:, 16 * k : 16 * k + 16])
        assert step.values["a"].dtype == np.float16
        assert step.changed == ("c",)
    for k in (2, 1, 0):  # and the same on the way back
        np.testing.assert_allclose(session.reverse().values["c"], a[:, : 16 * k + 16] @ b[: 16 * k + 16], rtol=1e-5, atol=1e-5)


def test_a_product_writes_its_own_part_of_the_output(product):
    a, b, session = product
    out = session.goto(-1).values["C"][32:64, 64:96]
    assert not np.ma.getmaskarray(out).any()
    np.testing.assert_allclose(np.ma.getdata(out), a[32:64].astype(np.float32) @ b[:, 64:96].astype(np.float32), rtol=1e-5, atol=1e-4)


def test_what_is_known_of_buffers(product):
    about = product[2].trace.buffers
    assert (about["c"].dtype, about["c"].scope, about["c"].shape) == ("float32", "local.fragment", (32, 32))
    assert (about["a"].dtype, about["a"].shape) == ("float16", (32, 16))
    assert about["a"].scope.startswith("shared")
    assert about["A"].scope == "global"
    assert product[2].trace.kernel == "matmul"


def test_a_condition_stops_where_the_number_says(product):
    a, b, session = product
    partial = [float(a[32, : 16 * k + 16].astype(np.float32) @ b[: 16 * k + 16, 64].astype(np.float32)) for k in range(4)]
    bound = sorted([0.0, *partial])[-2] + 1e-3
    session.clear()
    session.goto(0)
    session.break_at(f"c[0, 0] > {bound}")
    assert session.cont().event.loops == {"k": int(np.argmax(partial))}
    session.clear()


def test_over_and_out_leave_the_loop(product):
    session = product[2]
    session.goto(2)
    assert session.here.event.text.startswith("T.copy(A")
    assert session.out().event.text.startswith("T.copy(c, C")
    session.goto(2)
    assert session.over().index == 3


def test_softmax_matches_numpy_line_by_line():
    x = np.random.default_rng(2).standard_normal((8, 32)).astype(np.float32)
    session = debug(kernels.softmax, x, block=(1,))
    mine = x[4:8]
    top = mine.max(1)
    numerators = np.exp(mine - top[:, None])
    expected = {
        "T.reduce_max(x, top, dim=1)": ("top", top),
        "x[i, j] = T.exp(x[i, j] - top[i])": ("x", numerators),
        "T.reduce_sum(x, total, dim=1)": ("total", numerators.sum(1)),
        "x[i, j] = x[i, j] / total[i]": ("x", numerators / numerators.sum(1, keepdims=True)),
    }
    for text, (name, value) in expected.items():
        session.clear()
        session.goto(0)
        session.break_at(_line(text))
        step = session.cont()
        assert text in step.event.text
        np.testing.assert_allclose(step.values[name], value, rtol=2e-6)


def test_the_first_nan_has_its_operands_and_stops():
    x = np.random.default_rng(3).standard_normal((8, 32)).astype(np.float32)
    x[6, 5] = np.inf
    session = debug(kernels.softmax, x, block=(1,))
    step, nan = session.first_nan
    assert nan["value"] == "NaN"
    assert (nan["buffer"], nan["index"]) == ("x", [2, 5])
    assert {(o["buffer"], tuple(o["index"]), o["value"]) for o in nan["operands"]} == {("x", (2, 5), "Inf"), ("top", (2,), "Inf")}
    assert "T.exp" in session.events[step].text
    assert session.events[0].evidence["nan"]["buffer"] == "X"  # the infinity came in
    session.goto(1)
    session.break_at("isnan(x)")
    assert session.cont().index == step


def test_nothing_is_a_nan_where_nothing_went_wrong():
    session = debug(kernels.partly, np.arange(8, dtype=np.float32))
    assert session.first_nan is None
    session.break_at("nan")
    assert session.cont().index == len(session) - 1
    half = session.goto(1).values["s"]
    assert np.ma.getmaskarray(half).tolist() == [False] * 4 + [True] * 4
    assert not np.ma.isMaskedArray(session.goto(2).values["s"])
    assert session.values()["s"].tolist() == [0, 1, 2, 3, 0, 2, 4, 6]


def test_out_of_bounds_stops_at_the_very_turn():
    session = debug(kernels.out_of_bounds, np.arange(64, dtype=np.float32))
    (found,) = [f for f in session.findings if f.code == "TL101"]
    point = session.break_at("oob")
    step = session.cont()
    assert step.hit == point
    assert step.event.loops == {"k": 0}
    assert step.index == session.step_of(found)
    session.clear()
    session.goto(0)
    session.break_at("TL101")
    assert session.cont().index == step.index


def test_macros_are_entered_and_stepped_over():
    session = debug(kernels.macros, np.arange(8, dtype=np.float32))
    session.break_at(_line("            halve(x)"))
    first = session.cont()
    assert first.loc.line == _line("    for i in T.Parallel(8):\n        x[i] = x[i] / 2.0")
    assert first.loc.caller.line == _line("            halve(x)")
    assert first.values["x"].tolist() == [i / 2 for i in range(8)]
    assert session.over().values["x"].tolist() == [i / 2 + 1 for i in range(8)]
    assert session.cont().event.loops == {"_k": 1}


def test_roles_of_a_warp_specialised_kernel_take_turns():
    case = next(c for c in cases() if c.name == "producer_consumer")
    session = _corpus(case)
    roles = [e.role for e in session.events]
    assert set(roles) == {"", "threads 128–255", "threads 0–127"}
    waits = [e for e in session.events if "waits for" in e.text]
    assert waits
    assert all(e.role for e in waits)
    trace = session.trace
    a = np.ma.getdata(session.goto(-1).values["A"]).astype(np.float32)
    b = np.ma.getdata(session.values()["B"]).astype(np.float32)
    for k in range(a.shape[1] // 32):  # what the producer loads at turn k is what the consumer multiplies at turn k
        at = next(i for i, e in enumerate(session.events) if e.role == "threads 0–127" and e.loops == {"k": k} and "T.gemm" in e.text)
        tile = session.goto(at).values["a"][k % 2]
        np.testing.assert_array_equal(np.ma.getdata(tile), a[:64, 32 * k : 32 * k + 32])
        np.testing.assert_allclose(session.values()["c"], a[:64, : 32 * k + 32] @ b[: 32 * k + 32, :64], rtol=1e-4, atol=1e-3)
    assert trace.buffers["full"].dtype == "mbarrier"
    assert set(np.unique(session.values()["full"])) <= {0, 1}


def test_a_copy_in_flight_lands_at_the_wait():
    session = _corpus(next(c for c in cases() if c.name == "tma_once"))
    issued = next(e for e in session.events if "tma_copy" in e.text)
    arrived = next(e for e in session.events if "barrier_arrive" in e.text)
    landed = next(e for e in session.events if "mbarrier_wait" in e.text)
    assert issued.index < arrived.index < landed.index
    assert arrived.threads == "thread 0"
    assert np.ma.getmaskarray(issued.after["s"]).all()  # in flight: nobody may read any of it yet
    assert not np.ma.isMaskedArray(landed.after["s"])
    assert landed.after["s"].shape == (64, 64)


# ------------------------------------------------------------------------------------------------ recording
@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_recording_changes_no_result(case):
    program = api.program_of(case.load(), consts=case.consts)
    inputs = case.make_inputs() or (api.sizes(program, case.consts) | default_inputs(program, seed=0, consts=case.consts))
    plain = api.run(program, inputs, level="tile", params=SimParams())
    recorded = api.run(program, inputs, level="tile", params=SimParams(record_blocks=((0, 0, 0),)))
    assert plain.outputs.keys() == recorded.outputs.keys()
    exact = all(f.code != "TL208" for f in plain.findings)  # the order of float atomics is free
    for name, value in plain.outputs.items():
        a, b = (np.asarray(v).astype(np.float64) for v in (recorded.outputs[name], value))
        np.testing.assert_allclose(a, b, rtol=0 if exact else 1e-3, atol=0 if exact else 1e-4)
    assert [f.code for f in plain.findings] == [f.code for f in recorded.findings]
    assert recorded.events
    assert plain.events == ()
    assert all(e.loc is not None and e.text for e in recorded.events)


def test_the_recording_is_bounded_and_says_so():
    x = np.zeros(64, np.int32)
    session = debug(kernels.counting, x, params=SimParams(record_bytes=1 << 20))
    assert 500 < len(session) < 3000
    assert "1 MiB" in session.bound
    assert "later steps" in session.bound
    left = int(session.bound.split()[0].replace(",", ""))
    assert left + len(session) == 3003
    np.testing.assert_array_equal(tilelab.simulate(kernels.counting, x).result, np.bincount(np.arange(3000) % 64, minlength=64))


def test_many_steps_cost_little_memory_and_are_all_there():
    session = debug(kernels.counting, np.zeros(64, np.int32))
    assert len(session) == 3003
    assert session.bound == ""
    for k in (0, 63, 64, 1000, 2999):
        expected = np.bincount(np.arange(k + 1) % 64, minlength=64)
        np.testing.assert_array_equal(session.goto(k + 2).values["s"], expected)


def test_blocks_that_were_not_recorded_are_refused():
    with pytest.raises(InputError, match="no block 7,0,0: its grid is 2×1×1"):
        debug(kernels.softmax, np.zeros((8, 32), np.float32), block=(7,))


def test_several_blocks_of_one_run():
    x = np.arange(8 * 32, dtype=np.float32).reshape(8, 32) / 64
    trace = tilelab.simulate(kernels.softmax, x, params=SimParams(record_blocks=((0, 0, 0), (1, 0, 0))))
    for block in (0, 1):
        session = Session(trace, block=(block, 0, 0))
        np.testing.assert_array_equal(session.goto(1).values["x"], x[4 * block : 4 * block + 4])


def test_prints_belong_to_their_steps():
    session = _corpus(next(c for c in cases() if c.name == "printed"))
    printed = [(e.text, [session.trace.prints[p].name for p in e.prints]) for e in session.events if e.prints]
    assert [names for _, names in printed[:2]] == [["s"], ["f"]]
    assert all("T.print" in text for text, _ in printed)


def _corpus(case) -> Session:
    program = api.program_of(case.load(), consts=case.consts)
    inputs = case.make_inputs() or (api.sizes(program, case.consts) | default_inputs(program, seed=0, consts=case.consts))
    return Session(api.run(program, inputs, level="tile", params=SimParams(record_blocks=((0, 0, 0),))))


def _line(text: str) -> int:
    source = (CORPUS.parent / "debugger" / "kernels.py").read_text()
    assert source.count(text) == 1, text
    return source[: source.index(text)].count("\n") + 1


def test_a_flood_of_prints_is_one_table():
    from tilelab.views import prints

    handed = load("corpus_handed", CORPUS / "kernels" / "handed.py")
    x = np.arange(256, dtype=np.float16).reshape(16, 16)
    view = prints(handed.print_everywhere(), x)
    rows = view.table()[1]
    assert [row[1] for row in rows] == [f"{b},0,0" for b in range(4)]
    assert all(row[5] == "float16" and row[6].startswith("[16, 16] 0 1 2 3") for row in rows)
    assert all((p["value"] == x).all() for p in view.data["prints"])
    assert len(view.to_text().splitlines()) < 20

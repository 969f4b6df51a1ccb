"""Roles by hand: who runs what when, against what the mbarriers allow; kernels of the corpus and hand-made ones."""

import pytest
import tilelang.language as T
from cases import cases

import tilelab
from tilelab import serde
from tilelab.analysis.roles import role_schedules
from tilelab.errors import InputError
from tilelab.schedule import Schedule
from tilelab.views import View, pipeline

pytestmark = pytest.mark.slow  # imports TileLang
CASES = {c.name: c for c in cases()}


def with_ws(versions, iterations=6):
    """A producer that may be `versions` iterations ahead of its consumer."""

    @T.prim_func
    def k(A: T.Tensor((64 * iterations,), "float32"), B: T.Tensor((64 * iterations,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((versions, 8, 8), "float32")
            full = T.alloc_barrier([128] * versions)
            empty = T.alloc_barrier([128] * versions)
            with T.ws(1):
                for i in range(iterations):
                    T.mbarrier_wait_parity(empty[i % versions], (i // versions + 1) % 2)
                    for r, c in T.Parallel(8, 8):
                        s[i % versions, r, c] = A[i * 64 + r * 8 + c]
                    T.mbarrier_arrive(full[i % versions])
            with T.ws(0):
                for i in range(iterations):
                    T.mbarrier_wait_parity(full[i % versions], (i // versions) % 2)
                    for r, c in T.Parallel(8, 8):
                        B[i * 64 + r * 8 + c] = s[i % versions, r, c]
                    T.mbarrier_arrive(empty[i % versions])

    return tilelab.capture(k)


def steps(schedule, statement):
    return {s.iteration: s.step for s in schedule.slots if s.statement == statement}


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_nobody_runs_before_the_barriers_let_it(versions):
    (s,) = role_schedules(with_ws(versions), shown=6)
    assert s.basis == "hand-roles"
    assert [lane.split()[1] for lane in s.lanes] == ["128–255", "0–127"]
    made, used = steps(s, 0), steps(s, 1)
    assert set(made) == set(used) == set(range(6))
    for i in range(6):
        assert made[i] < used[i]  # full
        if i >= versions:
            assert used[i - versions] < made[i]  # empty
    # Nobody waits longer than it must: each step is the earliest that the rules and the step before allow.
    for i in range(1, 6):
        earliest = max(made[i - 1] + 1, used[i - versions] + 1 if i >= versions else 0)
        assert made[i] == earliest


@pytest.mark.parametrize("versions", [1, 2, 3])
def test_versions_never_hold_two_iterations_at_once(versions):
    (s,) = role_schedules(with_ws(versions), shown=6)
    (b,) = s.buffers
    assert (b.name, b.versions, b.version_bytes) == ("s", versions, 256)
    for a in s.held:
        assert a.written < a.read <= a.last
        for c in s.held:
            assert a is c or a.version != c.version or a.last < c.written or c.last < a.written


def test_the_producer_of_the_corpus_runs_ahead():
    c = CASES["producer_consumer"]
    (s,) = role_schedules(tilelab.capture(c.load(), consts=c.consts))
    assert s.lanes == ("producer 128–255", "consumer 0–127")
    assert (s.num_stages, s.iterations, s.overlap) == (2, 4, 1)
    assert dict(s.phases) == {"prologue": (0, 1), "steady": (1, 4), "epilogue": (4, 5)}
    assert serde.loads(serde.dumps(s), Schedule) == s


def test_the_view_shows_roles_where_there_is_no_pipelined_loop():
    c = CASES["producer_consumer"]
    view = pipeline(tilelab.capture(c.load(), consts=c.consts), target="sm_90")
    assert View.from_json(view.to_json()).to_json() == view.to_json()
    text = view.to_text()
    assert "for k in T.serial" in text
    assert "producer 128–255  copy A → a" in text
    assert "生产者 128–255" in pipeline(tilelab.capture(c.load(), consts=c.consts), target="sm_90", lang="zh").to_svg()


@pytest.mark.parametrize(("family", "sizes", "lanes"), [("gemm", (512, 512, 512), 3), ("mla", (128,), 3)])
def test_production_kernels(family, sizes, lanes):
    from tilelab import kernels

    module = __import__(f"{kernels.__name__}.{family}", fromlist=[family])
    (s,) = role_schedules(tilelab.capture(module.hopper.get_tir(*sizes)))
    assert len(s.lanes) == lanes
    assert s.lanes[0].startswith("producer 256")
    assert len(s.slots) == s.shown * len(s.statements)  # nobody got stuck
    if family == "gemm":
        assert (s.num_stages, s.overlap) == (4, 3)


def test_kernels_without_roles_have_none():
    c = CASES["vector_add"]
    program = tilelab.capture(c.load(), consts=c.consts)
    assert role_schedules(program) == ()
    with pytest.raises(InputError, match="no pipelined loop and no roles"):
        pipeline(program)

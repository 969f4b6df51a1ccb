"""Schedules run: every statement must see what it would have seen with one iteration after the other."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_run import agrees

from tilelab import ir
from tilelab.analysis import pipeline


def const(n):
    return ir.Const(dtype="int32", value=n)


def buffer(name, scope="shared.dyn", shape=(16, 16)):
    data = ir.Var(dtype="handle", name=name)
    return ir.Buffer(name=name, dtype="float16", shape=tuple(const(n) for n in shape), scope=scope, data=data)


def region(b, access):
    return ir.Region(dtype="handle", buffer=b, mins=(const(0),) * 2, extents=tuple(b.shape), access=access)


def tile(op, *args, line=0):
    loc = ir.SourceLoc(file="k.py", line=line) if line else None
    return ir.Tile(op=op, args=tuple(region(b, how) for b, how in args), loc=loc)


def loop(*body, extent=8, **attrs):
    return ir.For(var=ir.Var(dtype="int32", name="k"), min=const(0), extent=const(extent), kind="serial", body=body, attrs=attrs)


def gemm_loop(**attrs):
    A, B = buffer("A", "global"), buffer("B", "global")
    a, b, c = buffer("a"), buffer("b"), buffer("c", "local.fragment")
    return loop(tile("copy", (A, "r"), (a, "w"), line=3), tile("copy", (B, "r"), (b, "w"), line=4),
                tile("gemm", (a, "r"), (b, "r"), (c, "rw"), line=5), **attrs)  # fmt: skip


def attention_loop(**attrs):
    K, V = buffer("K", "global"), buffer("V", "global")
    k, v, s, p, o = buffer("k"), buffer("v"), buffer("s", "local.fragment"), buffer("p", "local.fragment"), buffer("o", "local.fragment")
    return loop(tile("copy", (K, "r"), (k, "w")), tile("fill", (s, "w")), tile("gemm", (k, "r"), (s, "rw")), tile("copy", (s, "r"), (p, "w")),
                tile("copy", (V, "r"), (v, "w")), tile("gemm", (p, "r"), (v, "r"), (o, "rw")), **attrs)  # fmt: skip


LOOPS = {"gemm": gemm_loop, "attention": attention_loop}


@pytest.mark.parametrize("roles", [False, True])
@pytest.mark.parametrize("stages", range(1, 6))
@pytest.mark.parametrize("name", LOOPS)
def test_plans_keep_the_meaning_with_as_few_versions_as_can_be(name, stages, roles):
    one = LOOPS[name](num_stages=stages)
    works = pipeline.work_of(one)
    (plan,) = pipeline.what_if(one, (stages,), roles=roles, shown=stages * 3)
    assert plan.findings == ()
    assert agrees(plan, works)
    versions = {b.name: b.versions for b in plan.buffers}
    for name_, n in versions.items():
        if n > 1:
            assert not agrees(plan, works, {**versions, name_: n - 1}), f"{name_} would do with {n - 1}"


def test_every_statement_of_every_iteration_runs_once():
    for stages in range(1, 6):
        (plan,) = pipeline.what_if(gemm_loop(), (stages,), shown=8)
        assert sorted((s.iteration, s.statement) for s in plan.slots) == list(itertools.product(range(8), range(3)))
        (f0, f1), (s0, s1), (e0, e1) = plan.phases.values()
        assert (f0, f1, s1, e1) == (0, s0, e0, plan.steps)
        running = [{s.statement for s in plan.slots if s.step == k} for k in range(plan.steps)]
        assert all(len(running[k]) == 3 for k in range(s0, s1))
        assert all(len(running[k]) < 3 for k in (*range(f0, f1), *range(e0, e1)))


permutation = st.permutations(range(3))


@settings(max_examples=300, deadline=None)
@given(order=permutation, stage=st.lists(st.integers(0, 3), min_size=3, max_size=3))
def test_a_schedule_is_refused_exactly_where_it_changes_the_meaning(order, stage):
    one = gemm_loop()
    works = pipeline.work_of(one)
    made = pipeline.by_hand(one, order, stage, shown=9)
    plenty = {b.name: 64 for b in pipeline.fresh_buffers(works)}
    assert (made.findings == ()) == agrees(made, works, plenty)
    if not made.findings:
        assert agrees(made, works)


@settings(max_examples=200, deadline=None)
@given(order=st.permutations(range(6)), stage=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_the_same_for_attention(order, stage):
    one = attention_loop()
    works = pipeline.work_of(one)
    made = pipeline.by_hand(one, order, stage, shown=7)
    plenty = {b.name: 64 for b in pipeline.fresh_buffers(works)}
    assert (made.findings == ()) == agrees(made, works, plenty)
    if not made.findings:
        assert agrees(made, works)


def test_what_is_broken_is_named():
    made = pipeline.by_hand(gemm_loop(), [0, 1, 2], [1, 0, 0])
    (found,) = made.findings
    assert found.code == "TL209"
    assert "gemm a, b → c" in found.message
    assert "copy A → a" in found.message
    assert (found.line, found.evidence["lines"]["earlier"]) == (5, 3)
    assert found.evidence["buffer"] == "a"


@pytest.mark.parametrize(
    ("order", "stage", "says"),
    [([0, 1], [0, 0, 1], "3 statements"), ([0, 1, 1], [0, 0, 1], "each place"), ([0, 1, 2], [0, 0, -1], "negative")],
)
def test_numbers_that_are_no_schedule(order, stage, says):
    (found,) = pipeline.by_hand(gemm_loop(), order, stage).findings
    assert says in found.message


def test_a_carried_shared_buffer_has_one_version():
    total = buffer("total")
    A, a = buffer("A", "global"), buffer("a")
    one = loop(tile("copy", (A, "r"), (a, "w")), tile("gemm", (a, "r"), (total, "rw")))
    (plan,) = pipeline.what_if(one, (3,))
    assert [b.name for b in plan.buffers] == ["a"]


def test_a_producer_runs_as_far_ahead_as_its_versions():
    (plan,) = pipeline.what_if(gemm_loop(), (3,), roles=True, shown=9)
    assert plan.lanes == ("producer", "consumer")
    assert {b.versions for b in plan.buffers} == {3}
    assert plan.overlap == 2


@pytest.mark.parametrize("name", LOOPS)
def test_overlap_by_counting(name):
    for stages in range(1, 6):
        (plan,) = pipeline.what_if(LOOPS[name](), (stages,), shown=12)
        counts = []
        for k, c in enumerate(plan.statements):
            readers = [q for q, r in enumerate(plan.statements) if c.lane == "copy" and set(c.writes) & set(r.reads)]
            run_ = [(s.iteration, s.statement) for s in plan.slots]
            counts += [sum(1 for it, q2 in run_[run_.index((6, k)) : run_.index((6, q))] if q2 == q) for q in readers]
        assert plan.overlap == min(counts)


def test_alive_bytes_by_counting():
    (plan,) = pipeline.what_if(gemm_loop(), (3,), shown=6)
    alive = plan.alive_bytes()
    for step in range(plan.steps):
        held = sum(1 for i in range(6) if i <= step <= i + 2)
        assert alive[step] == held * 2 * 16 * 16 * 2
    assert plan.smem_bytes == max(alive)

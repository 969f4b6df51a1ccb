"""Values of a Trace on a layout, step by step; and a fragment through shared memory, against plain loops."""

import json

import numpy as np
import pytest

from tilelab import ir
from tilelab.errors import InputError
from tilelab.layout_make import atom, make_fragment, make_shared, row_major
from tilelab.trace import Event, Trace
from tilelab.views import View, layout
from tilelab.views.layout_through import moved, pairs_of
from tilelab.views.layout_values import frames_of


def event(index, after, loops=None, block=(0, 0, 0)):
    loc = ir.SourceLoc(file="k.py", line=10 + index)
    return Event(index=index, block=block, role="", text=f"step {index}", loc=loc, loops=loops or {}, after=after)


def trace():
    tile = np.arange(32.0).reshape(8, 4)
    half = np.ma.masked_array(tile, mask=tile < 16)
    events = (event(0, {"x": half}), event(1, {"y": tile}), event(2, {"x": -tile}), event(3, {"x": tile}, block=(1, 0, 0)))
    return Trace(outputs={}, events=events)


def test_each_step_that_wrote_the_buffer_is_a_frame():
    one = row_major((8, 4), dtype="float32", name="x")
    frames = frames_of(trace(), one)
    assert [(f["step"], f["text"], f["line"]) for f in frames] == [(0, "step 0", 10), (2, "step 2", 12)]
    assert np.array_equal(frames[0]["unwritten"], np.arange(32).reshape(8, 4) < 16)
    assert np.array_equal(frames[0]["value"][4:], np.arange(16.0, 32).reshape(4, 4))
    assert np.array_equal(frames[1]["value"], -np.arange(32.0).reshape(8, 4))
    assert len(frames_of(trace(), one, step=1)) == 1
    assert [f["step"] for f in frames_of(trace(), one, block=(1, 0, 0))] == [3]


def test_versions_are_filled_in_turn():
    made = tuple(event(k, {"a": np.full((2, 2), float(k))}, loops={"k": k}) for k in range(5))
    frames = frames_of(Trace(outputs={}, events=made), row_major((3, 2, 2), dtype="float16", name="a"))
    held = frames[-1]["value"][:, 0, 0]
    assert held.tolist() == [3.0, 4.0, 2.0]  # versions k % 3
    assert frames[0]["unwritten"][1:].all()
    assert not frames[0]["unwritten"][0].any()


def test_what_does_not_fit_or_is_not_there():
    assert frames_of(trace(), row_major((5, 5), name="x")) == []
    with pytest.raises(InputError, match="no step 9"):
        frames_of(trace(), row_major((8, 4), name="x"), step=9)
    with pytest.raises(InputError, match="was not recorded"):
        frames_of(trace(), row_major((8, 4), name="x"), block=(7, 0, 0))
    with pytest.raises(InputError, match="recorded no block"):
        frames_of(Trace(outputs={}), row_major((8, 4), name="x"))


def test_the_view_shows_the_last_step_and_round_trips():
    view = layout(row_major((8, 4), dtype="float32", name="x"), trace=trace(), step=2)
    r = view.data["layouts"][0]
    assert np.array_equal(r["arrays"]["value"], r["frames"][-1]["value"])
    assert "step 2: step 2" in view.to_text()
    back = View.from_json(json.loads(view.render("json")))
    assert np.array_equal(back.data["layouts"][0]["frames"][0]["value"], r["frames"][0]["value"], equal_nan=True)


# ------------------------------------------------------------------------------------------------- through
def passes(fragment, shared, register):
    """By plain counting: the most distinct words of one bank among a warp's addresses."""
    thread, place, address = fragment.threads_of(), fragment.registers(), shared.addresses()
    worst = 0
    for warp in range(-(-fragment.threads // 32)):
        words = set()
        for at in np.ndindex(fragment.shape):
            for c in range(thread.shape[-1]):
                if thread[at][c] // 32 == warp and place[at][c] == register:
                    words.add(int(address[at]) * shared.bits // 8 // 4)
        counts = [sum(w % 32 == bank for w in words) for bank in range(32)]
        worst = max(worst, *counts)
    return worst


@pytest.mark.parametrize("shared", [row_major((16, 8), dtype="float32"), row_major((16, 8), dtype="float16"), make_shared((16, 8), lambda i, j: i * 12 + j)])
def test_passes_over_the_banks_against_counting(shared):
    fragment = atom("mma.m16n8k16.D")
    view = layout(fragment, through=shared)
    (pair,) = view.data["through"]
    assert (pair["fragment"], pair["shared"]) == (0, 1)
    assert pair["passes"] == [passes(fragment, shared, r) for r in range(4)]
    assert f"at most {max(pair['passes'])} passes" in view.to_text()


def test_through_the_version_of_a_buffer():
    fragment, shared = make_fragment((8, 4), lambda i, j: (i * 4 + j, 0), name="f"), row_major((2, 8, 4), dtype="float32", name="s")
    (pair,) = pairs_of([fragment, shared], {("f", "s")})
    assert pair["passes"] == [1]
    assert pairs_of([fragment, shared], {("s", "f")}) == []


def test_other_shapes_do_not_go_through():
    with pytest.raises(InputError, match="does not go through"):
        layout("mma.m16n8k16.D", through=row_major((16, 9)))


def test_only_what_is_copied_is_paired():
    i = ir.Var(dtype="int32", name="i")

    def buffer(name, scope):
        return ir.Buffer(name=name, dtype="float32", shape=(ir.Const(dtype="int32", value=8),), scope=scope, data=ir.Var(dtype="handle", name=name))

    f, s, g = buffer("f", "local.fragment"), buffer("s", "shared.dyn"), buffer("g", "shared.dyn")
    load = ir.Load(dtype="float32", buffer=s, indices=(i,))
    zero, eight = ir.Const(dtype="int32", value=0), ir.Const(dtype="int32", value=8)
    loop = ir.For(var=i, min=zero, extent=eight, kind="parallel", body=(ir.Store(buffer=f, indices=(i,), value=load),))
    program = ir.Program(name="k", level="tile", params=(), body=(loop, ir.Store(buffer=g, indices=(zero,), value=zero)))
    assert moved(program) == {("f", "s")}

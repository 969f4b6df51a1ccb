"""what-if: edits re-lower by themselves, and the table says what changed."""

import json

import numpy as np
import pytest
from cases import cases

import tilelab
from tilelab import ir, ir_text
from tilelab.compiler import edits
from tilelab.errors import InputError
from tilelab.verify import verify
from tilelab.views import View

CASES = {c.name: c for c in cases()}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def program():
    return tilelab.capture(CASES["gemm"].load(), consts=CASES["gemm"].consts)


@pytest.fixture(scope="module")
def table(program):
    return tilelab.whatif(program, num_stages=[3, 30], target="sm_90")


@pytest.fixture(scope="module")
def padded(program):
    return tilelab.whatif(program, pad=[8], target="sm_80")


@pytest.mark.parametrize(
    ("edit", "value", "says"),
    [
        (edits.with_stages, 4, "T.Pipelined(4, num_stages=4)"),
        (edits.with_threads, 256, "threads=256"),
        (edits.with_padding, 8, "i0 * 40 + i1"),
    ],
)
def test_an_edit_changes_one_thing(program, edit, value, says):
    edited = edit(program, value)
    assert verify(edited) is edited
    before, after = ir_text.text(program).splitlines(), ir_text.text(edited).splitlines()
    assert says not in "\n".join(before)
    assert says in "\n".join(after)
    assert len([line for line in after if line not in before]) == 1
    assert [s.loc for s in ir.walk(edited) if isinstance(s, ir.Tile)] == [s.loc for s in ir.walk(program) if isinstance(s, ir.Tile)]


def test_no_padding_is_no_edit(program):
    assert edits.with_padding(program, 0) is program


@pytest.mark.parametrize(
    ("name", "edit", "value", "says"),
    [
        ("copy1d_128", edits.with_stages, 2, "no loop over T.Pipelined"),
        ("copy1d_128", edits.with_padding, 8, "no shared buffer"),
        ("gemm", edits.with_threads, 0, "not a whole number"),
        ("gemm", edits.with_stages, True, "not a whole number"),
    ],
)
def test_an_edit_that_makes_no_sense_is_said(name, edit, value, says):
    one = tilelab.capture(CASES[name].load(), consts=CASES[name].consts)
    with pytest.raises(InputError, match=says):
        edit(one, value)


def test_stages_cost_shared_memory_until_it_is_too_much(table):
    written, three, thirty = table.variants
    assert (written.edits, three.edits, thirty.edits) == ({}, {"num_stages": 3}, {"num_stages": 30})
    stage = 64 * 32 * 2 + 32 * 64 * 2  # bytes of a and b
    for v, stages in ((written, 2), (three, 3), (thirty, 30)):
        assert 0 <= v.smem_bytes - stages * stage < 1024  # and the barriers
    assert [v.runs for v in table.variants] == [True, True, False]
    assert [f.code for f in thirty.findings] == ["TL501"]
    assert thirty.smem_limit_bytes == 227 * 1024
    assert three.layouts == ()  # one more version of the same layout


def test_padding_changes_the_layouts_of_shared_buffers_only(padded):
    written, eight = padded.variants
    assert eight.layouts == ("a", "b")
    assert eight.smem_bytes > written.smem_bytes
    places = eight.artifact.layouts["a"].addresses()[0]
    assert np.array_equal(places, np.arange(64)[:, None] * 40 + np.arange(32))


def test_a_refusal_is_a_row_in_plain_words(program):
    table = tilelab.whatif(program, threads=[100], target="sm_90")
    refused = table.variants[1]
    assert refused.refusal is not None
    assert not refused.runs
    assert refused.smem_bytes is None
    assert refused.refusal.code in table.to_text()


def test_the_record_is_json_and_the_view_shows_it(table):
    record = table.to_json()
    assert (record["schema"], record["version"]) == ("tilelab.whatif", 1)
    assert json.loads(json.dumps(record)) == record
    view = table.view()
    assert View.from_json(json.loads(view.render("json"))).to_json() == view.to_json()
    header, rows = view.table()
    assert header == ["stages", "shared memory (bytes)", "threads", "blocks on an SM", "worst passes over the banks", "code lines", "verdict"]
    assert [row[0] for row in rows] == ["—", "3", "30"]
    assert [row[-1] == "fits" for row in rows] == [True, True, False]
    text = table.to_text()
    assert all(cell in text for row in rows for cell in row)
    assert "TL501" in table.to_html()
    assert table.view("zh").table()[0][0] == "流水级数"
    assert set(table._repr_mimebundle_()) >= {"text/plain", "text/html"}


def test_too_many_variants_are_refused(program):
    with pytest.raises(InputError, match="320 variants"):
        tilelab.whatif(program, num_stages=range(20), threads=range(32, 544, 32))

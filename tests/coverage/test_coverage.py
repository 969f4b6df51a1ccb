"""The coverage table holds for the installed package, and what it calls done is done: each snippet agrees with numpy."""

import json
from functools import cache

import numpy as np
import pytest
import table
from names import MAKES, NOT_OPERATIONS, REFUSED
from snippet import snippets

import tilelab
from tilelab.sim import simulate


@pytest.fixture(scope="session")
def built():
    return table.build()


@cache
def captured(name):
    s = snippets()[name]
    return tilelab.capture(s.build, consts=dict(s.consts))


@pytest.mark.parametrize("s", snippets().values(), ids=list(snippets()))
def test_a_snippet_agrees_with_numpy(s):
    before = {k: np.array(v) for k, v in s.inputs.items()}
    trace = simulate(captured(s.name), dict(s.inputs))
    found = {f.code for f in trace.findings if f.severity != "info"}
    assert found <= {*s.allow, *s.finds}, [str(f) for f in trace.findings]
    assert set(s.finds) <= found
    for name, want in s.expected.items():
        got = np.asarray(trace.outputs[name])
        assert (got.shape, got.dtype) == (np.shape(want), np.asarray(want).dtype)
        if got.dtype.kind in "biu":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got.astype(np.float64), np.asarray(want).astype(np.float64), rtol=s.rtol, atol=s.atol)
    for name, value in before.items():
        assert np.array_equal(value, s.inputs[name], equal_nan=value.dtype.kind == "f")


def test_the_table_is_that_of_the_installed_package(built, request):
    if request.config.getoption("--update-golden"):
        table.write(built)
    kept = json.loads((table.HERE / "coverage.json").read_text())
    for part in ("names", "operations", "nodes"):
        assert sorted(set(built[part]) - set(kept[part])) == [], (
            "new in this TileLang: look at them, then pytest tests/coverage --update-golden"
        )
        assert sorted(set(kept[part]) - set(built[part])) == [], "gone from this TileLang"
        assert {k: v for k, v in built[part].items() if v != kept[part][k]} == {}
    assert (table.HERE / "COVERAGE.md").read_text() == table.markdown(kept)


def test_nothing_is_left_open(built):
    for part in ("names", "operations", "nodes"):
        assert [n for n, e in built[part].items() if e["status"] == table.TODO] == []


def test_every_refusal_has_a_reason_and_every_done_name_a_user(built):
    for part in ("names", "operations", "nodes"):
        for name, entry in built[part].items():
            if entry["status"] in (table.REFUSED, table.NONE):
                assert len(entry["why"]) > 20, name
    known = {f"snippets/{n}" for n in snippets()}
    for name, entry in built["names"].items():
        if entry["status"] == table.DONE:
            assert entry["by"], name
            assert all(by in known or by.startswith("corpus/") for by in entry["by"])


def test_no_reason_is_given_for_what_is_not_there(built):
    """An entry of the hand-written tables that no name matches is a mistake, or left over from an older release."""
    every = set(built["names"])
    for written in (MAKES, REFUSED, NOT_OPERATIONS):
        for pattern in written:
            core = pattern.strip("*")
            assert [n for n in every if n == pattern or ("*" in pattern and core in n)], pattern


def test_most_of_the_language_is_done(built):
    """A floor, so that a change of the generator cannot quietly drop names."""
    statuses = [e["status"] for e in built["names"].values()]
    assert statuses.count(table.DONE) > 450
    assert sum(e["status"] == table.DONE for e in built["operations"].values()) > 200


def test_every_attribute_of_a_snippet_may_cross_the_trust_boundary():
    """What the front end hangs on loops, blocks and operations is on the closed lists, which the grader holds Programs to."""
    from tilelab import allowed, ir

    known = {
        ir.For: allowed.FOR_ATTRS, ir.Block: allowed.BLOCK_ATTRS, ir.Launch: allowed.LAUNCH_ATTRS, ir.Tile: allowed.TILE_ATTRS,
        ir.Call: allowed.TILE_ATTRS,
    }  # fmt: skip
    odd = {}
    for name, s in snippets().items():
        for n in ir.walk(captured(s.name)):
            if type(n) in known:
                odd |= {key: name for key in n.attrs if key not in known[type(n)]}
            elif isinstance(n, ir.Attribute) and n.key not in allowed.ATTRIBUTE_KEYS:
                odd[n.key] = name
    assert odd == {}


def test_every_snippet_may_be_graded():
    """A Program that TileLang's own language makes passes the check that strangers' Programs pass."""
    from tilelab.errors import VerifyError
    from tilelab.verify import verify

    refused = {}
    for name, s in snippets().items():
        try:
            verify(captured(s.name))
        except VerifyError as error:
            refused[name] = error.what
    assert refused == {"script.device_functions_by_name": "the extern function 'expf'"}

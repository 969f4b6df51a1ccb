"""Proofs and counterexamples, each counterexample replayed by hand-written arithmetic or by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab import ir
from tilelab.analysis.prove import prove
from tilelab.compiler import capture


@pytest.fixture
def proof_of(proof_kernels):
    return lambda name, **kw: prove(capture(getattr(proof_kernels, name)()), **kw)


def refuted(proof, kind):
    return [c for c in proof.claims if c.kind == kind and c.holds is False]


def test_a_ragged_end_has_a_counterexample_with_a_symbolic_size(proof_of):
    proof = proof_of("shift_out_of_bounds")
    bounds = refuted(proof, "bounds")
    assert {c.what.split("[")[0] for c in bounds} == {"A", "O"}
    for c in bounds:
        n, bx, i = (c.example[k] for k in ("N", "bx", "i"))
        assert 0 <= bx < -(-n // 128)
        assert 0 <= i < 128
        assert bx * 128 + i >= n
        assert f"N = {n}" in c.message
        assert f"bx = {bx}" in c.message
        assert f"i = {i}" in c.message
    assert not refuted(proof, "race")
    assert all(c.holds for c in proof.claims if c.kind == "race")
    f = proof.findings()[0]
    assert (f.code, f.severity) == ("TL102", "info")
    assert "out of bounds when N = " in f.message
    assert f.line


def test_guards_prove_it(proof_of):
    proof = proof_of("guarded")
    assert len(proof.claims) >= 4
    assert all(c.holds for c in proof.claims), [str(c) for c in proof.claims if not c.holds]


def test_sizes_of_one_name_are_one_size(proof_of):
    assert all(c.holds for c in proof_of("one_size_by_two_declarations").claims)


def test_a_tiled_gemm_of_any_size_is_disjoint_and_masked_only_at_its_ends(proof_of):
    proof = proof_of("tiled_gemm")
    assert not refuted(proof, "race")
    assert [c.holds for c in proof.claims if c.kind == "race"] == [True]
    by_scope = {}
    for c in proof.claims:
        if c.kind == "bounds":
            by_scope.setdefault(c.scope, []).append(c.holds)
    assert set(by_scope["global"]) == {False}  # partial tiles: masked on the device
    assert all(h for scope, holds in by_scope.items() if scope != "global" for h in holds)


def test_shared_memory_out_of_bounds_is_an_error(proof_of):
    (f,) = proof_of("shared_one_too_far").findings()
    assert (f.code, f.severity) == ("TL101", "error")
    assert f.indices["i"] == 63
    assert "index 64, where the size is 64" in f.message


def test_blocks_that_collide(proof_of):
    (c,) = refuted(proof_of("blocks_collide"), "race")
    (b0, b1), i = c.example["bx"], c.example["i"]
    i0, i1 = i if isinstance(i, tuple) else (i, i)
    assert b0 != b1
    assert b0 * 64 + i0 == b1 * 64 + i1
    assert "blocks bx = " in c.message


def test_iterations_that_collide(proof_of):
    races = refuted(proof_of("iterations_collide"), "race")
    assert races
    assert all("O[0]" in c.message for c in races)
    assert any("both write" in c.message for c in races)
    assert {f.code for f in proof_of("iterations_collide").findings()} == {"TL201"}


def test_reading_what_a_neighbour_writes(proof_of):
    (c,) = refuted(proof_of("neighbours_race"), "race")
    w, r = c.example["i"]
    assert w == r + 1
    assert "write and read" in c.message


def test_two_dimensions_and_short_circuits(proof_of):
    proof = proof_of("two_dimensional")
    assert all(c.holds for c in proof.claims), [str(c) for c in proof.claims if not c.holds]


def test_data_decides(proof_of):
    (c,) = refuted(proof_of("gather"), "bounds")
    assert c.data
    value = c.example["I[i]"]
    assert value < 0 or value >= 64
    (f,) = proof_of("gather").findings()
    assert (f.code, f.severity) == ("TL102", "warning")
    race = [c for c in proof_of("scatter").claims if c.kind == "race" and c.holds is not True]
    assert race
    assert all(c.holds is None and "memory" in c.reason for c in race)


def test_a_condition_on_data_does_not_make_the_index_data(proof_of):
    claims = refuted(proof_of("guarded_by_data"), "bounds")
    assert claims
    for c in claims:
        assert not c.data
        assert c.example == {"bx": 3, "i": 8}  # and no thread that plays no part


def test_atomics_do_not_race(proof_of):
    assert all(c.holds for c in proof_of("atomic").claims)


def test_what_is_not_modelled_stays_open(proof_of):
    claims = proof_of("swizzle_bits").claims
    assert any(c.holds is None and "not modelled" in c.reason for c in claims)
    assert not any(c.holds is False for c in claims)


def test_strided_loops_are_disjoint_between_blocks(proof_of):
    proof = proof_of("strided_loop")
    assert all(c.holds for c in proof.claims), [str(c) for c in proof.claims if not c.holds]


def test_overlapping_tiles(proof_of):
    (c,) = refuted(proof_of("overlapping_copies"), "race")
    b0, b1 = c.example["bx"]
    assert abs(b0 - b1) == 1


def test_threads(proof_of):
    (c,) = refuted(proof_of("threads_collide"), "race")
    (t0, t1) = next(v for k, v in c.example.items() if isinstance(v, tuple))
    assert t0 != t1
    assert t0 // 2 == t1 // 2
    assert "threads " in c.message
    assert all(c.holds for c in proof_of("threads_apart").claims)


def test_the_time_limit_is_kept(proof_of):
    proof = proof_of("tiled_gemm", time_limit_s=0.0)
    assert proof.seconds < 2
    assert all(c.holds is None and "time limit" in c.reason for c in proof.claims if c.kind != "injective")


def _layout_program(index: tuple[ir.Expr, ...], params: tuple[ir.Var, ...], shape: tuple[int, ...]) -> ir.Program:
    data = ir.Var(dtype="handle", name="S")
    sizes = tuple(ir.Const(dtype="int32", value=n) for n in shape)
    buffer = ir.Buffer(name="S", dtype="float16", shape=sizes, scope="shared.dyn", data=data)
    layout = ir.IndexMap(params=params, shape=sizes, index=index)
    block = ir.Block(name="root", body=(), allocs=(buffer,), attrs={"layout_map": ir.AttrMap(items=((buffer, layout),))})
    return ir.Program(name="k", level="tile", params=(), body=(block,))


def test_layouts_are_tried_element_by_element():
    i, j = (ir.Var(dtype="int32", name=n) for n in "ij")

    def c(v):
        return ir.Const(dtype="int32", value=v)

    def b(op, x, y):
        return ir.Bin(dtype="int32", op=op, a=x, b=y)

    swizzled = b("add", b("mul", i, c(8)), ir.Call(dtype="int32", op="tirx.bitwise_xor", args=(j, b("floormod", i, c(8)))))
    (good,) = prove(_layout_program((swizzled,), (i, j), (16, 8))).claims
    assert (good.kind, good.holds) == ("injective", True)
    clash = b("add", b("mul", i, c(4)), j)
    proof = prove(_layout_program((clash,), (i, j), (16, 8)))
    (bad,) = proof.claims
    (i0, j0), (i1, j1) = bad.example["elements"]
    assert (i0, j0) != (i1, j1)
    assert i0 * 4 + j0 == i1 * 4 + j1
    assert proof.findings()[0].code == "TL404"


def test_division_and_remainder_agree_with_python():
    """The z3 terms of each operator, evaluated on constants, against Python and C."""
    z3 = pytest.importorskip("z3")
    from tilelab.analysis.smt import _BIN

    for a in (-7, -1, 0, 5, 9):
        for d in (-3, -1, 1, 4):
            want = {
                "floordiv": a // d,
                "floormod": a % d,
                "div": int(np.trunc(a / d)),
                "mod": int(np.fmod(a, d)),
                "min": min(a, d),
                "max": max(a, d),
            }
            for op, value in want.items():
                got = z3.simplify(_BIN[op](z3, z3.IntVal(a), z3.IntVal(d))).as_long()
                assert got == value, (op, a, d)

"""The records themselves: frozen, compared by identity, walked in order."""

import dataclasses

import pytest

from tilelab import ir
from tilelab.ops import SPELLING, TILE_OPS, arg, position


def const(v):
    return ir.Const(dtype="int32", value=v)


def test_nodes_are_frozen_and_compare_by_identity():
    a, b = const(1), const(1)
    assert a != b
    assert len({a, b}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.value = 2
    with pytest.raises(TypeError):
        ir.Const("int32", 1)


def test_walk_goes_parents_first_in_source_order():
    one, two, three = const(1), const(2), const(3)
    inner = ir.Bin(dtype="int32", op="mul", a=one, b=two)
    outer = ir.Bin(dtype="int32", op="add", a=inner, b=three)
    assert list(ir.walk(outer)) == [outer, inner, one, two, three]
    s = ir.If(cond=outer, then=(ir.Eval(value=one),), orelse=(ir.Eval(value=two),))
    kinds = [type(n).__name__ for n in ir.walk((s,))]
    assert kinds == ["If", "Bin", "Bin", "Const", "Const", "Const", "Eval", "Const", "Eval", "Const"]


def test_tile_operations_name_their_arguments():
    args = ("a", "b", "c", "ta", "tb", "m", "n", "k", "policy", "clear", "mbar", "row", "col")
    assert arg("gemm", args, "clear_accum") == "clear"
    assert arg("gemm", args, "c_col") == "col"
    assert arg("reducer_init", ("dst",), "init") is None
    assert position("reduce", "dim") == 3
    assert set(SPELLING) == set(TILE_OPS)
    with pytest.raises(ValueError):
        position("copy", "nothing")


def test_every_tile_operation_of_tilelang_is_in_the_table():
    tilelang = pytest.importorskip("tilelang")
    assert tilelang
    from tvm.ir import Op

    names = {n.removeprefix("tl.tileop.") for n in Op.list_op_names() if n.startswith("tl.tileop.")}
    assert names - {"ascend_copy"} == set(TILE_OPS)


def test_every_listed_operation_exists_in_tilelang():
    pytest.importorskip("tilelang")
    from tvm.ir import Op

    from tilelab.allowed import OPS

    assert OPS - set(Op.list_op_names()) == set()

"""Every operation of the installed TileLang is either simulated at tile level, or refused by name with a reason.

The table is generated from the package: a new release that brings an operation fails here until it is dealt with.
``pytest --update-golden`` writes ``tests/golden/sim/coverage.json``.
"""

from __future__ import annotations

import pytest


def operations() -> list[str]:
    from tilelang import tvm

    return sorted(str(n) for n in tvm.ir.Op.list_op_names() if str(n).startswith("tl."))


def simulated() -> set[str]:
    from tilelab.sim import intrinsics
    from tilelab.sim.kernel import Compiler
    from tilelab.sim.tileops import TABLE

    return {*Compiler.calls, *Compiler.effects, *(f"tl.tileop.{k}" for k in TABLE), *intrinsics.PURE, *intrinsics.TYPED}


def test_every_operation_is_done_or_refused_with_a_reason(golden):
    from tilelab.sim.refused import why

    done = simulated()
    table = {op: "done" if op in done else f"refused: {why(op)}" if why(op) else "missing" for op in operations()}
    assert [op for op, state in table.items() if state == "missing"] == []
    golden("sim/coverage", table)


def test_the_tables_name_only_what_exists():
    known = set(operations())
    ours = {op for op in simulated() if op.startswith("tl.")}
    internal = {
        "tl.max_nan",
        "tl.min_nan",
        "tl.max2_nan",
        "tl.min2_nan",
        "tl.assume",
        "tl.ptx_commit_group",
        "tl.ptx_wait_group",
        "tl.ptx_fence_barrier_init",
    }
    assert sorted(ours - known - internal) == []


@pytest.mark.parametrize("op", ["tl.ptx_wgmma_ss", "tl.tileop.gemm_blockscaled", "tl.ascend_mad"])
def test_a_reason_is_a_sentence(op):
    from tilelab.sim.refused import told

    assert told(op).startswith(f"{op} (")
    assert len(told(op)) > len(op) + 20

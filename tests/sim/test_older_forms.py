"""Forms that TileLang deprecates and public kernels use: reducers updated in place, a launch with no grid, safe values by block."""

import numpy as np
import pytest
import tilelang.language as T

import tilelab
from tilelab import SimParams


def reduced(op):
    @T.prim_func
    def kernel(A: T.Tensor((16, 24), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=64):
            acc = T.alloc_reducer(16, "int32", op=op, replication="all")
            part = T.alloc_fragment((16, 24), "int32")
            T.copy(A, part)
            T.clear(acc)
            for i, j in T.Parallel(16, 24):
                if op == "sum":
                    acc[i] += part[i, j]
                elif op == "max":
                    acc[i] = T.max(acc[i], part[i, j])
                else:
                    acc[i] = T.min(part[i, j], acc[i])
            T.finalize_reducer(acc)
            T.copy(acc, B)

    return kernel


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(("op", "wanted"), [("sum", np.sum), ("max", np.max), ("min", np.min)])
def test_reducers_updated_in_place_lose_nothing(op, wanted, checks):
    a = np.random.default_rng(0).integers(-50, 50, (16, 24), dtype=np.int32)
    trace = tilelab.simulate(reduced(op), a, np.zeros(16, np.int32), params=SimParams(checks=checks))
    start = np.zeros((16, 1), np.int32)  # T.clear is where the reduction starts
    np.testing.assert_array_equal(trace.outputs["B"], wanted(np.hstack([a, start]), axis=1))
    assert not trace.findings


def test_differences_and_sums_of_several_are_contributions_too():
    @T.prim_func
    def kernel(A: T.Tensor((32,), "float32"), B: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            acc = T.alloc_reducer((1,), "float32")
            T.clear(acc)
            for i in T.Parallel(32):
                acc[0] = acc[0] + A[i] + 1.0
            for i in T.Parallel(32):
                acc[0] -= 2.0 * A[i]
            T.finalize_reducer(acc)
            B[0] = acc[0]

    a = np.arange(32, dtype=np.float32)
    trace = tilelab.simulate(kernel, a, np.zeros(1, np.float32))
    assert trace.outputs["B"][0] == 32 - a.sum()
    assert [f.code for f in trace.findings if f.severity == "error"] == []


def test_a_launch_with_no_grid_is_one_block():
    @T.prim_func
    def kernel(A: T.Tensor((8,), "float32")):
        with T.Kernel(threads=32):
            for i in T.Parallel(8):
                A[i] = A[i] + 1.0

    program = tilelab.capture(kernel)
    assert tilelab.simulate(program, np.zeros(8, np.float32)).outputs["A"].tolist() == [1.0] * 8
    assert 'extern "C" __global__' in tilelab.lower(program, target="sm_80").source


def test_safe_values_hold_for_their_block():
    @T.prim_func
    def kernel(A: T.Tensor((6,), "int32"), B: T.Tensor((8,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            inner = T.alloc_shared((8,), "int32")
            outer = T.alloc_shared((8,), "int32")
            with T.sblock("outer"):
                T.reads()
                T.writes()
                T.annotate_safe_value({A: -1})
                with T.sblock("inner"):
                    T.reads()
                    T.writes()
                    T.annotate_safe_value({A: -99})
                    T.copy(A[0:8], inner)
                T.copy(A[0:8], outer)
                T.copy(inner, B)
                T.copy(outer, C)

    trace = tilelab.simulate(kernel, np.zeros(6, np.int32), np.zeros(8, np.int32), np.zeros(8, np.int32))
    assert trace.outputs["B"].tolist() == [0] * 6 + [-99] * 2
    assert trace.outputs["C"].tolist() == [0] * 6 + [-1] * 2


def over_threads(combine, identity, cond):
    @T.prim_func
    def kernel(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 2), "float32")):
        with T.Kernel(2, threads=(4, 32)) as b:
            n = T.get_thread_binding(0)
            k = T.get_thread_binding(1)
            mine = T.alloc_local((1,), "float32")
            total = T.alloc_local((1,), "float32")
            mine[0] = A[n, k] * (b + 1)
            with T.attr(T.comm_reducer(combine, [T.float32(identity)]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), mine[0], k < 8 if cond else True, total[0], k, dtype="handle"))
            if k == 0:
                B[n, b] = total[0]

    return kernel


@pytest.mark.parametrize(
    ("combine", "identity", "cond", "wanted"),
    [
        (lambda x, y: x + y, 0.0, False, lambda a: a.sum(1)),
        (lambda x, y: T.max(x, y), -1e9, False, lambda a: a.max(1)),
        (lambda x, y: x + y, 0.0, True, lambda a: a[:, :8].sum(1)),
    ],
)
def test_a_reduction_over_one_axis_of_the_threads(combine, identity, cond, wanted):
    a = np.random.default_rng(1).integers(-9, 9, (4, 32)).astype(np.float32)
    program = tilelab.capture(over_threads(combine, identity, cond))
    trace = tilelab.simulate(program, a, np.zeros((4, 2), np.float32))
    assert trace.findings == ()
    np.testing.assert_array_equal(trace.outputs["B"], np.stack([wanted(a), wanted(2 * a)], axis=1))
    if not cond:
        assert "red_buf0" in tilelab.lower(program, target="sm_80").source


def test_a_variable_starts_at_zero():
    @T.prim_func
    def kernel(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            i = T.alloc_var("int32", 0)
            total = T.alloc_var("int32")
            while i < 10:
                total += i
                i += 1
            A[0] = total

    trace = tilelab.simulate(kernel, np.zeros(1, np.int32))
    assert trace.outputs["A"][0] == 45
    assert trace.findings == ()
    assert "int total = 0;" in tilelab.lower(kernel, target="sm_80").source

"""Odd shapes and forms that real kernels have."""

import ml_dtypes
import numpy as np
import pytest
import tilelang.language as T

from tests.sim.conftest import codes
from tilelab.errors import InputError


def test_no_blocks_and_no_turns(run):
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((4,), "int32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as b:
            for _ in T.serial(C[0]):
                Y[b] = -1.0
            for i in T.Parallel(32):
                Y[b * 32 + i] = A[b * 32 + i]

    few = np.array([-3, 1, 2, 3], np.int32)
    assert codes(run(kernel, A=np.zeros(0, np.float32), C=few)) == []
    a = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(kernel, A=a, C=few).outputs["Y"], a)


def test_parallel_extent_from_data(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((8, 16), "float32"), L: T.Tensor((8,), "int32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(8, threads=32) as b:
            for i in T.Parallel(16):
                Y[b, i] = 0
            for i in T.Parallel(L[b]):
                Y[b, i] = A[b, i]

    a, lengths = rng.standard_normal((8, 16)).astype(np.float32), np.arange(8, dtype=np.int32)
    np.testing.assert_array_equal(run(kernel, A=a, L=lengths).outputs["Y"], np.where(np.arange(16) < lengths[:, None], a, 0))


def test_strided_input(run, rng):
    s = T.dynamic("s")

    @T.prim_func
    def kernel(A: T.StridedTensor((16, 8), (s, 1), "float32"), Y: T.Tensor((16, 8), "float32")):
        with T.Kernel(1, threads=32) as _:
            for i, j in T.Parallel(16, 8):
                Y[i, j] = A[i, j]

    a = rng.standard_normal((16, 20)).astype(np.float32)[:, :8]
    np.testing.assert_array_equal(run(kernel, A=a).outputs["Y"], a)


def test_three_dimensional_grid_and_unit_extents(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((3, 4, 5, 8), "float32"), Y: T.Tensor((3, 4, 5, 8), "float32")):
        with T.Kernel(5, 4, 3, threads=32) as (x, y, z):
            s = T.alloc_shared((1, 8), "float32")
            T.copy(A[z, y, x, :], s[0, :])
            for i in T.Parallel(8):
                Y[z, y, x, i] = s[0, i] * (x + 10 * y + 100 * z)

    a = rng.standard_normal((3, 4, 5, 8)).astype(np.float32)
    z, y, x = np.meshgrid(range(3), range(4), range(5), indexing="ij")
    np.testing.assert_allclose(run(kernel, A=a).outputs["Y"], a * (x + 10 * y + 100 * z)[..., None], rtol=1e-6)


def test_per_thread_arrays(run, rng):
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 128), "float16"), X: T.Tensor((128,), "float16"), Y: T.Tensor((64,), "float32"), D: T.Tensor((64, 128), "float16")
    ):
        with T.Kernel(64 // 4, threads=(32, 4)) as b:
            lane = T.get_thread_binding(0)
            row = T.get_thread_binding(1)
            a = T.alloc_local((4,), "float16")
            x = T.alloc_local((4,), "float16")
            total = T.alloc_local((1,), "float32")
            T.clear(total)
            T.copy(A[b * 4 + row, lane * 4 : lane * 4 + 4], a)
            for v in T.vectorized(4):
                x[v] = X[lane * 4 + v]
            for v in T.serial(4):
                total[0] += T.cast(a[v], "float32") * T.cast(x[v], "float32")
            for v in T.vectorized(4):
                a[v] = a[v] * 2
            T.copy(a, D[b * 4 + row, lane * 4 : lane * 4 + 4])
            total[0] = T.warp_reduce_sum(total[0])
            if lane == 0:
                Y[b * 4 + row] = total[0]

    a, x = rng.standard_normal((64, 128)).astype(np.float16), rng.standard_normal(128).astype(np.float16)
    trace = run(kernel, A=a, X=x)
    np.testing.assert_allclose(trace.outputs["Y"], a.astype(np.float64) @ x.astype(np.float64), rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(trace.outputs["D"], a * np.float16(2))
    assert codes(trace) == []


def test_selection_by_repeated_maximum(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((16, 64), "float32"), V: T.Tensor((16, 4), "float32"), I: T.Tensor((16, 4), "int32")):
        with T.Kernel(1, threads=128) as _:
            f = T.alloc_fragment((16, 64), "float32")
            top = T.alloc_fragment((16,), "float32")
            at = T.alloc_fragment((16, 64), "int32")
            best = T.alloc_fragment((16,), "int32")
            T.copy(A, f)
            for k in T.serial(4):
                T.reduce_max(f, top, dim=1)
                for i, j in T.Parallel(16, 64):
                    at[i, j] = T.if_then_else(f[i, j] == top[i], j, -1)
                T.reduce_max(at, best, dim=1)
                for i, j in T.Parallel(16, 64):
                    f[i, j] = T.if_then_else(best[i] == j, -T.infinity("float32"), f[i, j])
                for i in T.Parallel(16):
                    V[i, k] = top[i]
                    I[i, k] = best[i]

    a = rng.standard_normal((16, 64)).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["I"], np.argsort(-a, 1)[:, :4])
    np.testing.assert_array_equal(trace.outputs["V"], -np.sort(-a, 1)[:, :4])
    assert codes(trace) == []


def test_scaled_float8(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((16, 128), "float32"), Q: T.Tensor((16, 128), "float8_e4m3fn"), S: T.Tensor((16,), "float32")):
        with T.Kernel(16, threads=128) as b:
            f = T.alloc_fragment((128,), "float32")
            m = T.alloc_fragment((1,), "float32")
            T.copy(A[b, 0], f)
            T.reduce_absmax(f, m, dim=0)
            S[b] = m[0] / 448.0
            for i in T.Parallel(128):
                Q[b, i] = T.clamp(f[i] / (m[0] / 448.0), -448.0, 448.0)

    a = rng.standard_normal((16, 128)).astype(np.float32)
    trace = run(kernel, A=a)
    scale = np.abs(a).max(1) / np.float32(448)
    want = (a / scale[:, None]).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
    np.testing.assert_array_equal(trace.outputs["Q"].view(np.uint8), want.view(np.uint8))
    assert codes(trace) == []


def test_four_bit_types(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int4"), B: T.Tensor((64,), "int32"), F: T.Tensor((64,), "float4_e2m1fn"), G: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                B[i] = T.cast(A[i], "int32")
                G[i] = T.cast(F[i], "float32")

    a = rng.integers(-8, 8, 64).astype(ml_dtypes.int4)
    f = rng.standard_normal(64).astype(np.float32).astype(ml_dtypes.float4_e2m1fn)
    trace = run(kernel, A=a, F=f)
    np.testing.assert_array_equal(trace.outputs["B"], a.astype(np.int32))
    np.testing.assert_array_equal(trace.outputs["G"], f.astype(np.float32))


def test_histogram_without_atomics_is_a_race(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32"), H: T.Tensor((16,), "int32")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(128):
                H[A[b * 128 + i]] += 1

    trace = run(kernel, A=rng.integers(0, 16, 256).astype(np.int32), H=np.zeros(16, np.int32))
    assert codes(trace) == ["TL201"]
    assert "atomic_add" in trace.findings[0].fix


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"A": np.zeros((16, 9), np.float32)}, "(16, 9)"),
        ({"A": np.zeros((16, 8), np.float64)}, "float64"),
        ({"Z": 1}, "not a parameter"),
        ({"A": np.zeros(3, np.float32)}, "(3,)"),
    ],
)
def test_wrong_inputs_are_told_in_one_line(run, inputs, said):
    @T.prim_func
    def kernel(A: T.Tensor((16, 8), "float32"), B: T.Tensor((16, 8), "float32")):
        with T.Kernel(1, threads=32) as _:
            T.copy(A, B)

    with pytest.raises(InputError) as e:
        run(kernel, **inputs)
    assert said in str(e.value)
    assert "\n" not in str(e.value)

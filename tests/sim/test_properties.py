"""Small kernels that Hypothesis makes, against numpy: copies, maps, reductions and products of ragged shapes.

TileLang reads the source of a kernel, so each family is one builder whose sizes are drawn.
"""

import numpy as np
import tilelang.language as T
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tilelab.compiler import capture
from tilelab.sim import simulate
from tilelab.trace import SimParams

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
sizes = st.integers(1, 70)


def go(kernel, **inputs):
    """Simulate with checks on and off: the values must not depend on that."""
    program = capture(kernel)
    on, off = simulate(program, inputs), simulate(program, inputs, SimParams(checks=False))
    for name in on.outputs:
        np.testing.assert_array_equal(on.outputs[name], off.outputs[name])
    assert [f for f in on.findings if f.severity != "info"] == []
    return on.outputs


@few
@given(m=sizes, n=sizes, bm=st.sampled_from([1, 4, 16, 32]), bn=st.sampled_from([8, 16, 32]), row=st.booleans(), seed=st.integers(0, 99))
def test_tiled_map(m, n, bm, bn, row, seed):
    @T.prim_func
    def kernel(A: T.Tensor((m, n), "float32"), R: T.Tensor((n,), "float32"), Y: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=32) as (bx, by):
            a = T.alloc_shared((bm, bn), "float32")
            r = T.alloc_shared((bn,), "float32")
            T.copy(A[by * bm, bx * bn], a)
            T.copy(R[bx * bn], r)
            for i, j in T.Parallel(bm, bn):
                if row:
                    a[i, j] = a[i, j] * r[j] + by * bm + i
                else:
                    a[i, j] = T.max(a[i, j], r[j]) - (bx * bn + j)
            T.copy(a, Y[by * bm, bx * bn])

    rng = np.random.default_rng(seed)
    a, r = rng.standard_normal((m, n)).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    i, j = np.arange(m, dtype=np.float32)[:, None], np.arange(n, dtype=np.float32)[None]
    if row:  # the block's offset is added before the row's
        first = np.float32(bm) * (np.arange(m) // bm).astype(np.float32)[:, None]
        want = (a * r + first) + (i - first)
    else:
        want = np.maximum(a, r) - j
    np.testing.assert_allclose(go(kernel, A=a, R=r)["Y"], want, rtol=1e-6, atol=1e-5)


@few
@given(m=sizes, n=sizes, k=sizes, ta=st.booleans(), tb=st.booleans(), stages=st.integers(0, 3), seed=st.integers(0, 99))
def test_tiled_product(m, n, k, ta, tb, stages, seed):
    sa, sb = ((k, m) if ta else (m, k)), ((n, k) if tb else (k, n))
    bm, bn, bk = 32, 32, 16

    @T.prim_func
    def kernel(A: T.Tensor(sa, "float16"), B: T.Tensor(sb, "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=64) as (bx, by):
            a = T.alloc_shared((bk, bm) if ta else (bm, bk), "float16")
            b = T.alloc_shared((bn, bk) if tb else (bk, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            T.clear(c)
            for s in T.Pipelined(T.ceildiv(k, bk), num_stages=stages):
                if ta:
                    T.copy(A[s * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, s * bk], a)
                if tb:
                    T.copy(B[bx * bn, s * bk], b)
                else:
                    T.copy(B[s * bk, bx * bn], b)
                T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C[by * bm, bx * bn])

    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(sa).astype(np.float16), rng.standard_normal(sb).astype(np.float16)
    x, y = (v.astype(np.float64).T if t else v.astype(np.float64) for v, t in ((a, ta), (b, tb)))
    np.testing.assert_allclose(go(kernel, A=a, B=b)["C"], x @ y, rtol=1e-4, atol=1e-4)


@few
@given(m=sizes, n=sizes, bm=st.sampled_from([1, 4, 8]), kind=st.sampled_from(["sum", "max", "min", "absmax"]), seed=st.integers(0, 99))
def test_row_reductions(m, n, bm, kind, seed):
    reduce = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((m, n), "float32"), Y: T.Tensor((m,), "float32")):
        with T.Kernel(T.ceildiv(m, bm), threads=32) as b:
            f = T.alloc_fragment((bm, n), "float32")
            r = T.alloc_fragment((bm,), "float32")
            T.copy(A[b * bm, 0], f)
            reduce(f, r, dim=1)
            T.copy(r, Y[b * bm])

    a = np.random.default_rng(seed).standard_normal((m, n)).astype(np.float32)
    fold = {"sum": np.sum, "max": np.max, "min": np.min, "absmax": lambda x, axis: np.abs(x).max(axis=axis)}[kind]
    np.testing.assert_allclose(go(kernel, A=a)["Y"], fold(a.astype(np.float64), axis=1), rtol=1e-5, atol=1e-5)


@few
@given(n=st.integers(1, 300), step=st.integers(1, 5), offset=st.integers(-5, 5), seed=st.integers(0, 99))
def test_strided_and_shifted_gathers(n, step, offset, seed):
    """Reads far outside are zero; writes outside are dropped."""

    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), Y: T.Tensor((n,), "int32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as b:
            for i in T.Parallel(64):
                Y[b * 64 + i] = A[(b * 64 + i) * step + offset]

    a = np.random.default_rng(seed).integers(-9, 9, n).astype(np.int32)
    at = np.arange(n) * step + offset
    want = np.where((at >= 0) & (at < n), a[np.clip(at, 0, n - 1)], 0)
    np.testing.assert_array_equal(go(kernel, A=a)["Y"], want)


@few
@given(threads=st.sampled_from([32, 64, 96]), blocks=st.integers(1, 5), cut=st.integers(0, 100), seed=st.integers(0, 99))
def test_divergent_threads(threads, blocks, cut, seed):
    """Branches, private variables and loops whose length differs from thread to thread."""
    n = threads * blocks

    @T.prim_func
    def kernel(A: T.Tensor((n,), "int32"), Y: T.Tensor((n,), "int32")):
        with T.Kernel(blocks, threads=threads) as b:
            t = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            if t < cut:
                for k in T.serial(A[b * threads + t]):
                    total += k
            else:
                total = -t
            Y[b * threads + t] = total

    a = np.random.default_rng(seed).integers(0, 12, n).astype(np.int32)
    t = np.arange(n) % threads
    np.testing.assert_array_equal(go(kernel, A=a)["Y"], np.where(t < cut, a * (a - 1) // 2, -t))

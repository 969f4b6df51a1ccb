"""Tile operations against numpy."""

import ml_dtypes
import numpy as np
import pytest
import tilelang
import tilelang.language as T

from tests.sim.conftest import codes

STORED = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}


def stored(dtype):
    return np.dtype(STORED.get(dtype, dtype))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "int16", "int64", "float64", "bool"]
)
def test_values_survive_a_fragment_and_a_cast(run, rng, dtype):
    @T.prim_func
    def kernel(A: T.Tensor((256,), dtype), F: T.Tensor((256,), "float32"), B: T.Tensor((256,), dtype)):
        with T.Kernel(2, threads=128) as b:
            f = T.alloc_fragment((128,), dtype)
            T.copy(A[b * 128], f)
            for i in T.Parallel(128):
                F[b * 128 + i] = T.cast(f[i], "float32")
            T.copy(f, B[b * 128])

    a = (rng.standard_normal(256) * 3).astype(np.float32).astype(stored(dtype))
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["F"], a.astype(np.float32))
    np.testing.assert_array_equal(trace.outputs["B"], a)
    assert trace.outputs["B"].dtype == stored(dtype)
    assert codes(trace) == []


@pytest.mark.parametrize("n", [1, 5, 128, 129, 1000])
def test_copy_with_a_tail(run, rng, n):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            s = T.alloc_shared((128,), "float32")
            T.copy(A[b * 128], s)
            T.copy(s, B[b * 128])

    a = rng.standard_normal(n).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["B"], a)
    assert codes(trace) == []
    assert ("TL102" in codes(trace, "info")) == (n % 128 != 0)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 70), (1, 200), (130, 33)])
def test_two_dimensional_tails(run, rng, m, n):
    @T.prim_func
    def kernel(A: T.Tensor((m, n), "float16"), B: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 32), T.ceildiv(m, 32), threads=64) as (bx, by):
            s = T.alloc_shared((32, 32), "float16")
            T.copy(A[by * 32, bx * 32], s)
            for i, j in T.Parallel(32, 32):
                s[i, j] = s[i, j] * 2
            T.copy(s, B[by * 32, bx * 32])

    a = rng.standard_normal((m, n)).astype(np.float16)
    np.testing.assert_array_equal(run(kernel, A=a).outputs["B"], a * np.float16(2))


def test_masked_reads_are_zero_or_the_safe_value(run, rng):
    def kernel(safe):
        @T.prim_func
        def k(A: T.Tensor((100,), "float32"), B: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=128) as _:
                if safe:
                    T.annotate_safe_value({A: -1e30})
                f = T.alloc_fragment((128,), "float32")
                m = T.alloc_fragment((1,), "float32")
                T.copy(A[0], f)
                T.reduce_max(f, m, dim=0)
                T.copy(m, B)

        return k

    a = -np.abs(rng.standard_normal(100).astype(np.float32)) - 1
    assert run(kernel(False), A=a).outputs["B"][0] == 0
    assert run(kernel(True), A=a).outputs["B"][0] == a.max()


@pytest.mark.parametrize(("dtype", "accum"), [("float16", "float32"), ("bfloat16", "float32"), ("float16", "float16"), ("int8", "int32"),
                                              ("float8_e4m3fn", "float32"), ("float32", "float32"), ("uint8", "int32")])  # fmt: skip
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
def test_gemm(run, rng, dtype, accum, ta, tb):
    sa, sb = ((32, 64) if ta else (64, 32)), ((48, 32) if tb else (32, 48))

    @T.prim_func
    def kernel(A: T.Tensor(sa, dtype), B: T.Tensor(sb, dtype), C: T.Tensor((64, 48), accum)):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared(sa, dtype)
            b = T.alloc_shared(sb, dtype)
            c = T.alloc_fragment((64, 48), accum)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=ta, transpose_B=tb, clear_accum=True)
            T.gemm(a, b, c, transpose_A=ta, transpose_B=tb)
            T.copy(c, C)

    a = (rng.standard_normal(sa) * 2).astype(np.float32).astype(stored(dtype))
    b = (rng.standard_normal(sb) * 2).astype(np.float32).astype(stored(dtype))
    x, y = (v.astype(np.float64).T if t else v.astype(np.float64) for v, t in ((a, ta), (b, tb)))
    trace = run(kernel, A=a, B=b)
    tolerance = {"float16": 3e-3, "float32": 1e-5, "int32": 0}[accum]
    np.testing.assert_allclose(trace.outputs["C"].astype(np.float64), 2 * (x @ y), rtol=tolerance, atol=tolerance * 20)
    assert codes(trace) == []


def test_a_float16_accumulator_rounds(run):
    @T.prim_func
    def kernel(A: T.Tensor((16, 2048), "float16"), B: T.Tensor((2048, 16), "float16"), C: T.Tensor((16, 16), "float16")):
        with T.Kernel(1, threads=32) as _:
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float16")
            T.clear(c)
            for k in T.serial(128):
                T.copy(A[0, k * 16], a)
                T.copy(B[k * 16, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    ones = np.ones((16, 2048), np.float16)
    trace = run(kernel, A=ones * np.float16(1.1), B=ones.T.copy())
    exact = float(np.float16(1.1)) * 2048
    got = float(trace.outputs["C"][0, 0])
    assert got != exact
    assert abs(got - exact) < 0.02 * exact


KINDS = {
    "sum": np.sum, "max": np.max, "min": np.min, "abssum": lambda x, axis: np.abs(x).sum(axis=axis), "absmax": lambda x, axis: np.abs(x).max(axis=axis),
}  # fmt: skip


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions(run, rng, kind, dim):
    reduce = getattr(T, f"reduce_{kind}")
    out = 24 if dim == 1 else 40

    @T.prim_func
    def kernel(A: T.Tensor((2, 24, 40), "float32"), B: T.Tensor((2, out), "float32")):
        with T.Kernel(2, threads=64) as b:
            f = T.alloc_fragment((24, 40), "float32")
            r = T.alloc_fragment((out,), "float32")
            T.copy(A[b, 0, 0], f)
            reduce(f, r, dim=dim)
            T.copy(r, B[b, 0])

    a = rng.standard_normal((2, 24, 40)).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_allclose(trace.outputs["B"], KINDS[kind](a.astype(np.float64), axis=dim + 1), rtol=1e-5, atol=1e-5)
    assert codes(trace) == []


@pytest.mark.parametrize(("kind", "function"), [("bitand", np.bitwise_and), ("bitor", np.bitwise_or), ("bitxor", np.bitwise_xor)])
def test_bitwise_reductions_combine_with_what_is_there(run, rng, kind, function):
    reduce = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32) as _:
            f = T.alloc_fragment((8, 32), "int32")
            r = T.alloc_fragment((8,), "int32")
            T.copy(A, f)
            T.fill(r, 12)
            reduce(f, r, dim=1, clear=False)
            T.copy(r, B)

    a = rng.integers(0, 1 << 30, (8, 32)).astype(np.int32)
    np.testing.assert_array_equal(run(kernel, A=a).outputs["B"], function(function.reduce(a, axis=1), 12))


def test_nan_in_reductions(run):
    """A sum is NaN; a maximum skips NaN, and of nothing but NaN it is where it started."""

    @T.prim_func
    def kernel(A: T.Tensor((3, 4), "float32"), S: T.Tensor((3,), "float32"), M: T.Tensor((3,), "float32")):
        with T.Kernel(1, threads=32) as _:
            f = T.alloc_fragment((3, 4), "float32")
            s = T.alloc_fragment((3,), "float32")
            m = T.alloc_fragment((3,), "float32")
            T.copy(A, f)
            T.reduce_sum(f, s, dim=1)
            T.reduce_max(f, m, dim=1)
            T.copy(s, S)
            T.copy(m, M)

    a = np.array([[1, 2, 3, 4], [1, np.nan, 3, 2], [np.nan] * 4], np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["S"], [10, np.nan, np.nan])
    np.testing.assert_array_equal(trace.outputs["M"], [4, 3, -np.inf])


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scans(run, rng, dim, reverse):
    @T.prim_func
    def kernel(A: T.Tensor((6, 64), "float32"), S: T.Tensor((6, 64), "float32"), M: T.Tensor((6, 64), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((6, 64), "float32")
            m = T.alloc_fragment((6, 64), "float32")
            T.copy(A, s)
            T.copy(A, m)
            T.cumsum(s, dim=dim, reverse=reverse)
            T.cummax(m, dim=dim, reverse=reverse)
            T.copy(s, S)
            T.copy(m, M)

    a = rng.standard_normal((6, 64)).astype(np.float32)
    turn = (lambda x: np.flip(x, dim)) if reverse else (lambda x: x)
    trace = run(kernel, A=a)
    np.testing.assert_allclose(trace.outputs["S"], turn(np.cumsum(turn(a), dim)), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(trace.outputs["M"], turn(np.maximum.accumulate(turn(a), dim)))


def test_transpose_and_annotated_layout(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64, 32), "float16")
            t = T.alloc_shared((32, 64), "float16")
            T.use_swizzle(4)
            T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})
            T.copy(A, s)
            T.transpose(s, t)
            T.copy(t, B)

    a = rng.standard_normal((64, 32)).astype(np.float16)
    np.testing.assert_array_equal(run(kernel, A=a).outputs["B"], a.T)


def test_im2col_is_a_convolution(run, rng):
    n, h, w, c, f, k, pad = 2, 8, 8, 16, 16, 3, 1

    @T.prim_func
    def kernel(X: T.Tensor((n, h, w, c), "float16"), W: T.Tensor((k * k * c, f), "float16"), Y: T.Tensor((n * h * w, f), "float32")):
        with T.Kernel(T.ceildiv(n * h * w, 32), threads=64) as by:
            x = T.alloc_shared((32, 16), "float16")
            v = T.alloc_shared((16, f), "float16")
            y = T.alloc_fragment((32, f), "float32")
            T.clear(y)
            for s in T.serial(k * k):
                T.c2d_im2col(X, x, by, s, k, 1, 1, pad)
                T.copy(W[s * 16, 0], v)
                T.gemm(x, v, y)
            T.copy(y, Y[by * 32, 0])

    x = rng.standard_normal((n, h, w, c)).astype(np.float16)
    weights = rng.standard_normal((k, k, c, f)).astype(np.float16)
    trace = run(kernel, X=x, W=weights.reshape(-1, f))
    padded = np.pad(x.astype(np.float64), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    want = sum(padded[:, i : i + h, j : j + w] @ weights[i, j].astype(np.float64) for i in range(k) for j in range(k))
    np.testing.assert_allclose(trace.outputs["Y"].reshape(want.shape), want, atol=1e-3)


def test_two_to_four_sparse_product(run, rng):
    """Each group of four of a row keeps two; the metadata says which, four bits a group, the first group lowest."""
    m, n, k = 64, 32, 64

    @T.prim_func
    def kernel(
        A: T.Tensor((m, k // 2), "float16"),
        E: T.Tensor((m, k // 16), "int16"),
        B: T.Tensor((k, n), "float16"),
        C: T.Tensor((m, n), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((m, k // 2), "float16")
            e = T.alloc_shared((m, k // 16), "int16")
            b = T.alloc_shared((k, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.clear(c)
            T.gemm_sp(a, e, b, c)
            T.copy(c, C)

    full = np.zeros((m, k), np.float16)
    kept = np.zeros((m, k // 2), np.float16)
    meta = np.zeros((m, k // 16), np.uint16)
    for i in range(m):
        for g in range(k // 4):
            first, second = sorted(rng.choice(4, 2, replace=False))
            values = rng.standard_normal(2).astype(np.float16)
            full[i, g * 4 + first], full[i, g * 4 + second] = values
            kept[i, g * 2 : g * 2 + 2] = values
            meta[i, g // 4] |= (first | second << 2) << (4 * (g % 4))
    b = rng.standard_normal((k, n)).astype(np.float16)
    trace = run(kernel, A=kept, E=meta.view(np.int16), B=b)
    np.testing.assert_allclose(trace.outputs["C"], full.astype(np.float32) @ b.astype(np.float32), atol=1e-3)


def test_online_softmax_attention(run, rng):
    """Causal attention: trip counts that differ between blocks, running maximum, rescaling."""
    s, d, bm, bn = 128, 32, 64, 32

    @T.prim_func
    def kernel(
        Q: T.Tensor((2, s, d), "float16"),
        K: T.Tensor((2, s, d), "float16"),
        V: T.Tensor((2, s, d), "float16"),
        Y: T.Tensor((2, s, d), "float16"),
    ):
        with T.Kernel(s // bm, 2, threads=128) as (bx, head):
            q = T.alloc_shared((bm, d), "float16")
            k = T.alloc_shared((bn, d), "float16")
            v = T.alloc_shared((bn, d), "float16")
            score = T.alloc_fragment((bm, bn), "float32")
            weight = T.alloc_fragment((bm, bn), "float16")
            out = T.alloc_fragment((bm, d), "float32")
            top = T.alloc_fragment((bm,), "float32")
            old = T.alloc_fragment((bm,), "float32")
            scale = T.alloc_fragment((bm,), "float32")
            total = T.alloc_fragment((bm,), "float32")
            part = T.alloc_fragment((bm,), "float32")
            T.copy(Q[head, bx * bm, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(top, -T.infinity("float32"))
            for step in T.Pipelined(T.ceildiv((bx + 1) * bm, bn), num_stages=1):
                T.copy(K[head, step * bn, 0], k)
                for i, j in T.Parallel(bm, bn):
                    score[i, j] = T.if_then_else(bx * bm + i >= step * bn + j, 0, -T.infinity("float32"))
                T.gemm(q, k, score, transpose_B=True)
                T.copy(top, old)
                T.reduce_max(score, top, dim=1, clear=False)
                for i in T.Parallel(bm):
                    scale[i] = T.exp(old[i] - top[i])
                for i, j in T.Parallel(bm, bn):
                    score[i, j] = T.exp(score[i, j] - top[i])
                T.reduce_sum(score, part, dim=1)
                for i in T.Parallel(bm):
                    total[i] = total[i] * scale[i] + part[i]
                T.copy(score, weight)
                for i, j in T.Parallel(bm, d):
                    out[i, j] *= scale[i]
                T.copy(V[head, step * bn, 0], v)
                T.gemm(weight, v, out)
            for i, j in T.Parallel(bm, d):
                out[i, j] /= total[i]
            T.copy(out, Y[head, bx * bm, 0])

    q, k, v = (rng.standard_normal((2, s, d)).astype(np.float16) for _ in range(3))
    trace = run(kernel, Q=q, K=k, V=v)
    scores = np.einsum("hid,hjd->hij", q.astype(np.float64), k.astype(np.float64))
    scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    want = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(trace.outputs["Y"].astype(np.float64), want, atol=1e-2)
    assert codes(trace) == []


def test_views_share_their_storage(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((8, 64), "float16"), B: T.Tensor((512,), "float16"), C: T.Tensor((8, 32), "uint32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((8, 64), "float16")
            flat = T.reshape(s, (512,))
            words = T.view(s, (8, 32), "uint32")
            T.copy(A, s)
            for i in T.Parallel(512):
                flat[i] = flat[i] * 2
            T.copy(words, C)
            for i, j in T.Parallel(8, 64):
                B[i * 64 + j] = s[i, j]

    a = rng.standard_normal((8, 64)).astype(np.float16)
    trace = run(kernel, A=a)
    doubled = a * np.float16(2)
    np.testing.assert_array_equal(trace.outputs["B"], doubled.reshape(-1))
    np.testing.assert_array_equal(trace.outputs["C"], doubled.view(np.uint32))
    assert codes(trace) == []


def test_reducer_epochs(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((16, 64), "float32"), S: T.Tensor((16,), "float32"), M: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=128) as _:
            total = T.alloc_reducer((16,), "float32", op="sum")
            top = T.alloc_reducer((16,), "float32", op="max")
            out = T.alloc_fragment((16,), "float32")
            high = T.alloc_fragment((16,), "float32")
            T.reducer_init(total)
            T.reducer_init(top)
            for i, j in T.Parallel(16, 64):
                T.reducer_update(total[i], A[i, j])
                T.reducer_update(top[i], A[i, j])
            T.finalize_reducer(total, out)
            T.finalize_reducer(top, high)
            T.copy(out, S)
            T.copy(high, M)

    a = rng.standard_normal((16, 64)).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_allclose(trace.outputs["S"], a.sum(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(trace.outputs["M"], a.max(1))


def test_dynamic_sizes_scalars_and_two_launches(run, rng):
    n = T.dynamic("n")

    @T.prim_func
    def kernel(A: T.Tensor((n, 32), "float32"), scale: T.float32, Y: T.Tensor((1,), "float32")):
        sums = T.alloc_global((n,), "float32")
        with T.Kernel(n, threads=32) as b:
            f = T.alloc_fragment((32,), "float32")
            r = T.alloc_fragment((1,), "float32")
            T.copy(A[b, 0], f)
            T.reduce_sum(f, r, dim=0)
            sums[b] = r[0]
        with T.Kernel(1, threads=32) as _:
            total = T.alloc_var("float32", init=0.0)
            for i in T.serial(n):
                total += sums[i]
            Y[0] = total * scale

    a = rng.standard_normal((7, 32)).astype(np.float32)
    trace = run(kernel, A=a, scale=2.0)
    np.testing.assert_allclose(trace.outputs["Y"], [2 * a.sum()], rtol=1e-4)
    assert codes(trace) == []
    assert trace.counts["launches"] == 2


def test_inputs_are_left_alone(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                A[i] = A[i] + 1

    a = rng.standard_normal(64).astype(np.float32)
    before = a.copy()
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(a, before)
    np.testing.assert_array_equal(trace.outputs["A"], before + 1)


def test_in_place_aliases_do_not_leak(run, rng):
    """A copy of a tile is its own: writing one must not change the other, however the storage is shared inside."""

    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            t = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            T.copy(s, t)
            for i in T.Parallel(32):
                s[i] = 0.0
            T.copy(t, B)
            T.copy(s, C)

    a = rng.standard_normal(64).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["B"], a)
    np.testing.assert_array_equal(trace.outputs["C"], np.where(np.arange(64) < 32, 0, a))

"""Code that depends on the thread: indices, shuffles, votes, atomics, private variables."""

from __future__ import annotations

import numpy as np
import pytest
import tilelang.language as T

from tests.sim.conftest import codes
from tilelab.trace import SimParams


def test_shuffles_and_warp_reductions(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((2, 64), "int32"), Y: T.Tensor((7, 2, 64), "int32")):
        with T.Kernel(2, threads=64) as b:
            t = T.get_thread_binding()
            x = A[b, t]
            Y[0, b, t] = T.shfl_xor(x, 5)
            Y[1, b, t] = T.shfl_down(x, 3)
            Y[2, b, t] = T.shfl_up(x, 2, 8)
            Y[3, b, t] = T.shfl_sync(x, 9)
            Y[4, b, t] = T.warp_reduce_sum(x)
            Y[5, b, t] = T.get_lane_idx() * 100 + T.get_warp_idx()
            Y[6, b, t] = T.cast(T.any_sync(x > 90), "int32") + 2 * T.cast(T.all_sync(x > 0), "int32")

    a = rng.integers(1, 100, (2, 64)).astype(np.int32)
    trace = run(kernel, A=a)
    y = trace.outputs["Y"]
    w = a.reshape(2, 2, 32)
    lane = np.arange(32)
    np.testing.assert_array_equal(y[0].reshape(w.shape), w[..., lane ^ 5])
    np.testing.assert_array_equal(y[1].reshape(w.shape), w[..., np.where(lane + 3 < 32, lane + 3, lane)])
    np.testing.assert_array_equal(y[2].reshape(w.shape), w[..., np.where(lane % 8 >= 2, lane - 2, lane)])
    np.testing.assert_array_equal(y[3].reshape(w.shape), np.broadcast_to(w[..., 9:10], w.shape))
    np.testing.assert_array_equal(y[4].reshape(w.shape), np.broadcast_to(w.sum(-1, keepdims=True), w.shape))
    np.testing.assert_array_equal(y[5][0], (np.arange(64) % 32) * 100 + np.arange(64) // 32)
    vote = (w > 90).any(-1, keepdims=True) + 2 * (w > 0).all(-1, keepdims=True)
    np.testing.assert_array_equal(y[6].reshape(w.shape), np.broadcast_to(vote, w.shape))
    assert codes(trace) == []


def test_ballot_and_block_votes(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "uint64"), N: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            Y[t] = T.ballot_sync(A[t] > 0)
            N[t] = T.syncthreads_count(A[t] > 0)

    a = rng.integers(0, 2, 64).astype(np.int32)
    trace = run(kernel, A=a)
    bits = [int(sum(1 << i for i in range(32) if a[w * 32 + i])) for w in range(2)]
    np.testing.assert_array_equal(trace.outputs["Y"], np.repeat(np.array(bits, np.uint64), 32))
    np.testing.assert_array_equal(trace.outputs["N"], np.full(64, a.sum()))


def test_threads_of_three_dimensions(run):
    @T.prim_func
    def kernel(Y: T.Tensor((2, 3, 4), "int32"), W: T.Tensor((24,), "int32")):
        with T.Kernel(1, threads=(4, 3, 2)) as _:
            x = T.get_thread_binding(0)
            y = T.get_thread_binding(1)
            z = T.get_thread_binding(2)
            Y[z, y, x] = x + 10 * y + 100 * z
            W[(z * 3 + y) * 4 + x] = T.get_lane_idx()

    trace = run(kernel)
    z, y, x = np.meshgrid(range(2), range(3), range(4), indexing="ij")
    np.testing.assert_array_equal(trace.outputs["Y"], x + 10 * y + 100 * z)
    np.testing.assert_array_equal(trace.outputs["W"], np.arange(24))


def test_each_thread_has_its_own_variables(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64, 20), "int32"), Y: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            found = T.alloc_var("int32", init=-1)
            for i in T.serial(20):
                if A[b * 32 + t, i] == 3:
                    found = i
                    T.loop_break()
            Y[b * 32 + t] = found

    a = rng.integers(0, 8, (64, 20)).astype(np.int32)
    want = [next((i for i, v in enumerate(row) if v == 3), -1) for row in a]
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["Y"], want)


def test_each_iteration_has_its_own_variable(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(128):
                v = T.alloc_var("float32")
                v = A[b * 128 + i]
                for _ in T.serial(3):
                    v = v * 2
                Y[b * 128 + i] = v

    a = rng.standard_normal(256).astype(np.float32)
    np.testing.assert_array_equal(run(kernel, A=a).outputs["Y"], a * 8)


def test_data_dependent_while(run):
    @T.prim_func
    def kernel(A: T.Tensor((64,), "int32"), Y: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            n = T.alloc_var("int32")
            steps = T.alloc_var("int32", init=0)
            n = A[t]
            while n > 1:
                n = T.if_then_else(n % 2 == 0, n // 2, 3 * n + 1)
                steps += 1
            Y[t] = steps

    def collatz(n):
        steps = 0
        while n > 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        return steps

    trace = run(kernel, A=np.arange(1, 65, dtype=np.int32))
    np.testing.assert_array_equal(trace.outputs["Y"], [collatz(n) for n in range(1, 65)])


def test_atomics_on_every_scope(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((512,), "int32"), H: T.Tensor((16,), "int32"), M: T.Tensor((1,), "int32"), L: T.Tensor((1,), "int32")):
        with T.Kernel(4, threads=128) as b:
            t = T.get_thread_binding()
            h = T.alloc_shared((16,), "int32")
            if t < 16:
                h[t] = 0
            T.atomic_add(h[A[b * 128 + t]], 1)
            T.atomic_max(M[0], A[b * 128 + t])
            T.atomic_min(L[0], A[b * 128 + t])
            if t < 16:
                T.atomic_add(H[t], h[t])

    a = rng.integers(0, 16, 512).astype(np.int32)
    trace = run(kernel, A=a, H=np.zeros(16, np.int32), M=np.array([-1], np.int32), L=np.array([99], np.int32))
    np.testing.assert_array_equal(trace.outputs["H"], np.bincount(a, minlength=16))
    assert trace.outputs["M"][0] == a.max()
    assert trace.outputs["L"][0] == a.min()
    assert codes(trace) == []


def test_uniform_atomic_is_done_by_every_thread(run):
    @T.prim_func
    def kernel(N: T.Tensor((2,), "int32")):
        with T.Kernel(3, threads=64) as _:
            T.atomic_add(N[0], 1)
            for _i in T.Parallel(10):
                T.atomic_add(N[1], 1)

    trace = run(kernel, N=np.zeros(2, np.int32))
    np.testing.assert_array_equal(trace.outputs["N"], [3 * 64, 3 * 10])


def test_region_atomics_over_blocks(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((4, 100), "float32"), Y: T.Tensor((100,), "float32")):
        with T.Kernel(4, threads=128) as b:
            f = T.alloc_fragment((128,), "float32")
            T.copy(A[b, 0:128], f)
            T.atomic_add(Y[0:128], f)

    a = rng.standard_normal((4, 100)).astype(np.float32)
    trace = run(kernel, A=a, Y=np.zeros(100, np.float32))
    np.testing.assert_allclose(trace.outputs["Y"], a.sum(0), rtol=1e-5, atol=1e-6)
    assert codes(trace) == ["TL208"]


def test_vector_loads_stores_and_atomics(run, rng):
    @T.prim_func
    def kernel(
        A: T.Tensor((64, 8), "float16"), B: T.Tensor((64, 8), "float16"), P: T.Tensor((64, 2), "float32"), S: T.Tensor((2,), "float32")
    ):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            T.stg128(B[t, 0], T.ldg128(A[t, 0]))
            T.atomic_addx2(S[0], P[t, 0])

    a = rng.standard_normal((64, 8)).astype(np.float16)
    p = rng.integers(0, 9, (64, 2)).astype(np.float32)
    trace = run(kernel, A=a, P=p, S=np.zeros(2, np.float32))
    np.testing.assert_array_equal(trace.outputs["B"], a)
    np.testing.assert_array_equal(trace.outputs["S"], p.sum(0))


def test_random_numbers_differ_between_threads_and_repeat(run):
    @T.prim_func
    def kernel(Y: T.Tensor((64, 4), "uint32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            T.rng_init(7, b * 32 + t)
            for i in T.serial(4):
                Y[b * 32 + t, i] = T.rng_rand()

    first, second = run(kernel).outputs["Y"], run(kernel).outputs["Y"]
    np.testing.assert_array_equal(first, second)
    assert len(np.unique(first)) == 256


def test_unpacking_nibbles(run, rng):
    @T.prim_func
    def kernel(B: T.Tensor((64, 32), "uint8"), Y: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((64, 32), "uint8")
            f = T.alloc_fragment((64, 64), "float16")
            T.copy(B, s)
            for i, j in T.Parallel(64, 64):
                f[i, j] = T.cast((s[i, j // 2] >> T.cast((j % 2) * 4, "uint8")) & T.uint8(15), "float16") - 8
            T.copy(f, Y)

    b = rng.integers(0, 256, (64, 32)).astype(np.uint8)
    want = np.stack([b & 15, b >> 4], -1).reshape(64, 64).astype(np.float16) - np.float16(8)
    np.testing.assert_array_equal(run(kernel, B=b).outputs["Y"], want)


def test_prints_of_expressions_and_tiles(run):
    @T.prim_func
    def kernel(A: T.Tensor((4, 8), "float16")):
        with T.Kernel(2, threads=32) as b:
            s = T.alloc_shared((4, 8), "float16")
            T.copy(A, s)
            for k in T.serial(2):
                T.print(s, msg="tile")
                T.print(b * 10 + k, msg="number")

    a = np.arange(32, dtype=np.float16).reshape(4, 8)
    trace = run(kernel, A=a)
    tiles = [p for p in trace.prints if p.message == "tile"]
    numbers = [p for p in trace.prints if p.message == "number"]
    assert len(tiles) == 4
    assert all((p.values == a).all() and p.thread is None for p in tiles)
    assert sorted((p.block[0], p.loops["k"], int(p.values)) for p in numbers) == [(0, 0, 0), (0, 1, 1), (1, 0, 10), (1, 1, 11)]


def test_checks_off_gives_the_same_values(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((100,), "float32"), Y: T.Tensor((100,), "float32")):
        with T.Kernel(2, threads=64) as b:
            for i in T.Parallel(64):
                Y[b * 64 + i] = T.exp(A[b * 64 + i]) / 3

    a = rng.standard_normal(100).astype(np.float32)
    on, off = run(kernel, A=a), run(kernel, A=a, params=SimParams(checks=False))
    np.testing.assert_array_equal(on.outputs["Y"], off.outputs["Y"])
    np.testing.assert_allclose(on.outputs["Y"], np.exp(a.astype(np.float64)) / 3, rtol=1e-6)
    assert off.findings == ()


def test_break_continue_and_return(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((64, 10), "int32"), Y: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            Y[t] = -1
            if A[t, 0] == 7:
                T.thread_return()
            for i in T.serial(10):
                if A[t, i] == 5:
                    T.continue_loop()
                if A[t, i] == 9:
                    T.break_loop()
                total += A[t, i]
            Y[t] = total

    def want(row):
        if row[0] == 7:
            return -1
        total = 0
        for v in row:
            if v == 5:
                continue
            if v == 9:
                break
            total += v
        return total

    a = rng.integers(0, 10, (64, 10)).astype(np.int32)
    np.testing.assert_array_equal(run(kernel, A=a).outputs["Y"], [want(row) for row in a])


def test_loops_that_begin_at_different_places(run, rng):
    """The first turn and the number of turns depend on the block: a sliding window over keys."""

    @T.prim_func
    def kernel(A: T.Tensor((8, 16), "float32"), Y: T.Tensor((8, 16), "float32")):
        with T.Kernel(8, threads=32) as b:
            s = T.alloc_shared((16,), "float32")
            f = T.alloc_fragment((16,), "float32")
            T.clear(f)
            for k in T.serial(T.max(0, b - 2), b + 1):
                T.copy(A[k, 0:16], s)
                for i in T.Parallel(16):
                    f[i] += s[i] * (k + 1)
            T.copy(f, Y[b, 0:16])

    a = rng.standard_normal((8, 16)).astype(np.float32)
    want = np.stack([sum(a[k] * (k + 1) for k in range(max(0, b - 2), b + 1)) for b in range(8)])
    np.testing.assert_allclose(run(kernel, A=a).outputs["Y"], want, rtol=1e-5, atol=1e-5)


def halves(limit, by, outside=False):
    @T.prim_func
    def kernel(A: T.Tensor((2, 64), "float32"), O: T.Tensor((2, 64), "float32")):
        with T.Kernel(2, threads=64) as b:
            t = T.get_thread_binding()
            O[b, t] = 0.0
            if outside:
                v = T.alloc_var("float32")
                v = T.shfl_xor(A[b, t], by)
                if t < limit:
                    O[b, t] = v
            else:
                if t < limit:
                    O[b, t] = T.shfl_xor(A[b, t], by)

    return kernel


@pytest.mark.parametrize(
    ("limit", "by", "outside", "expected"),
    [
        (16, 16, False, ["TL203"]),
        (16, 8, False, []),  # those asked are there
        (32, 16, False, []),  # a whole warp
        (16, 16, True, []),
    ],
)
def test_a_shuffle_from_a_thread_that_is_not_there(run, limit, by, outside, expected):
    trace = run(halves(limit, by, outside), A=np.arange(128, dtype=np.float32).reshape(2, 64))
    assert codes(trace) == expected
    if expected:
        (found,) = trace.findings
        assert (found.evidence["reader"], found.evidence["asked"], found.evidence["threads"]) == (0, 16, 16)
        assert found.block == (0, 0, 0)

"""Mistakes that give one finding each: divisions, tails that nobody writes, roles that never meet, loops that TileLang compiles wrongly."""

import numpy as np
import pytest
import tilelang.language as T


def codes(trace, *severities):
    return [f.code for f in trace.findings if f.severity in (severities or ("error", "warning"))]


def division(kind):
    @T.prim_func
    def k(A: T.Tensor((32,), "int32"), D: T.Tensor((32,), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                if kind == "plain":
                    O[i] = A[i] // D[i]
                elif kind == "modulo":
                    O[i] = A[i] % D[i]
                elif kind == "chosen":
                    O[i] = T.if_then_else(D[i] != 0, A[i] // D[i], 0)
                elif kind == "and":
                    O[i] = 0
                    if D[i] != 0 and A[i] // D[i] > 2:
                        O[i] = A[i] // D[i]

    return k


@pytest.mark.parametrize(("kind", "found"), [("plain", ["TL303"]), ("modulo", ["TL303"]), ("chosen", []), ("and", [])])
def test_division_by_zero_where_a_lane_really_divides(run, kind, found):
    d = np.arange(32, dtype=np.int32) - 3
    a = np.arange(32, dtype=np.int32)
    trace = run(division(kind), A=a, D=d)
    assert codes(trace) == found
    if found:
        assert trace.findings[0].indices == {"i": 3}
        assert trace.findings[0].line
    elif kind == "chosen":
        np.testing.assert_array_equal(trace.outputs["O"], np.where(d != 0, a // np.where(d, d, 1), 0))


def test_a_scalar_divisor(run):
    @T.prim_func
    def k(A: T.Tensor((32,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = i // n

    assert codes(run(k, A=np.zeros(32, np.int32), n=0)) == ["TL303"]
    np.testing.assert_array_equal(run(k, A=np.zeros(32, np.int32), n=5).outputs["A"], np.arange(32) // 5)


def short(n, blocks):
    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(blocks, threads=32) as b:
            for i in T.Parallel(32):
                O[b * 32 + i] = A[b * 32 + i]

    return k


@pytest.mark.parametrize("given", [True, False])
def test_the_tail_of_a_plain_output_that_nobody_writes(run, given):
    more = {"O": np.zeros(100, np.float32)} if given else {}
    found = [f for f in run(short(100, 3), A=np.ones(100, np.float32), **more).findings if f.code == "TL104"]
    assert [(f.severity, f.evidence["first"], f.evidence["high"]) for f in found] == [("warning", [96], 95)]
    assert not codes(run(short(100, 4), A=np.ones(100, np.float32), **more))


def test_an_output_that_data_chooses_where_to_write_has_no_tail(run):
    @T.prim_func
    def k(I: T.Tensor((4,), "int32"), O: T.Tensor((100,), "float32"), L: T.Tensor((1,), "int32"), Q: T.Tensor((100,), "float32")):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(4):
                O[I[i]] = 1.0
            if b < L[0]:
                for i in T.Parallel(20):
                    Q[b * 20 + i] = 2.0

    assert "TL104" not in codes(run(k, I=np.arange(4, dtype=np.int32), O=np.zeros(100, np.float32), L=np.array([2], np.int32)))


def test_an_overflow_on_a_cast_is_told_once(run):
    @T.prim_func
    def k(A: T.Tensor((32,), "float32"), O: T.Tensor((32,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                O[i] = T.cast(A[i] * 2, "float16")

    assert codes(run(k, A=np.full(32, 60000, np.float32))) == ["TL302"]


def roles(n, apart):
    @T.prim_func
    def k(A: T.Tensor((n, 64), "float16"), O: T.Tensor((n, 64), "float16")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64), "float16")
            full = T.alloc_barrier([128] * 2)
            empty = T.alloc_barrier([128] * 2)
            if apart:
                with T.ws(0):
                    for i in T.serial(n):
                        T.mbarrier_wait_parity(empty[i % 2], (i // 2) % 2 ^ 1)
                        T.copy(A[i, :], s[i % 2, :])
                        T.mbarrier_arrive(full[i % 2])
                with T.ws(1):
                    for i in T.serial(n):
                        T.mbarrier_wait_parity(full[i % 2], (i // 2) % 2)
                        T.copy(s[i % 2, :], O[i, :])
                        T.mbarrier_arrive(empty[i % 2])
            else:
                if T.get_thread_binding() < 128:
                    for i in T.serial(n):
                        T.mbarrier_wait_parity(empty[i % 2], (i // 2) % 2 ^ 1)
                        T.copy(A[i, :], s[i % 2, :])
                        T.mbarrier_arrive(full[i % 2])
                else:
                    for i in T.serial(n):
                        T.mbarrier_wait_parity(full[i % 2], (i // 2) % 2)
                        T.copy(s[i % 2, :], O[i, :])
                        T.mbarrier_arrive(empty[i % 2])

    return k


@pytest.mark.parametrize(("n", "apart", "found"), [(4, True, ["TL206"]), (2, True, []), (4, False, [])])
def test_a_barrier_of_the_block_between_two_roles_that_need_each_other(run, rng, n, apart, found):
    a = rng.standard_normal((n, 64)).astype(np.float16)
    trace = run(roles(n, apart), A=a)
    assert codes(trace) == found
    np.testing.assert_array_equal(trace.outputs["O"], a)


@pytest.mark.parametrize(("tiles", "workers", "found"), [(4, 8, True), (12, 8, False), (8, 4, False)])
def test_a_loop_of_at_most_one_turn_loses_its_test(run, tiles, workers, found):
    @T.prim_func
    def k(A: T.Tensor((tiles, 32), "float32"), O: T.Tensor((tiles, 32), "float32")):
        with T.Kernel(workers, threads=32) as w:
            for j in T.serial(T.ceildiv(tiles - w, workers)):
                for i in T.Parallel(32):
                    O[w + j * workers, i] = A[w + j * workers, i]

    assert ("TL802" in codes(run(k, A=np.ones((tiles, 32), np.float32)))) == found


@pytest.mark.parametrize(("n", "found"), [(20, True), (100, False)])
def test_a_strided_loop_from_the_thread_on_loses_its_test_too(run, n, found):
    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            s = T.alloc_shared((n,), "float32")
            for i in T.serial(t, n, 32):
                s[i] = A[i]
            T.sync_threads()
            for i in T.Parallel(n):
                O[i] = s[i]

    trace = run(k, A=np.arange(n, dtype=np.float32))
    assert codes(trace) == (["TL802"] if found else [])
    np.testing.assert_array_equal(trace.outputs["O"], np.arange(n))


@pytest.mark.parametrize(("threads", "found"), [(1, ["TL203"]), (32, [])])
def test_a_bulk_store_elects_a_thread_of_a_whole_warp(run, threads, found):
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            t = T.get_thread_binding()
            T.copy(A, s)
            if t < threads:
                T.tma_copy(s, O)

    assert codes(run(k, A=np.ones((64, 64), np.float16))) == found


@pytest.mark.parametrize("threads", [64, 32])
def test_a_loop_over_threads_by_hand_is_the_thread(run, threads):
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=threads):
            for t in T.thread_binding(64, thread="threadIdx.x"):
                O[t] = A[t] + 1

    trace = run(k, A=np.arange(64, dtype=np.float32))
    np.testing.assert_array_equal(trace.outputs["O"], np.arange(64) + 1)
    assert not codes(trace)


def test_threads_that_share_a_computed_index_write_one_element(run):
    @T.prim_func
    def k(H: T.Tensor((4,), "int32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            at = T.alloc_var("int32")
            at = b
            while at < 4:
                if t == 0:
                    H[at] = b
                at = at + 2

    np.testing.assert_array_equal(run(k).outputs["H"], [0, 1, 0, 1])


def test_a_comparison_that_wraps_compares_what_the_device_does(run):
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(64, threads=32) as b:
            for i in T.Parallel(32):
                if b * 64000000 + i < 64:
                    O[b * 64000000 + i] = A[i]

    found = run(k, A=np.ones(64, np.float32), O=np.zeros(64, np.float32)).findings
    assert "TL106" in [f.code for f in found]
    assert any(f.code == "TL102" and f.evidence["write"] for f in found)  # blocks from 34 on compare a negative number


def test_a_nan_from_memory_that_nobody_wrote_is_told_once(run):
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_local((1,), "float32")
            for i in T.serial(64):
                s[0] = s[0] + A[i]
            O[0] = s[0]

    assert codes(run(k, A=np.ones(64, np.float32))) == ["TL103"]


def test_a_loop_of_unknown_length_that_every_thread_repeats(run):
    n = T.dynamic("n")

    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.serial(n):
                O[i] = A[i]

    (f,) = run(k, A=np.ones(40, np.float32), O=np.zeros(40, np.float32)).findings
    assert (f.code, f.evidence["iterations"]) == ("TL601", None)
    assert "written 64 times" in f.message

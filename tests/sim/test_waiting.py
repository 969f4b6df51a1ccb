"""Waiting: roles, mbarriers, bulk copies, named barriers, spins, grid barriers, deadlocks."""

from __future__ import annotations

import numpy as np
import pytest
import tilelang.language as T

from tests.sim.conftest import codes


def pipeline(consumer_parity=0, arrivals=128, forget=False, swapped=False):
    """A producer and a consumer with a ring of two tiles."""
    producer, consumer = (1, 0) if swapped else (0, 1)

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=256) as _:
            ring = T.alloc_shared((2, 16, 32), "float32")
            full = T.alloc_barrier([arrivals] * 2)
            empty = T.alloc_barrier([128] * 2)
            with T.ws(producer):
                for i in T.serial(4):
                    T.barrier_wait(empty[i % 2], (i // 2 + 1) % 2)
                    T.copy(A[i * 16 : i * 16 + 16, 0:32], ring[i % 2, :, :])
                    T.barrier_arrive(full[i % 2])
            with T.ws(consumer):
                for i in T.serial(4):
                    T.barrier_wait(full[i % 2], (i // 2 + consumer_parity) % 2)
                    for r, c in T.Parallel(16, 32):
                        Y[i * 16 + r, c] = ring[i % 2, r, c] + 1
                    if not forget:
                        T.barrier_arrive(empty[i % 2])

    return kernel


def ring_by_tma(early):
    """A producer with bulk copies; a consumer that frees a stage before it reads it, or after."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 32), "float32"), Y: T.Tensor((64, 32), "float32")):
        with T.Kernel(1, threads=256) as _:
            ring = T.alloc_shared((2, 16, 32), "float32")
            full = T.alloc_barrier([1] * 2)
            free = T.alloc_barrier([128] * 2)
            if T.get_thread_binding() >= 128:
                for i in T.serial(4):
                    T.mbarrier_wait_parity(free[i % 2], (i // 2 + 1) % 2)
                    T.tma_copy(A[i * 16 : i * 16 + 16, 0:32], ring[i % 2, :, :], barrier=full[i % 2])
                    if T.shuffle_elect(128):
                        T.mbarrier_arrive(full[i % 2])
            else:
                for i in T.serial(4):
                    T.mbarrier_wait_parity(full[i % 2], (i // 2) % 2)
                    if early:
                        T.mbarrier_arrive(free[i % 2])
                    for r, c in T.Parallel(16, 32):
                        Y[i * 16 + r, c] = ring[i % 2, r, c] + 1
                    if not early:
                        T.mbarrier_arrive(free[i % 2])

    return kernel


@pytest.mark.parametrize(("early", "expected"), [(False, []), (True, ["TL204"])])
def test_a_stage_that_is_freed_before_it_is_read(run, rng, early, expected):
    a = rng.standard_normal((64, 32)).astype(np.float32)
    trace = run(ring_by_tma(early), A=a)
    assert codes(trace) == expected
    if not early:
        np.testing.assert_array_equal(trace.outputs["Y"], a + 1)


def test_roles_run_side_by_side(run, rng):
    a = rng.standard_normal((64, 32)).astype(np.float32)
    for swapped in (False, True):
        trace = run(pipeline(swapped=swapped), A=a)
        np.testing.assert_array_equal(trace.outputs["Y"], a + 1)
        assert codes(trace) == ["TL206"]  # TileLang's own barrier between two such blocks: see test_faults


def test_wrong_phase_is_seen(run, rng):
    trace = run(pipeline(consumer_parity=1), A=rng.standard_normal((64, 32)).astype(np.float32))
    assert set(codes(trace)) & {"TL103", "TL206"}


def test_a_barrier_that_is_never_released_deadlocks(run, rng):
    trace = run(pipeline(forget=True), A=rng.standard_normal((64, 32)).astype(np.float32))
    (f,) = [f for f in trace.findings if f.code == "TL206"]
    assert "empty[0]" in f.message
    assert "128 of 128 arrivals are missing" in f.message
    assert f.line


def test_too_many_arrivals(run, rng):
    trace = run(pipeline(arrivals=64), A=rng.standard_normal((64, 32)).astype(np.float32))
    assert "TL205" in codes(trace)


def bulk(wait=True, alone=False):
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), Y: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as _:
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(1)
            if t < (1 if alone else 32):
                T.tma_copy(A, s, barrier=ready)
                if t == 0:
                    T.barrier_arrive(ready)
            if wait:
                T.barrier_wait(ready, 0)
            for i, j in T.Parallel(64, 64):
                Y[i, j] = s[i, j] + 1

    return kernel


def test_bulk_copy_lands_at_the_wait(run, rng):
    a = rng.standard_normal((64, 64)).astype(np.float16)
    trace = run(bulk(), A=a)
    np.testing.assert_array_equal(trace.outputs["Y"], a + np.float16(1))
    assert codes(trace) == []


def test_bulk_copy_that_nobody_waits_for(run, rng):
    (f,) = run(bulk(wait=False), A=rng.standard_normal((64, 64)).astype(np.float16)).findings
    assert f.code == "TL204"
    assert "asynchronous copy into s" in f.message


def test_bulk_copy_needs_its_whole_warp(run, rng):
    """Seen on a device: the election inside it hangs when one thread comes alone."""
    (f,) = run(bulk(alone=True), A=rng.standard_normal((64, 64)).astype(np.float16)).findings
    assert f.code == "TL203"
    assert "1 of the 32 threads of warp 0" in f.message


def test_named_barriers_of_two_groups(run, rng):
    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), Y: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            if t < 64:
                s[t] = A[t] * 2
                T.sync_threads(1, 64)
                Y[t] = s[63 - t]
            else:
                s[t] = A[t] * 3
                T.sync_threads(2, 64)
                Y[t] = s[191 - t]

    a = rng.standard_normal(128).astype(np.float32)
    trace = run(kernel, A=a)
    np.testing.assert_array_equal(trace.outputs["Y"], np.r_[a[:64][::-1] * 2, a[64:][::-1] * np.float32(3)])
    assert codes(trace) == []


def look_back(publish=True):
    @T.prim_func
    def kernel(X: T.Tensor((256,), "int32"), flags: T.Tensor((8,), "int32"), sums: T.Tensor((8,), "int32"), Y: T.Tensor((256,), "int32")):
        with T.Kernel(8, threads=32) as b:
            t = T.get_thread_binding()
            x = T.alloc_shared((32,), "int32")
            carry = T.alloc_shared((1,), "int32")
            x[t] = X[b * 32 + t]
            T.cumsum(x, dim=0)
            T.sync_threads()
            if t == 0:
                carry[0] = 0
                if b > 0:
                    while T.atomic_load(flags[b - 1], memory_order="acquire") == 0:
                        T.evaluate(0)
                    carry[0] = sums[b - 1]
                sums[b] = carry[0] + x[31]
                if publish:
                    T.atomic_store(flags[b], 1, memory_order="release")
            T.sync_threads()
            Y[b * 32 + t] = x[t] + carry[0]

    return kernel


def test_blocks_that_look_back(run, rng):
    """Each block spins until the one before it has published its sum; a plain read after that is no race."""
    x = rng.integers(0, 9, 256).astype(np.int32)
    trace = run(look_back(), X=x, flags=np.zeros(8, np.int32))
    np.testing.assert_array_equal(trace.outputs["Y"], np.cumsum(x))
    assert codes(trace) == []


def test_a_flag_that_nobody_sets_deadlocks(run, rng):
    trace = run(look_back(publish=False), X=np.zeros(256, np.int32), flags=np.zeros(8, np.int32))
    assert "TL206" in codes(trace)


def test_grid_barrier_orders_all_blocks(run, rng):
    def kernel(sync):
        @T.prim_func
        def k(A: T.Tensor((8, 32), "float32"), W: T.Tensor((8,), "float32"), Y: T.Tensor((8,), "float32")):
            with T.Kernel(8, threads=32) as b:
                f = T.alloc_fragment((32,), "float32")
                r = T.alloc_fragment((1,), "float32")
                w = T.alloc_fragment((8,), "float32")
                T.copy(A[b, 0], f)
                T.reduce_sum(f, r, dim=0)
                for _ in T.Parallel(1):
                    W[b] = r[0]
                if sync:
                    T.sync_grid()
                T.copy(W, w)
                T.reduce_sum(w, r, dim=0)
                for _ in T.Parallel(1):
                    Y[b] = r[0]

        return k

    a = rng.standard_normal((8, 32)).astype(np.float32)
    trace = run(kernel(True), A=a)
    np.testing.assert_allclose(trace.outputs["Y"], [a.sum()] * 8, rtol=1e-4)
    assert codes(trace) == []
    assert "TL201" in codes(run(kernel(False), A=a))


def last_block(atomic=True):
    @T.prim_func
    def kernel(A: T.Tensor((8, 32), "float32"), W: T.Tensor((8,), "float32"), N: T.Tensor((1,), "int32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(8, threads=32) as b:
            t = T.get_thread_binding()
            f = T.alloc_fragment((32,), "float32")
            r = T.alloc_fragment((1,), "float32")
            T.copy(A[b, 0], f)
            T.reduce_sum(f, r, dim=0)
            if t == 0:
                W[b] = r[0]
                if atomic:
                    ticket = T.atomic_add(N[0], 1, return_prev=True)
                    if ticket == 7:
                        total = T.alloc_var("float32", init=0.0)
                        for i in T.serial(8):
                            total += W[i]
                        Y[0] = total
                elif b == 7:
                    total = T.alloc_var("float32", init=0.0)
                    for i in T.serial(8):
                        total += W[i]
                    Y[0] = total

    return kernel


def test_the_last_block_may_read_what_the_others_left(run, rng):
    a = rng.standard_normal((8, 32)).astype(np.float32)
    trace = run(last_block(), A=a, N=np.zeros(1, np.int32))
    np.testing.assert_allclose(trace.outputs["Y"], [a.sum()], rtol=1e-4)
    assert codes(trace) == []
    assert "TL201" in codes(run(last_block(atomic=False), A=a, N=np.zeros(1, np.int32)))


@pytest.mark.parametrize(("in_turn", "expected"), [(True, []), (False, ["TL201"])])
def test_blocks_that_take_turns_at_one_element(run, in_turn, expected):
    @T.prim_func
    def kernel(A: T.Tensor((5, 32), "float32"), O: T.Tensor((32,), "float32"), turn: T.Tensor((1,), "int32")):
        with T.Kernel(5, threads=32) as b:
            t = T.get_thread_binding()
            if in_turn:
                while T.atomic_load(turn[0], memory_order="acquire") != b:
                    T.evaluate(0)
            O[t] = O[t] + A[b, t]
            T.sync_threads()
            if t == 0:
                T.atomic_store(turn[0], b + 1, memory_order="release")

    a = np.arange(160, dtype=np.float32).reshape(5, 32)
    trace = run(kernel, A=a, O=np.zeros(32, np.float32), turn=np.zeros(1, np.int32))
    assert [c for c in codes(trace) if c == "TL201"][:1] == expected
    if in_turn:
        np.testing.assert_array_equal(trace.outputs["O"], a.sum(0))

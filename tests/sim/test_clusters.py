"""Blocks of a cluster: copies between them, what orders them, and blocks taken over from those to come."""

import ml_dtypes
import numpy as np
import pytest
import tilelang.language as T


def errors(trace):
    return [f.code for f in trace.findings if f.severity == "error"]


def to_neighbour(n, with_barrier):
    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(2, threads=128, cluster_dims=(2, 1, 1)) as pid:
            s = T.alloc_shared((n,), "float32")
            d = T.alloc_shared((n,), "float32")
            b = T.alloc_cluster_barrier([1])
            T.fill(s, 0.0)
            T.fill(d, 0.0)
            T.cluster_sync()
            if pid == 0:
                for i in T.Parallel(n):
                    s[i] = A[i]
                if with_barrier:
                    T.copy_cluster(s, d, dst_block=1, remote_barrier=b[0])
                else:
                    T.copy_cluster(s, d, dst_block=1)
            if not with_barrier:
                T.cluster_sync()
            if pid == 1:
                if with_barrier:
                    T.mbarrier_wait_parity(b[0], 0)
                for i in T.Parallel(n):
                    B[i] = d[i]

    return k


@pytest.mark.parametrize("with_barrier", [True, False])
def test_a_copy_into_the_neighbours_shared_memory(run, rng, with_barrier):
    a = rng.standard_normal(128).astype(np.float32)
    trace = run(to_neighbour(128, with_barrier), A=a)
    np.testing.assert_array_equal(trace.outputs["B"], a)
    assert not errors(trace)


def test_one_block_loads_for_those_that_the_mask_names(run, rng):
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64, cluster_dims=(4, 1, 1)) as pid:
            s = T.alloc_shared((64,), "float32")
            for _ in T.serial(2):
                T.copy_cluster(A[pid, :], s, cluster_mask=0b1010)
                T.copy(s, B[pid, :])

    a = rng.standard_normal((4, 64)).astype(np.float32)
    trace = run(k, A=a)
    np.testing.assert_array_equal(trace.outputs["B"], a[[0, 1, 2, 1]])
    assert not errors(trace)


def exchange(how):
    @T.prim_func
    def k(A: T.Tensor((8, 32), "float32"), W: T.Tensor((8, 32), "float32"), B: T.Tensor((8, 32), "float32")):
        with T.Kernel(8, threads=32, cluster_dims=(2, 1, 1)) as pid:
            b = T.alloc_cluster_barrier([32])
            for i in T.Parallel(32):
                W[pid, i] = A[pid, i] * 2
            if how == "barrier":
                T.mbarrier_arrive(b[0], cta_id=T.block_rank_in_cluster() ^ 1)
                T.mbarrier_wait_parity(b[0], 0)
            elif how == "sync":
                T.cluster_sync()
            for i in T.Parallel(32):
                B[pid, i] = W[pid ^ 1, i]

    return k


@pytest.mark.parametrize("how", ["barrier", "sync"])
def test_blocks_that_wait_for_each_other_are_in_order(run, rng, how):
    a = rng.standard_normal((8, 32)).astype(np.float32)
    trace = run(exchange(how), A=a, W=np.zeros((8, 32), np.float32))
    np.testing.assert_array_equal(trace.outputs["B"], 2 * a[[1, 0, 3, 2, 5, 4, 7, 6]])
    assert not errors(trace)


def test_blocks_that_do_not_wait_race(run, rng):
    a = rng.standard_normal((8, 32)).astype(np.float32)
    assert "TL201" in errors(run(exchange("nothing"), A=a, W=np.zeros((8, 32), np.float32)))


def test_a_product_of_two_blocks_with_half_the_columns_each(run, rng):
    @T.prim_func
    def k(A: T.Tensor((256, 64), "bfloat16"), B: T.Tensor((256, 64), "bfloat16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(2, threads=128, cluster_dims=(2, 1, 1)) as b:
            a = T.alloc_shared((128, 64), "bfloat16")
            half = T.alloc_shared((128, 64), "bfloat16")
            c = T.alloc_tmem((128, 256), "float32")
            out = T.alloc_fragment((128, 256), "float32")
            done = T.alloc_barrier(1)
            T.copy(A[b * 128, 0], a)
            T.copy(B[b * 128, 0], half)
            T.cluster_sync()
            T.tcgen05_gemm(a, half, c, transpose_B=True, clear_accum=True, mbar=done, use_2cta=True)
            T.mbarrier_wait_parity(done, 0)
            T.copy(c, out)
            T.copy(out, C[b * 128, 0])

    a, b = (rng.standard_normal((256, 64)).astype(ml_dtypes.bfloat16) for _ in "ab")
    trace = run(k, A=a, B=b)
    np.testing.assert_allclose(trace.outputs["C"], a.astype(np.float32) @ b.astype(np.float32).T, rtol=1e-3, atol=1e-3)
    assert not errors(trace)


def test_a_block_takes_over_tiles_of_blocks_to_come(run, rng):
    n = 10

    @T.prim_func
    def k(A: T.Tensor((n, 32), "float32"), B: T.Tensor((n, 32), "float32"), H: T.Tensor((n,), "int32")):
        with T.Kernel(n, threads=32) as bx:
            answer = T.alloc_shared((4,), "uint32")
            ready = T.alloc_barrier(1)
            tile = T.alloc_var("int32")
            more = T.alloc_var("int32")
            phase = T.alloc_var("int32")
            t = T.get_thread_binding()
            tile = bx
            more = 1
            phase = 0
            while more == 1:
                if t == 0:
                    T.mbarrier_expect_tx(ready, 16)
                    T.clc_try_cancel(answer, ready)
                    T.barrier_arrive(ready)
                for i in T.Parallel(32):
                    B[tile, i] = A[tile, i] + 1
                if t == 0:
                    H[tile] = bx
                T.mbarrier_wait_parity(ready, phase)
                phase = phase ^ 1
                more = T.clc_is_canceled(answer)
                if more == 1:
                    tile = T.cast(T.clc_get_first_ctaid_x(answer), "int32")

    a = rng.standard_normal((n, 32)).astype(np.float32)
    trace = run(k, A=a)
    np.testing.assert_array_equal(trace.outputs["B"], a + 1)
    who = trace.outputs["H"]
    assert len(set(who.tolist())) < n
    assert sorted(set(who.tolist())) == list(range(len(set(who.tolist()))))
    assert not errors(trace)

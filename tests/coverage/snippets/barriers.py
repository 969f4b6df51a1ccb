"""Barriers of every kind, bulk copies, roles."""

import numpy as np
import tilelang.language as T
from snippet import normal, snippet

M = normal(64, 64, dtype=np.float16)
A128 = normal(128)


@snippet(lambda A: {"O": A}, A=M)
def bulk_copy_and_barrier():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(1)
            T.tma_copy(A, s, barrier=ready)
            if t == 0:
                T.barrier_arrive(ready)
            T.barrier_wait(ready, 0)
            T.copy(s, O)

    return k


@snippet(lambda A: {"O": A[::-1] * 2}, A=A128)
def mbarriers():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            full = T.alloc_barrier(128)
            s[t] = A[t] * 2
            T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            O[t] = s[127 - t]

    return k


@snippet({}, A=M, finds=("TL206",))
def expected_bytes():
    """T.tma_copy announces its own bytes: what is expected beside them never comes."""

    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier([1])
            if t == 0:
                T.mbarrier_expect_tx(ready[0], 64 * 64 * 2)
            T.tma_copy(A, s, barrier=ready[0])
            if t == 0:
                T.mbarrier_arrive(ready[0])
            T.mbarrier_wait_parity(ready[0], 0)
            T.copy(s, O)

    return k


@snippet(lambda A: {"O": A[::-1].copy()}, A=A128)
def named_barrier():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            if t < 64:
                s[t] = A[127 - t]
                s[t + 64] = A[63 - t]
                T.named_barrier_arrive(3, 128)
            else:
                T.sync_threads(3, 128)
                O[t] = s[t]
                O[t - 64] = s[t - 64]

    return k


@snippet(lambda A: {"O": A + 1}, finds=("TL206",), A=normal(4, 64))
def roles():
    """A producer and a consumer, two stages; between them TileLang puts a barrier that the producer never reaches."""

    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((2, 64), "float32")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            with T.ws(1):
                T.dec_max_nreg(24)
                for i in T.serial(4):
                    T.barrier_wait(free[i % 2], ((i // 2) & 1) ^ 1)
                    T.copy(A[i, 0], s[i % 2, :])
                    T.barrier_arrive(full[i % 2])
            with T.ws(0):
                T.inc_max_nreg(240)
                for i in T.serial(4):
                    T.barrier_wait(full[i % 2], (i // 2) & 1)
                    for j in T.Parallel(64):
                        O[i, j] = s[i % 2, j] + 1
                    T.barrier_arrive(free[i % 2])

    return k


@snippet(lambda A: {"O": A * 3}, A=A128)
def hints_change_nothing():
    """Registers, fences, programmatic launch: said to the hardware, without a meaning for values."""

    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            f = T.alloc_fragment((128,), "float32")
            T.annotate_producer_reg_dealloc(24)
            T.annotate_consumer_reg_alloc(240)
            T.no_set_max_nreg()
            T.disable_warp_group_reg_alloc()
            T.set_max_nreg(240, 1)
            T.pdl_sync()
            T.copy(A, s)
            T.fence_proxy_async()
            T.tma_store_arrive()
            T.tma_store_wait()
            T.warpgroup_arrive()
            T.warpgroup_commit_batch()
            T.copy(s, f)
            T.warpgroup_fence_operand(f)
            T.ptx_fence_barrier_init()
            T.tcgen05_before_thread_sync()
            T.tcgen05_after_thread_sync()
            T.sync_threads()
            O[t] = s[t] * 3
            T.pdl_trigger()

    return k


@snippet(lambda A: {"O": A.sum(keepdims=True).repeat(4)}, A=np.float32([1, 2, 3, 4]))
def sync_grid():
    @T.prim_func
    def k(A: T.Tensor((4,), "float32"), W: T.Tensor((4,), "float32"), O: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=32) as b:
            t = T.get_thread_binding()
            if t == 0:
                W[b] = A[b]
            T.sync_grid()
            if t == 0:
                O[b] = W[0] + W[1] + W[2] + W[3]

    return k


@snippet(lambda A: {"O": A}, A=M)
def older_barrier_calls():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(128)
            T.copy(A, s)
            T.ptx_arrive_barrier(ready[0])
            T.mbarrier_wait_parity(ready[0], 0)
            T.copy(s, O)

    return k


@snippet({}, A=M, finds=("TL206",))
def arrive_with_bytes():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            ready = T.alloc_barrier(1)
            T.tma_copy(A, s, barrier=ready)
            if t == 0:
                T.mbarrier_arrive_expect_tx(ready, 64 * 64 * 2)
            T.barrier_wait(ready, 0)
            T.copy(s, O)

    return k


@snippet(lambda A: {"O": A}, A=M)
def clusters():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128, cluster_dims=1):
            s = T.alloc_shared((64, 64), "float16")
            T.alloc_cluster_barrier([1])
            T.cluster_arrive_relaxed()
            T.cluster_wait()
            T.cluster_arrive()
            T.cluster_wait()
            T.cluster_sync()
            rank = T.block_rank_in_cluster()
            T.copy(A, s)
            if rank == 0:
                T.copy(s, O)

    return k


ROWS = [7, 2, 61, 30]


@snippet(lambda A: {"O": A[ROWS, 16:48].copy()}, A=M)
def gather_of_four_rows():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((4, 32), "float16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 32), "float16")
            ready = T.alloc_barrier(1)
            if T.shuffle_elect(32):
                T.mbarrier_expect_tx(ready, T.tma_gather4_bytes(32, "float16"))
                T.tma_gather4(A, s, 16, [7, 2, 61, 30], barrier=ready)
                T.barrier_arrive(ready)
            T.mbarrier_wait_parity(ready, 0)
            T.copy(s, O)

    return k


def scattered(A, O):
    out = np.zeros((64, 64), np.float16)
    out[ROWS, 16:48] = A
    return {"O": out}


@snippet(scattered, A=normal(4, 32, dtype=np.float16), O=np.zeros((64, 64), np.float16))
def scatter_of_four_rows():
    @T.prim_func
    def k(A: T.Tensor((4, 32), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((4, 32), "float16")
            T.copy(A, s)
            T.sync_threads()
            if T.shuffle_elect(32):
                T.tma_scatter4(s, O, 16, [7, 2, 61, 30])
                T.tma_store_arrive()
                T.tma_store_wait()

    return k


@snippet(lambda A: {"O": A + 1}, A=A128)
def arrivals_from_another_block():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=128, cluster_dims=2) as b:
            t = T.get_thread_binding()
            ready = T.alloc_cluster_barrier([128])
            T.cluster_sync()
            if b == 0:
                T.ptx_arrive_cluster_barrier(ready[0], 1)
            else:
                T.mbarrier_wait_parity(ready[0], 0)
                O[t] = A[t] + 1
            T.cluster_sync()

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(4, 64))
def roles_by_the_longer_name():
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=256):
            with T.WarpSpecialize(0):
                for i, j in T.Parallel(2, 64):
                    O[i, j] = A[i, j] + 1
            with T.WarpSpecialize(1):
                for i, j in T.Parallel(2, 64):
                    O[i + 2, j] = A[i + 2, j] + 1

    return k


@snippet(lambda A: {"O": A}, A=normal(64, 4))
def asynchronous_copies_arrive():
    @T.prim_func
    def k(A: T.Tensor((64, 4), "float32"), O: T.Tensor((64, 4), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64, 4), "float32")
            ready = T.alloc_barrier(64)
            T.ptx_cp_async(T.access_ptr(s[t, 0], "w", 4), T.access_ptr(A[t, 0], "r", 4), 4)
            T.cp_async_barrier_noinc(ready)
            T.mbarrier_wait_parity(ready, 0)
            for i in T.serial(4):
                O[t, i] = s[t, i]

    return k

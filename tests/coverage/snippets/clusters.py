"""Blocks of a cluster, pointer tables, loops over threads by hand."""

import numpy as np
import tilelang.language as T
from snippet import normal, snippet

line, four = normal(128).astype(np.float32), normal(4, 64).astype(np.float32)


@snippet({"B": line}, covers=["copy_cluster", "alloc_cluster_barrier"], A=line)
def copy_to_a_block():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(2, threads=128, cluster_dims=(2, 1, 1)) as pid:
            s = T.alloc_shared((128,), "float32")
            d = T.alloc_shared((128,), "float32")
            b = T.alloc_cluster_barrier([1])
            T.cluster_sync()
            if pid == 0:
                T.copy(A, s)
                T.copy_cluster(s, d, dst_block=1, remote_barrier=b[0])
            if pid == 1:
                T.mbarrier_wait_parity(b[0], 0)
                T.copy(d, B)

    return k


@snippet({"B": four[[0, 1, 0, 3]]}, covers=["copy_cluster"], A=four)
def copy_to_many():
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64, cluster_dims=(4, 1, 1)) as pid:
            s = T.alloc_shared((64,), "float32")
            T.copy_cluster(A[pid, :], s, cluster_mask=0b0101)
            T.copy(s, B[pid, :])

    return k


def taken_over(dims, multicast):
    def build():
        @T.prim_func
        def k(O: T.Tensor((4, 2, 2), "int32")):
            with T.Kernel(2, 2, 4, threads=32) as (bx, by, bz):
                answer = T.alloc_shared((4,), "uint32")
                ready = T.alloc_barrier(1)
                x = T.alloc_var("int32")
                y = T.alloc_var("int32")
                z = T.alloc_var("int32")
                more = T.alloc_var("int32")
                phase = T.alloc_var("int32")
                t = T.get_thread_binding()
                x = bx
                y = by
                z = bz
                more = 1
                phase = 0
                while more == 1:
                    if t == 0:
                        T.mbarrier_expect_tx(ready, 16)
                        if multicast:
                            T.clc_try_cancel_multicast(answer, ready)
                        else:
                            T.clc_try_cancel(answer, ready)
                        T.barrier_arrive(ready)
                        O[z, y, x] = z * 4 + y * 2 + x
                    T.mbarrier_wait_parity(ready, phase)
                    phase = phase ^ 1
                    more = T.clc_is_canceled(answer)
                    if more == 1:
                        x = T.cast(T.clc_get_first_ctaid_x(answer), "int32")
                        y = T.cast(T.clc_get_first_ctaid_y(answer), "int32")
                        z = T.cast(T.clc_get_first_ctaid_z(answer), "int32")

        return k

    return build


for multicast in (False, True):
    name = "clc_try_cancel_multicast" if multicast else "clc_try_cancel"
    build = taken_over((1, 1, 1), multicast)
    build.__name__ = name
    snippet(
        {"O": np.arange(16, dtype=np.int32).reshape(4, 2, 2)},
        covers=[name, "clc_is_canceled", *(f"clc_get_first_ctaid_{c}" for c in "xyz")],
    )(build)


@snippet({"B": four}, covers=["ptr", "make_tensor"], P=list(four))
def pointer_table():
    @T.prim_func
    def k(P: T.Tensor((4,), T.ptr), B: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as b:
            A = T.make_tensor(P[b], (64,), "float32")
            for i in T.Parallel(64):
                B[b, i] = A[i]

    return k


@snippet({"B": four[:, ::2]}, covers=["make_tensor_from_addr"], P=list(four))
def strided_from_an_address():
    @T.prim_func
    def k(P: T.Tensor((4,), "int64"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(4, threads=32) as b:
            A = T.make_tensor_from_addr(P[b], (32,), "float32", strides=(2,))
            T.copy(A, B[b, :])

    return k


@snippet({"O": line + 1}, covers=["thread_binding"], A=line)
def thread_loop():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for t in T.thread_binding(128, thread="threadIdx.x"):
                O[t] = A[t] + 1

    return k


@snippet({"O": np.where(line > 0, line, 0)}, covers=["ignore_loop_partition", "tvm_thread_invariant"], A=line)
def conditions_with_hints():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                O[i] = T.if_then_else(T.ignore_loop_partition(A[i] > 0), A[i], 0.0)
            if T.tvm_thread_invariant(A[0] < 0):
                O[0] = 0.0

    return k


rows = np.arange(128, dtype=np.float32).reshape(4, 32)


@snippet({"B": rows.sum(axis=1)}, covers=["tvm_thread_allreduce", "comm_reducer", "attr", "evaluate"], A=rows)
def one_sum_over_a_thread_axis():
    @T.prim_func
    def k(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=(4, 32)):
            n = T.get_thread_binding(0)
            j = T.get_thread_binding(1)
            mine = T.alloc_local((1,), "float32")
            total = T.alloc_local((1,), "float32")
            mine[0] = A[n, j]
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret(T.uint64(0), dtype="handle")):
                T.evaluate(T.tvm_thread_allreduce(T.uint32(1), mine[0], True, total[0], j, dtype="handle"))
            if j == 0:
                B[n] = total[0]

    return k

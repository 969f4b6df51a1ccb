"""Lanes and warps: indices, shuffles, votes, reductions."""

import numpy as np
import tilelang.language as T
from snippet import add, integers, snippet

A = integers(-100, 100, 64)
W = A.reshape(2, 32)


def by_thread(label, function, reference, names, dtype="int32", values=A):
    """Each of 64 threads stores ``function(its value, its number)``."""

    def build():
        @T.prim_func
        def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), dtype)):
            with T.Kernel(1, threads=64):
                t = T.get_thread_binding()
                O[t] = function(A[t], t)

        return k

    add(label, build, {"A": values}, {"O": np.asarray(reference, dtype).reshape(-1)}, names)


full = lambda x: np.broadcast_to(x, (2, 32))  # noqa: E731
lane = np.arange(64) % 32
by_thread("xor", lambda a, t: T.shfl_xor(a, 5), W[:, np.arange(32) ^ 5], ["shfl_xor"])
by_thread("down", lambda a, t: T.shfl_down(a, 3), W[:, np.where(np.arange(32) + 3 < 32, np.arange(32) + 3, np.arange(32))], ["shfl_down"])
by_thread("up", lambda a, t: T.shfl_up(a, 3), W[:, np.where(np.arange(32) >= 3, np.arange(32) - 3, np.arange(32))], ["shfl_up"])
by_thread("index", lambda a, t: T.shfl_sync(a, (t * 7) % 32), W[:, (np.arange(32) * 7) % 32], ["shfl_sync"])
by_thread("width", lambda a, t: T.shfl_xor(a, 2, width=8), W[:, np.arange(32) ^ 2], ["shfl_xor"])
by_thread(
    "down_in_eights",
    lambda a, t: T.shfl_down(a, 5, width=8),
    W[:, np.where(np.arange(32) % 8 < 3, np.arange(32) + 5, np.arange(32))],
    ["shfl_down"],
)
by_thread("sum", lambda a, t: T.warp_reduce_sum(a), full(W.sum(1, keepdims=True)), ["warp_reduce_sum"])
by_thread("max", lambda a, t: T.warp_reduce_max(a), full(W.max(1, keepdims=True)), ["warp_reduce_max"])
by_thread("min", lambda a, t: T.warp_reduce_min(a), full(W.min(1, keepdims=True)), ["warp_reduce_min"])
by_thread("and", lambda a, t: T.warp_reduce_bitand(a), full(np.bitwise_and.reduce(W, axis=1)[:, None]), ["warp_reduce_bitand"])
by_thread("or", lambda a, t: T.warp_reduce_bitor(a), full(np.bitwise_or.reduce(W, axis=1)[:, None]), ["warp_reduce_bitor"])
by_thread("lane", lambda a, t: T.get_lane_idx(), lane, ["get_lane_idx"])
by_thread(
    "warp", lambda a, t: T.get_warp_idx() + 10 * T.get_warp_idx_sync(), np.arange(64) // 32 * 11, ["get_warp_idx", "get_warp_idx_sync"]
)
by_thread("group", lambda a, t: T.get_warp_group_idx(32, 1), np.arange(64) // 32, ["get_warp_group_idx"])
by_thread("elect", lambda a, t: T.cast(T.shuffle_elect(64), "int32"), np.arange(64) == 0, ["shuffle_elect"])
positive = W > 0
ballot = (positive.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(1)[:, None]
by_thread("any", lambda a, t: T.cast(T.any_sync(a > 99), "int32"), full((W > 99).any(1)[:, None]), ["any_sync"])
by_thread("all", lambda a, t: T.cast(T.all_sync(a > -101), "int32"), full((W > -101).all(1)[:, None]), ["all_sync"])
by_thread("ballot", lambda a, t: T.cast(T.ballot(a > 0), "uint32"), full(ballot), ["ballot"], "uint32")
by_thread("ballot_sync", lambda a, t: T.cast(T.ballot_sync(a > 0), "uint32"), full(ballot), ["ballot_sync"], "uint32")
by_thread("active", lambda a, t: T.cast(T.activemask(), "uint32"), np.full(64, 2**32 - 1), ["activemask"], "uint32")
by_thread("count", lambda a, t: T.syncthreads_count(a > 0), np.full(64, (A > 0).sum()), ["syncthreads_count"])
by_thread("every", lambda a, t: T.cast(T.syncthreads_and(a > 0), "int32"), np.full(64, (A > 0).all()), ["syncthreads_and"])
by_thread("some", lambda a, t: T.cast(T.syncthreads_or(a > 0), "int32"), np.full(64, (A > 0).any()), ["syncthreads_or"])
few = integers(0, 4, 64)
match = np.array([[sum(1 << j for j in range(32) if row[j] == v) for v in row] for row in few.reshape(2, 32)], np.uint64)
by_thread("match_any", lambda a, t: T.cast(T.match_any_sync(a), "uint32"), match, ["match_any_sync"], "uint32", few)
same = np.r_[np.full(32, 7), few[32:]].astype(np.int32)
by_thread(
    "match_all",
    lambda a, t: T.cast(T.match_all_sync(a), "uint32"),
    np.r_[np.full(32, 2**32 - 1), np.zeros(32)],
    ["match_all_sync"],
    "uint32",
    same,
)
by_thread(
    "tvm_idx",
    lambda a, t: T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), a, (t * 3) % 32, 32, 32),
    W[:, (np.arange(32) * 3) % 32],
    ["tvm_warp_shuffle"],
)
by_thread(
    "tvm_up",
    lambda a, t: T.tvm_warp_shuffle_up(T.uint32(0xFFFFFFFF), a, 1, 32, 32),
    W[:, np.maximum(np.arange(32) - 1, 0)],
    ["tvm_warp_shuffle_up"],
)
by_thread("tvm_down", lambda a, t: T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), a, 1, 32, 32), W[:, np.minimum(np.arange(32) + 1, 31)],
          ["tvm_warp_shuffle_down"])  # fmt: skip
by_thread("tvm_mask", lambda a, t: T.cast(T.tvm_warp_activemask(), "uint32"), np.full(64, 2**32 - 1), ["tvm_warp_activemask"], "uint32")


@snippet(lambda A: {"O": A.reshape(2, 32)[:, ::-1].reshape(-1).copy()}, A=A)
def sync_warp():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            s[t] = A[t]
            T.sync_warp()
            O[t] = s[t // 32 * 32 + 31 - t % 32]

    return k


@snippet(lambda A: {"O": A[::-1].copy()}, A=A)
def sync_threads():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            s[t] = A[t]
            T.sync_threads()
            O[t] = s[63 - t]

    return k


@snippet(lambda A: {"O": A[::-1].copy()}, A=A)
def tvm_storage_sync():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "int32")
            s[t] = A[t]
            T.evaluate(T.tvm_storage_sync("shared"))
            O[t] = s[63 - t]

    return k


@snippet({"O": np.uint32([1])})
def random_numbers_are_in_range():
    """Their values are held against cuRAND's elsewhere; here each thread draws its own, in range."""

    @T.prim_func
    def k(O: T.Tensor((1,), "uint32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.rng_init(7, t)
            x = T.alloc_var("uint32")
            y = T.alloc_var("float32")
            x = T.rng_rand()
            y = T.rng_rand_float()
            other = T.alloc_var("uint32")
            other = T.shfl_xor(x, 1)
            good = T.syncthreads_and(T.And(x != other, T.And(y > 0, y <= 1)))
            if t == 0:
                O[0] = T.cast(good, "uint32")

    return k

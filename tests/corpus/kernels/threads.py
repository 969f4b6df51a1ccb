"""Thread-level code: lanes, shuffles, votes, atomics, barriers, loops that depend on data."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def warp_sum(A):
    M = T.const("M")
    A: T.Tensor[[M, 32], T.float32]
    O = T.empty((M,), T.float32)
    with T.Kernel(M // 4, threads=128) as b:
        t = T.get_thread_binding()
        v = T.alloc_var(T.float32)
        row = b * 4 + t // 32
        v = A[row, t % 32]
        for i in T.serial(5):
            v += T.shfl_xor(v, 16 >> i)
        if t % 32 == 0:
            O[row] = v
    return O


def warp_sum_oracle(A):
    return {"out0": A.sum(1, dtype=np.float64)}


@tilelang.jit
def warp_intrinsics(A):
    A: T.Tensor[[64], T.int32]
    O = T.empty((5, 64), T.int32)
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        O[0, t] = T.warp_reduce_sum(A[t])
        O[1, t] = T.warp_reduce_max(A[t])
        O[2, t] = T.shfl_down(A[t], 1)
        O[3, t] = T.shfl_sync(A[t], 3)
        O[4, t] = T.get_lane_idx() + 100 * T.get_warp_idx()
    return O


def warp_intrinsics_oracle(A):
    a = A.reshape(2, 32)
    down = np.concatenate([a[:, 1:], a[:, -1:]], 1)
    lane = np.arange(64).reshape(2, 32)
    full = lambda x: np.broadcast_to(x, (2, 32)).reshape(-1)  # noqa: E731
    rows = [full(a.sum(1, keepdims=True)), full(a.max(1, keepdims=True)), down.reshape(-1), full(a[:, 3:4]), (lane % 32 + 100 * (lane // 32)).reshape(-1)]
    return {"out0": np.stack(rows).astype(np.int32)}


@tilelang.jit
def histogram(X, H):
    N = T.const("N")
    X: T.Tensor[[N], T.int32]
    H: T.Tensor[[16], T.int32]
    with T.Kernel(T.ceildiv(N, 256), threads=128) as b:
        local = T.alloc_shared((16,), T.int32)
        T.clear(local)
        T.sync_threads()
        for i in T.Parallel(256):
            if b * 256 + i < N:
                T.atomic_add(local[X[b * 256 + i]], 1)
        T.sync_threads()
        for i in T.Parallel(16):
            T.atomic_add(H[i], local[i])


def histogram_inputs(rng):
    return {"X": rng.integers(0, 16, 1000, dtype=np.int32), "H": np.zeros(16, np.int32)}


def histogram_oracle(X, H):
    return {"H": (H + np.bincount(X, minlength=16)).astype(np.int32)}


@tilelang.jit
def atomics_min_max(X, O):
    N = T.const("N")
    X: T.Tensor[[N], T.int32]
    O: T.Tensor[[2], T.int32]
    with T.Kernel(N // 128, threads=128) as b:
        t = T.get_thread_binding()
        T.atomic_max(O[0], X[b * 128 + t])
        T.atomic_min(O[1], X[b * 128 + t])


def atomics_min_max_inputs(rng):
    return {"X": rng.integers(-1000, 1000, 512, dtype=np.int32), "O": np.zeros(2, np.int32)}


def atomics_min_max_oracle(X, O):
    return {"O": np.array([max(0, X.max()), min(0, X.min())], np.int32)}


@tilelang.jit
def collatz(X):
    N = T.const("N")
    X: T.Tensor[[N], T.int32]
    O = T.empty((N,), T.int32)
    with T.Kernel(1, threads=64):
        t = T.get_thread_binding()
        x = T.alloc_var(T.int32)
        n = T.alloc_var(T.int32, init=0)
        x = X[t]
        while x > 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            n += 1
        O[t] = n
    return O


def collatz_inputs(rng):
    return {"X": np.arange(1, 65, dtype=np.int32)}


def collatz_oracle(X):
    def steps(x):
        n = 0
        while x > 1:
            x, n = (x // 2 if x % 2 == 0 else 3 * x + 1), n + 1
        return n

    return {"out0": np.array([steps(int(x)) for x in X], np.int32)}


@tilelang.jit
def find_first(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.int32]
    O = T.empty((M,), T.int32)
    with T.Kernel(M // 32, threads=32) as b:
        t = T.get_thread_binding()
        at = T.alloc_var(T.int32, init=-1)
        for i in T.serial(N):
            if X[b * 32 + t, i] == 3:
                at = i
                T.loop_break()
        O[b * 32 + t] = at
    return O


def find_first_oracle(X):
    hit = X == 3
    return {"out0": np.where(hit.any(1), hit.argmax(1), -1).astype(np.int32)}


@tilelang.jit
def block_reverse(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    O = T.empty((N,), T.float32)
    with T.Kernel(N // 64, threads=64) as b:
        t = T.get_thread_binding()
        s = T.alloc_shared((64,), T.float32)
        s[t] = A[b * 64 + t]
        T.sync_threads()
        O[b * 64 + t] = s[63 - t]
    return O


def block_reverse_oracle(A):
    return {"out0": A.reshape(-1, 64)[:, ::-1].reshape(-1)}


@tilelang.jit
def look_back(X, flags, sums):
    """Prefix sum over blocks: each block spins until its predecessor has published its total."""
    N = T.const("N")
    X: T.Tensor[[N], T.int32]
    flags: T.Tensor[[N // 32], T.int32]
    sums: T.Tensor[[N // 32], T.int32]
    O = T.empty((N,), T.int32)
    with T.Kernel(N // 32, threads=32) as b:
        t = T.get_thread_binding()
        x = T.alloc_shared((32,), T.int32)
        carry = T.alloc_shared((1,), T.int32)
        x[t] = X[b * 32 + t]
        T.cumsum(x, dim=0)
        T.sync_threads()
        if t == 0:
            carry[0] = 0
            if b > 0:
                while T.atomic_load(flags[b - 1], memory_order="acquire") == 0:
                    T.evaluate(0)
                carry[0] = T.atomic_load(sums[b - 1], memory_order="relaxed")
            T.atomic_store(sums[b], carry[0] + x[31], memory_order="relaxed")
            T.atomic_store(flags[b], 1, memory_order="release")
        T.sync_threads()
        O[b * 32 + t] = x[t] + carry[0]
    return O


def look_back_inputs(rng):
    return {"X": rng.integers(0, 9, 256, dtype=np.int32), "flags": np.zeros(8, np.int32), "sums": np.zeros(8, np.int32)}


def look_back_oracle(X, flags, sums):
    return {"out0": np.cumsum(X).astype(np.int32)}


@tilelang.jit
def printed(A):
    A: T.Tensor[[4, 8], T.float32]
    with T.Kernel(2, threads=32) as b:
        s = T.alloc_shared((4, 8), T.float32)
        f = T.alloc_fragment((4, 8), T.float32)
        T.copy(A, s)
        T.copy(s, f)
        T.print(s, "shared")
        T.print(f, "fragment")
        T.print(b, "block")
        T.device_assert(A[0, 0] == A[0, 0], "not a number")


def printed_oracle(A):
    return {}

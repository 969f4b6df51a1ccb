"""Atomics on every scope."""

import numpy as np
import tilelang.language as T
from snippet import add, integers, normal, snippet

X = integers(0, 8, 256)
V = integers(-50, 50, 256)
FUNCTIONS = {"add": np.add, "max": np.maximum, "min": np.minimum}


def scattered(name, dtype, order):
    def build():
        atomic = getattr(T, f"atomic_{name}")

        @T.prim_func
        def k(X: T.Tensor((256,), "int32"), V: T.Tensor((256,), dtype), O: T.Tensor((8,), dtype)):
            with T.Kernel(2, threads=128) as b:
                t = T.get_thread_binding()
                atomic(O[X[b * 128 + t]], V[b * 128 + t], memory_order=order)

        return k

    return build


def expected(function):
    def of(X, V, O):
        out = O.copy()
        function.at(out, X, V)
        return {"O": out}

    return of


for name, function in FUNCTIONS.items():
    for dtype in ("int32", "float32", "int64"):
        values = V.astype(dtype)
        add(
            f"{name}_{dtype}",
            scattered(name, dtype, None),
            {"X": X, "V": values, "O": np.zeros(8, dtype)},
            expected(function),
            [f"atomic_{name}"],
        )
    add(
        f"{name}_relaxed",
        scattered(name, "int32", "relaxed"),
        {"X": X, "V": V, "O": np.zeros(8, np.int32)},
        expected(function),
        [f"atomic_{name}"],
    )


@snippet(
    lambda X, O: {"O": O | np.bitwise_or.reduce(X, axis=0)},
    X=integers(0, 1 << 30, 128, 4) & integers(0, 1 << 30, 128, 4)[::-1],
    O=np.int32([1, 0, 2, 0]),
)
def bits():
    @T.prim_func
    def k(X: T.Tensor((128, 4), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            for i in T.serial(4):
                T.atomic_or(O[i], X[t, i])

    return k


@snippet(lambda X, O: {"O": np.bincount(X, minlength=8).astype(np.int32) + O}, X=X, O=np.zeros(8, np.int32))
def on_shared_memory():
    @T.prim_func
    def k(X: T.Tensor((256,), "int32"), O: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=256):
            t = T.get_thread_binding()
            s = T.alloc_shared((8,), "int32")
            T.clear(s)
            T.sync_threads()
            T.atomic_add(s[X[t]], 1)
            T.sync_threads()
            if t < 8:
                T.atomic_add(O[t], s[t])

    return k


@snippet(lambda N: {"N": np.int32([128]), "S": np.ones(128, np.int32)}, N=np.zeros(1, np.int32))
def previous_values_are_unique():
    @T.prim_func
    def k(N: T.Tensor((1,), "int32"), S: T.Tensor((128,), "int32")):
        with T.Kernel(2, threads=64):
            ticket = T.atomic_add(N[0], 1, return_prev=True)
            S[ticket] = 1

    return k


@snippet(lambda O, P: {"O": np.int32([9, -9]), "P": np.int32([4, 4])}, O=np.int32([4, 4]), P=np.zeros(2, np.int32))
def previous_of_max_and_min():
    @T.prim_func
    def k(O: T.Tensor((2,), "int32"), P: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=1):
            P[0] = T.atomic_max(O[0], 9, return_prev=True)
            P[1] = T.atomic_min(O[1], -9, return_prev=True)

    return k


@snippet(lambda A, O: {"O": O + A}, A=normal(64), O=normal(64)[::-1].copy())
def pairs_and_fours():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=8):
            t = T.get_thread_binding()
            T.atomic_addx2(O[t * 8], A[t * 8])
            T.atomic_addx2(O[t * 8 + 2], A[t * 8 + 2])
            T.atomic_addx4(O[t * 8 + 4], A[t * 8 + 4])

    return k


@snippet(lambda A, O: {"O": O + A}, A=normal(16, 32), O=normal(16, 32)[::-1].copy())
def whole_tiles():
    @T.prim_func
    def k(A: T.Tensor((16, 32), "float32"), O: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 32), "float32")
            T.copy(A, a)
            T.atomic_add(O, a)

    return k


@snippet(
    lambda A, O, P: {"O": np.maximum(O, A), "P": np.minimum(P, A)},
    A=normal(16, 32),
    O=normal(16, 32)[::-1].copy(),
    P=np.zeros((16, 32), np.float32),
)
def whole_tiles_max_min():
    @T.prim_func
    def k(A: T.Tensor((16, 32), "float32"), O: T.Tensor((16, 32), "float32"), P: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((16, 32), "float32")
            T.copy(A, a)
            T.atomic_max(O, a)
            T.atomic_min(P, a)

    return k


@snippet(lambda F, O: {"F": np.int32([7]), "O": np.int32([7])}, F=np.zeros(1, np.int32), O=np.zeros(1, np.int32))
def load_and_store():
    @T.prim_func
    def k(F: T.Tensor((1,), "int32"), O: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            T.atomic_store(F[0], 7, memory_order="release")
            O[0] = T.atomic_load(F[0], memory_order="acquire")

    return k


@snippet(
    lambda A, O: {"O": (O.astype(np.float64) + 16 * A.astype(np.float64)).astype(np.float16)},
    A=np.arange(8).astype(np.float16),
    O=np.zeros(8, np.float16),
    allow=("TL208",),
)
def halves():
    @T.prim_func
    def k(A: T.Tensor((8,), "float16"), O: T.Tensor((8,), "float16")):
        with T.Kernel(16, threads=8):
            t = T.get_thread_binding()
            T.atomic_add(O[t], A[t])

    return k

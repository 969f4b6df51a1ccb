"""Reductions, scans, reducers, quantifiers."""

import numpy as np
import tilelang.language as T
from snippet import add, integers, normal, snippet

F = normal(8, 48)
B = integers(0, 1 << 20, 8, 48)
KINDS = {
    "reduce_sum": (lambda a: a.astype(np.float64).sum(1).astype(np.float32), F), "reduce_max": (lambda a: a.max(1), F),
    "reduce_min": (lambda a: a.min(1), F), "reduce_abssum": (lambda a: np.abs(a).astype(np.float64).sum(1).astype(np.float32), F),
    "reduce_absmax": (lambda a: np.abs(a).max(1), F), "reduce_bitand": (np.bitwise_and.reduce, B), "reduce_bitor": (np.bitwise_or.reduce, B),
    "reduce_bitxor": (np.bitwise_xor.reduce, B),
}  # fmt: skip


def reduction(name, dtype, scope):
    def build():
        reduce = getattr(T, name)

        @T.prim_func
        def k(A: T.Tensor((8, 48), dtype), O: T.Tensor((8,), dtype)):
            with T.Kernel(1, threads=64):
                a = T.alloc_fragment((8, 48), dtype) if scope == "fragment" else T.alloc_shared((8, 48), dtype)
                r = T.alloc_fragment((8,), dtype) if scope == "fragment" else T.alloc_shared((8,), dtype)
                T.copy(A, a)
                reduce(a, r, dim=1)
                T.copy(r, O)

        return k

    return build


for name, (reference, values) in KINDS.items():
    for scope in ("fragment", "shared"):
        wide = (lambda A, r=reference: {"O": r(A, axis=1)}) if name.startswith("reduce_bit") else (lambda A, r=reference: {"O": r(A)})
        add(f"{name}_{scope}", reduction(name, str(values.dtype), scope), {"A": values}, wide, [name], rtol=1e-5, atol=1e-5)


@snippet(lambda A: {"O": np.maximum(A.max(1), 1.5)}, A=normal(8, 48))
def into_what_is_there():
    @T.prim_func
    def k(A: T.Tensor((8, 48), "float32"), O: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((8, 48), "float32")
            r = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.fill(r, 1.5)
            T.reduce(a, r, "max", 1, False)
            T.copy(r, O)

    return k


def with_nan():
    a = normal(8, 48)
    a[2, 5] = np.nan
    return a


@snippet(lambda A: {"O": np.max(A, 1), "P": np.fmax.reduce(A, axis=1)}, A=with_nan(), allow=("TL301",))
def nan_stays_or_is_skipped():
    @T.prim_func
    def k(A: T.Tensor((8, 48), "float32"), O: T.Tensor((8,), "float32"), P: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((8, 48), "float32")
            r = T.alloc_fragment((8,), "float32")
            q = T.alloc_fragment((8,), "float32")
            T.copy(A, a)
            T.reduce_max(a, r, dim=1, nan_propagate=True)
            T.reduce_max(a, q, dim=1)
            T.copy(r, O)
            T.copy(q, P)

    return k


def scan(name, dim, reverse):
    def build():
        operation = getattr(T, name)

        @T.prim_func
        def k(A: T.Tensor((8, 48), "float32"), O: T.Tensor((8, 48), "float32")):
            with T.Kernel(1, threads=64):
                a = T.alloc_shared((8, 48), "float32")
                b = T.alloc_shared((8, 48), "float32")
                T.copy(A, a)
                operation(a, b, dim=dim, reverse=reverse)
                T.copy(b, O)

        return k

    return build


for name, reference in {"cumsum": np.cumsum, "cummax": np.maximum.accumulate}.items():
    for dim in (0, 1):
        for reverse in (False, True):
            turn = (lambda x, d=dim: np.flip(x, d)) if reverse else (lambda x: x)
            add(f"{name}_{dim}{'_reverse' if reverse else ''}", scan(name, dim, reverse), {"A": F},
                lambda A, r=reference, d=dim, t=turn: {"O": t(r(t(A), d))}, [name], rtol=1e-4, atol=1e-5)  # fmt: skip


@snippet(
    lambda A: {"O": A.astype(np.float64).sum(0).astype(np.float32), "M": np.float32([A.max()])}, A=normal(16, 32), rtol=1e-4, atol=1e-5
)
def reducers():
    @T.prim_func
    def k(A: T.Tensor((16, 32), "float32"), O: T.Tensor((32,), "float32"), M: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            total = T.alloc_reducer((32,), "float32", "sum")
            top = T.alloc_reducer((1,), "float32", "max")
            out = T.alloc_fragment((32,), "float32")
            most = T.alloc_fragment((1,), "float32")
            T.reducer_init(total)
            T.reducer_init(top)
            for i, j in T.Parallel(16, 32):
                T.reducer_update(total[j], A[i, j])
                T.reducer_update(top[0], A[i, j])
            T.finalize_reducer(total, out)
            T.finalize_reducer(top, most)
            T.copy(out, O)
            T.copy(most, M)

    return k


@snippet(lambda A: {"O": np.int32([(A[0] > 0).any(), (A[0] > 0).all(), (A[1] > 0).any(), (A[1] > 0).all(), (A[2] > 0).any(), (A[2] > 0).all()])},
         A=np.stack([np.ones(16, np.int32), np.r_[np.ones(15), 0].astype(np.int32), np.zeros(16, np.int32)]))  # fmt: skip
def quantifiers():
    @T.prim_func
    def k(A: T.Tensor((3, 16), "int32"), O: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=1):
            a = T.alloc_shared((16,), "bool")
            for i in T.serial(3):
                for j in T.Parallel(16):
                    a[j] = A[i, j] > 0
                O[i * 2] = T.cast(T.any_of(a), "int32")
                O[i * 2 + 1] = T.cast(T.all_of(a), "int32")

    return k


@snippet(lambda A: {"O": A.sum(1, keepdims=True, dtype=np.float64).astype(np.float32)}, A=normal(2, 8, 16), rtol=1e-5, atol=1e-5)
def middle_axis_kept():
    @T.prim_func
    def k(A: T.Tensor((2, 8, 16), "float32"), O: T.Tensor((2, 1, 16), "float32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_fragment((2, 8, 16), "float32")
            r = T.alloc_fragment((2, 1, 16), "float32")
            T.copy(A, a)
            T.reduce_sum(a, r, dim=1)
            T.copy(r, O)

    return k

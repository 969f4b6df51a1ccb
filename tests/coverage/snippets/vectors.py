"""Packed pairs, vectors of loads and stores, lanes."""

import ml_dtypes
import numpy as np
import tilelang.language as T
from snippet import add, integers, normal, snippet

PAIRS = {
    "add2": (lambda a, b: a + b, 2), "sub2": (lambda a, b: a - b, 2), "mul2": (lambda a, b: a * b, 2), "max2": (np.maximum, 2),
    "min2": (np.minimum, 2), "abs2": (np.abs, 1), "fma2": (lambda a, b: a * b + a, 3),
}  # fmt: skip


def packed(name, dtype, operands):
    def build():
        function = getattr(T, name)
        double = f"{dtype}x2"

        @T.prim_func
        def k(A: T.Tensor((64,), dtype), B: T.Tensor((64,), dtype), O: T.Tensor((64,), dtype)):
            with T.Kernel(1, threads=32):
                t = T.get_thread_binding()
                a = T.alloc_local((2,), dtype)
                b = T.alloc_local((2,), dtype)
                for i in T.vectorized(2):
                    a[i] = A[t * 2 + i]
                    b[i] = B[t * 2 + i]
                x = T.reinterpret(a[0:2], double) if False else a[T.Ramp(0, 1, 2)]
                y = b[T.Ramp(0, 1, 2)]
                O[T.Ramp(t * 2, 1, 2)] = function(*(x, y, x)[:operands])

        return k

    return build


for name, (reference, operands) in PAIRS.items():
    for dtype, kind in {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}.items():
        a, b = normal(64).astype(kind), normal(64)[::-1].astype(kind)
        wide = lambda x: x.astype(np.float64)  # noqa: E731
        want = reference(wide(a)).astype(kind) if operands == 1 else reference(wide(a), wide(b)).astype(np.float32).astype(kind)
        add(f"{name}_{dtype}", packed(name, dtype, operands), {"A": a, "B": b}, {"O": want}, [name, "Ramp"], rtol=1e-6)


@snippet(lambda A: {"O": A + 1}, A=normal(64))
def broadcast_and_ramp():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            O[T.Ramp(t * 4, 1, 4)] = A[T.Ramp(t * 4, 1, 4)] + T.Broadcast(T.float32(1), 4)

    return k


@snippet(lambda A: {"O": A + 1}, A=normal(64))
def slices_are_vectors():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=1):
            x = T.alloc_local((4,), "float32")
            for i in T.serial(16):
                x[0:4] = T.Broadcast(T.float32(1), 4)
                for j in T.vectorized(4):
                    O[i * 4 + j] = A[i * 4 + j] + x[j]

    return k


@snippet(lambda A: {"O": A.reshape(16, 4)[:, ::-1].reshape(-1).copy()}, A=normal(64))
def lanes_and_shuffles():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            v = A[T.Ramp(t * 4, 1, 4)]
            O[T.Ramp(t * 4, 1, 4)] = T.Shuffle([v], [3, 2, 1, 0])

    return k


@snippet(lambda A: {"O": A.reshape(16, 4)[:, 2].copy()}, A=normal(64))
def one_lane():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            O[t] = T.extract_lane(A[T.Ramp(t * 4, 1, 4)], 2)

    return k


@snippet(lambda A: {"O": A.reshape(16, 2, 2)[:, ::-1].reshape(-1).copy()}, A=normal(64))
def halves_of_vectors():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            v = A[T.Ramp(t * 4, 1, 4)]
            O[T.Ramp(t * 4, 1, 4)] = T.vectorcombine("float32x4", T.vectorhigh("float32x2", v), T.vectorlow("float32x2", v))

    return k


def transfer(load, store, bits, scope):
    lanes = bits // 32

    def build():
        read, write = getattr(T, load), getattr(T, store)

        @T.prim_func
        def k(A: T.Tensor((64,), "uint32"), O: T.Tensor((64,), "uint32")):
            with T.Kernel(1, threads=64 // lanes):
                t = T.get_thread_binding()
                if scope == "global":
                    write(O[t * lanes], read(A[t * lanes]))
                else:
                    s = T.alloc_shared((64,), "uint32")
                    r = T.alloc_shared((64,), "uint32")
                    for i in T.serial(lanes):
                        s[t * lanes + i] = A[t * lanes + i]
                    write(r[t * lanes], read(s[t * lanes]))
                    for i in T.serial(lanes):
                        O[t * lanes + i] = r[t * lanes + i]

        return k

    return build


WORDS = integers(0, 2**31 - 1, 64).astype(np.uint32)
for bits in (32, 64, 128, 256):
    add(f"global_{bits}", transfer(f"ldg{bits}", f"stg{bits}", bits, "global"), {"A": WORDS}, {"O": WORDS}, [f"ldg{bits}", f"stg{bits}"])
    if bits < 256:
        add(
            f"shared_{bits}", transfer(f"lds{bits}", f"sts{bits}", bits, "shared"), {"A": WORDS}, {"O": WORDS}, [f"lds{bits}", f"sts{bits}"]
        )


@snippet(lambda A: {"O": A * 2}, A=normal(64))
def cached_load():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = getattr(T, "__ldg")(A[t]) * 2

    return k


@snippet(lambda A: {"O": A * 2}, A=normal(64), covers=["__ldg"])
def cached_load_of_a_buffer():
    load = getattr(T, "__ldg")

    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = load(A, t) * 2

    return k

"""Integers and bits."""

import numpy as np
import tilelang.language as T
from snippet import elementwise, integers, snippet

I = np.concatenate([integers(-1000, 1000, 60), np.int32([0, 1, -1, 2**31 - 1])])
J = np.concatenate([integers(1, 37, 62), np.int32([1, 7])])
U = rng_u = np.concatenate([np.random.default_rng(1).integers(0, 2**32, 60, dtype=np.uint32), np.uint32([0, 1, 2**31, 2**32 - 1])])
SHIFT = (np.arange(64, dtype=np.int32) * 7) % 31


def truncated(x, y):
    return (np.sign(x) * (np.abs(x.astype(np.int64)) // y)).astype(np.int32)


BINARY = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "floordiv": np.floor_divide, "floormod": np.mod,
    "truncdiv": truncated, "truncmod": lambda x, y: (x - truncated(x, y) * y).astype(np.int32), "max": np.maximum, "min": np.minimum,
    "ceildiv": lambda x, y: -(-x.astype(np.int64) // y), "cdiv": lambda x, y: -(-x.astype(np.int64) // y),
    "align_up": lambda x, y: -(-x.astype(np.int64) // y) * y,
}  # fmt: skip
for name, reference in BINARY.items():
    elementwise(f"int_{name}", getattr(T, name), lambda x, y, r=reference: r(x, y).astype(np.int32), I[:63], J[:63], names=[name])
elementwise("bitwise_not", T.bitwise_not, np.invert, I)
elementwise("shift_left", T.shift_left, lambda x, s: (x.astype(np.int64) << s).astype(np.int32), np.abs(I[:60]) % 2, SHIFT[:60])
elementwise("shift_right", T.shift_right, np.right_shift, I, SHIFT)
elementwise("shift_right_unsigned", T.shift_right, np.right_shift, U, SHIFT.astype(np.uint32), names=["shift_right"])
elementwise("popcount", T.popcount, lambda x: np.array([bin(v).count("1") for v in x.tolist()], np.int32), U)
elementwise(
    "clz", T.clz, lambda x: np.array([32 - v.bit_length() for v in x.tolist()], np.int32), U.astype(np.int32).view(np.uint32) & 0x7FFFFFFF
)
elementwise("__ffs", getattr(T, "__ffs"), lambda x: np.array([(v & -v).bit_length() for v in x.tolist()], np.int32), I)
elementwise("int_abs", T.abs, np.abs, I, names=["abs"])


def nth_set(mask, base, offset):
    """The position of the offset-th set bit from base on."""
    out = []
    for m, b, o in zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True):
        places = [p for p in range(b, 32) if m >> p & 1] if o > 0 else [p for p in range(b, -1, -1) if m >> p & 1]
        out.append(places[abs(o) - 1] if o and len(places) >= abs(o) else (b if o == 0 and m >> b & 1 else 2**32 - 1))
    return np.array(out, np.uint32)


elementwise(
    "__fns", getattr(T, "__fns"), nth_set, U, (np.arange(64) % 32).astype(np.int32), ((np.arange(64) % 7) - 3).astype(np.int32), out="uint32",
)  # fmt: skip
for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
    a = np.random.default_rng(2).integers(0, 100, 64).astype(kind)
    b = np.random.default_rng(3).integers(1, 60, 64).astype(kind)
    elementwise(f"arithmetic_{kind}", lambda x, y: (x * y + x - y) % 7 + x // y, lambda x, y: (x * y + x - y) % 7 + x // y, a, b,
                names=["Add", "Sub", "Mul", "FloorDiv", "FloorMod"])  # fmt: skip
    elementwise(f"compare_{kind}", lambda x, y: (x < y) | ((x >= y) & (x != y)), lambda x, y: (x < y) | ((x >= y) & (x != y)), a, b,
                names=["LT", "GE", "NE"])  # fmt: skip
elementwise("wraps_unsigned", lambda x, y: x - y, lambda x, y: x - y, U, U[::-1].copy(), names=["Sub"])
elementwise("python_operators", lambda x, y: (x & y) ^ (x | ~y) + (x << 1), lambda x, y: (x & y) ^ (x | ~y) + (x << 1), I[:60], J[:60],
            names=["bitwise_and", "bitwise_or"])  # fmt: skip
elementwise("logic", lambda x, y: T.And(x > 0, T.Or(y > 5, T.Not(T.EQ(x, 7)))), lambda x, y: (x > 0) & ((y > 5) | ~(x == 7)), I, J,
            names=["And", "Or", "Not", "EQ"])  # fmt: skip


@snippet(lambda: {"O": np.array([2**31 - 1, -(2**31), 127, 255], np.int64)})
def limits():
    @T.prim_func
    def k(O: T.Tensor((4,), "int64")):
        with T.Kernel(1, threads=32):
            O[0] = T.cast(T.max_value("int32"), "int64")
            O[1] = T.cast(T.min_value("int32"), "int64")
            O[2] = T.cast(T.max_value("int8"), "int64")
            O[3] = T.cast(T.max_value("uint8"), "int64")

    return k


@snippet(lambda A: A.reshape(4, 6)[::-1].reshape(-1), A=integers(0, 100, 24))
def coordinates():
    @T.prim_func
    def k(A: T.Tensor((24,), "int32"), O: T.Tensor((24,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(24):
                at = T.index_to_coordinates(i, (4, 6))
                O[i] = A[(3 - at[0]) * 6 + at[1]]

    return k


@snippet(lambda A, B, C: {"C": np.int32([C[0] + A.astype(np.int32) @ B.astype(np.int32)])}, A=integers(-128, 128, 4, dtype=np.int8),
         B=integers(-128, 128, 4, dtype=np.int8)[::-1].copy(), C=np.int32([5]))  # fmt: skip
def dot_of_four():
    @T.prim_func
    def k(A: T.Tensor((4,), "int8"), B: T.Tensor((4,), "int8"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            a = T.alloc_local((4,), "int8")
            b = T.alloc_local((4,), "int8")
            c = T.alloc_local((1,), "int32")
            for i in T.serial(4):
                a[i] = A[i]
                b[i] = B[i]
            c[0] = C[0]
            T.dp4a(a, b, c)
            C[0] = c[0]

    return k


elementwise("q_multiply_shift", lambda x, y: T.q_multiply_shift(x, y, 31, 0),
            lambda x, y: ((x.astype(np.int64) * y + (1 << 30)) >> 31).astype(np.int32), I[:60] * 1000, J[:60] * 10_000_000)  # fmt: skip

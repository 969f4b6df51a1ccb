"""Casts among all dtypes, bit patterns, rounding."""

import ml_dtypes
import numpy as np
import tilelang.language as T
from snippet import elementwise, snippet

FLOATS = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
}  # fmt: skip
SMALLER = {
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz, "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float8_e3m4": ml_dtypes.float8_e3m4, "float8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "float6_e2m3fn": ml_dtypes.float6_e2m3fn, "float6_e3m2fn": ml_dtypes.float6_e3m2fn, "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
INTS = {k: np.dtype(k) for k in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")}
EXACT = np.float64([0, 1, -1, 2, -2, 0.5, -0.5, 4, -4, 1.5, -1.5, 3, -3, 0.25, 6, -6] * 4)  # every float8 has these
WHOLE = np.float64([0, 1, 2, 3, 4, 6, 1, 2] * 8)  # and every integer these

for source, from_kind in {**FLOATS, **SMALLER, **INTS, "bool": np.dtype(bool)}.items():
    whole = source in INTS or source == "bool"
    base = np.abs(EXACT).clip(0.25) if source == "float8_e8m0fnu" else WHOLE if whole else EXACT
    values = base.astype(np.float32).astype(from_kind) if not whole else base.astype(from_kind)
    target = "float32" if source != "float32" else "float64"
    elementwise(
        f"{source}_to_{target}", lambda x, t=target: T.cast(x, t), lambda x, t=target: x.astype(np.float32).astype(t), values,
        names=["cast", source] if hasattr(T, source) else ["cast"],
    )  # fmt: skip

for target, to_kind in FLOATS.items():
    if target in ("float32", "float64"):
        continue
    bits = np.random.default_rng(4).standard_normal(64).astype(np.float32) * 3  # rounded to nearest, ties to even
    elementwise(f"float32_to_{target}", lambda x, t=target: T.cast(x, t), lambda x, k=to_kind: x.astype(k), bits, names=["cast", target])
    elementwise(f"float64_to_{target}", lambda x, t=target: T.cast(x, t), lambda x, k=to_kind: x.astype(np.float32).astype(k), bits.astype(np.float64),
                names=["cast", target])  # fmt: skip
for target, to_kind in INTS.items():
    elementwise(f"float32_to_{target}", lambda x, t=target: T.cast(x, t), lambda x, k=to_kind: np.trunc(x).astype(k),
                np.abs(np.float32(EXACT)) + np.float32(0.75), names=["cast", target])  # fmt: skip
    elementwise(f"int32_to_{target}", lambda x, t=target: T.cast(x, t), lambda x, k=to_kind: x.astype(k), np.arange(-32, 32, dtype=np.int32) * 77,
                names=["cast", target])  # fmt: skip
elementwise(
    "int8_to_float16", lambda x: T.cast(x, "float16"), lambda x: x.astype(np.float16), np.arange(-64, 64, dtype=np.int8), names=["cast"]
)
elementwise(
    "large_uint64_to_float32",
    lambda x: T.cast(x, "float32"),
    lambda x: x.astype(np.float32),
    np.uint64([0, 1, 2**63, 2**64 - 1] * 8),
    names=["cast"],
)
elementwise("to_bool", lambda x: T.cast(x, "bool"), lambda x: x != 0, np.float32([0, 1, -2, 0.5, -0.0, np.nan] * 6), names=["cast", "bool"])
#: T.float32(x) and the like
for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "bfloat16"):
    kind = FLOATS.get(name) or INTS[name]
    elementwise(
        f"call_{name}", getattr(T, name), lambda x, k=kind: x.astype(np.float32).astype(k), np.arange(64, dtype=np.int32), names=[name]
    )
for alias, name in {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "short": "int16",
}.items():
    kind = FLOATS.get(name) or INTS[name]
    elementwise(
        f"alias_{alias}",
        lambda x, a=alias: T.cast(x, getattr(T, a)),
        lambda x, k=kind: x.astype(k),
        np.arange(64, dtype=np.uint8),
        names=[alias],
    )
elementwise("astype", lambda x: x.astype("int64"), lambda x: x.astype(np.int64), np.arange(-32, 32, dtype=np.int32), names=["cast"])
#: beyond the range of float8 the device saturates
elementwise("saturates_e5m2", lambda x: T.cast(x, "float8_e5m2"), lambda x: np.clip(x, -57344, 57344).astype(ml_dtypes.float8_e5m2),
            np.float32([1e6, -1e6, 57344, 60000] * 8), names=["cast"], allow=("TL302",))  # fmt: skip
elementwise("saturates_e4m3", lambda x: T.cast(x, "float8_e4m3fn"), lambda x: np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn),
            np.float32([1e6, -1e6, 448, 500] * 8), names=["cast"], allow=("TL302",))  # fmt: skip
elementwise(
    "float_bits", lambda x: T.reinterpret(x, "int32"), lambda x: x.view(np.int32), np.float32([1, -1, 0.5, 3e38] * 8), names=["reinterpret"]
)
elementwise("bits_float", lambda x: T.reinterpret(x, "float32"), lambda x: x.view(np.float32), np.uint32([0x3F800000, 0x40490FDB] * 16),
            names=["reinterpret"])  # fmt: skip
elementwise(
    "half_bits",
    lambda x: T.reinterpret(x, "uint16"),
    lambda x: x.view(np.uint16),
    np.float16([1, -2, 0.1, 65504] * 8),
    names=["reinterpret"],
)


@snippet(lambda A: {"O": A.astype(np.float32)}, A=np.array([-8, -3, 0, 7, 1, 2, 3, -1] * 8, ml_dtypes.int4))
def int4_tensor():
    @T.prim_func
    def k(A: T.Tensor((64,), "int4"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i], "float32")

    return k


@snippet(lambda A: {"O": A.astype(ml_dtypes.float4_e2m1fn)}, A=np.float32([0, 0.5, 1, 1.5, 2, 3, 4, 6] * 8))
def float4_store():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), T.float4_e2m1fn)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i], T.float4_e2m1fn)

    return k


e4m3 = np.float32(EXACT).astype(ml_dtypes.float8_e4m3fn)


@snippet(lambda A: {"O": A.astype(np.float32), "Q": (A.astype(np.float32) * 100).clip(-448, 448).astype(A.dtype)}, covers=["float8_e4m3"],
         allow=("TL302",), A=e4m3)  # fmt: skip
def e4m3_is_the_one_of_cuda():
    @T.prim_func
    def k(A: T.Tensor((64,), T.float8_e4m3), O: T.Tensor((64,), "float32"), Q: T.Tensor((64,), T.float8_e4m3)):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i], "float32")
                Q[i] = T.cast(T.cast(A[i], "float32") * 100.0, T.float8_e4m3)

    return k

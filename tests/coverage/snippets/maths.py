"""Functions of one, two and three floats."""

import math

import ml_dtypes
import numpy as np
import tilelang.language as T
from snippet import elementwise, normal, snippet, uniform

X = np.concatenate([uniform(-3, 3, 60), np.float32([0.0, -0.0, 1.0, -1.0])])
POSITIVE = np.concatenate([uniform(0.01, 50, 62), np.float32([1.0, 4.0])])
UNIT = np.concatenate([uniform(-0.999, 0.999, 62), np.float32([0.0, 0.5])])
ODD = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3e38] * 4)
f64 = np.float64


def each(fn):
    """A function of Python floats over an array."""
    return lambda *a: np.array([fn(*map(float, v)) for v in zip(*a, strict=True)])


#: name → (reference in float64, inputs)
UNARY = {
    "exp": (np.exp, X), "exp2": (np.exp2, X), "exp10": (lambda x: 10.0**x, X), "log": (np.log, POSITIVE), "log2": (np.log2, POSITIVE),
    "log10": (np.log10, POSITIVE), "log1p": (np.log1p, POSITIVE), "sin": (np.sin, X), "cos": (np.cos, X), "tan": (np.tan, X),
    "asin": (np.arcsin, UNIT), "acos": (np.arccos, UNIT), "atan": (np.arctan, X), "sinh": (np.sinh, X), "cosh": (np.cosh, X),
    "tanh": (np.tanh, X), "asinh": (np.arcsinh, X), "acosh": (np.arccosh, 1 + POSITIVE), "atanh": (np.arctanh, UNIT),
    "erf": (each(math.erf), X), "sqrt": (np.sqrt, POSITIVE), "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), X),
    "__exp": (np.exp, X), "__exp10": (lambda x: 10.0**x, X), "__log": (np.log, POSITIVE), "__log2": (np.log2, POSITIVE),
    "__log10": (np.log10, POSITIVE), "__sin": (np.sin, X), "__cos": (np.cos, X), "__tan": (np.tan, X), "fast_rcp": (lambda x: 1 / x, POSITIVE),
    "ieee_frcp": (lambda x: 1 / x, POSITIVE), "ieee_frsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE), "ieee_fsqrt": (np.sqrt, POSITIVE),
}  # fmt: skip
for name, (reference, values) in UNARY.items():
    elementwise(name, getattr(T, name), lambda x, r=reference: r(x.astype(f64)).astype(np.float32), values, rtol=3e-6, atol=1e-6)

#: name → exact reference
EXACT = {
    "abs": np.abs, "fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "nearbyint": np.rint,
}  # fmt: skip
for name, reference in EXACT.items():
    elementwise(name, getattr(T, name), reference, np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.51, 7.49, 1e9] * 4))
elementwise(
    "round_away", lambda x: T.round(x, rounding_mode="ties-away-from-zero"), lambda x: np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x),
    np.float32([0.5, 1.5, 2.5, -0.5, -1.5, -2.25, 7.25, 100.0] * 4), names=["round"],
)  # fmt: skip
for name, reference in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items():
    elementwise(name, getattr(T, name), reference, ODD)

BINARY = {
    "atan2": np.arctan2, "copysign": np.copysign, "fmod": np.fmod, "hypot": np.hypot, "max": np.maximum, "min": np.minimum, "fmul": np.multiply,
    "ieee_add": np.add, "ieee_sub": np.subtract, "ieee_mul": np.multiply, "ieee_fdiv": np.divide,
}  # fmt: skip
for name, reference in BINARY.items():
    elementwise(
        name, getattr(T, name), lambda x, y, r=reference: r(x.astype(f64), y.astype(f64)).astype(np.float32), X, uniform(0.5, 2, 64)[::-1].copy(),
        rtol=1e-6,
    )  # fmt: skip
elementwise("pow", T.pow, lambda x, y: np.power(x.astype(f64), y).astype(np.float32), POSITIVE, UNIT, rtol=3e-6)
elementwise("nextafter", T.nextafter, np.nextafter, X, X[::-1].copy())
elementwise("ldexp", T.ldexp, np.ldexp, X, np.arange(64, dtype=np.int32) - 32)


def fused(x, y, z):
    return (x.astype(f64) * y.astype(f64) + z.astype(f64)).astype(np.float32)


elementwise("fma", T.fma, fused, X, UNIT, POSITIVE, rtol=1e-7)
elementwise("ieee_fmaf", T.ieee_fmaf, fused, X, UNIT, POSITIVE, rtol=1e-7)
elementwise("clamp", T.clamp, lambda x, a, b: np.minimum(np.maximum(x, a), b), X, UNIT - 1, UNIT + 1)


def directed(a, b, mode):
    """The sum rounded up, down or towards zero, from the exact sum."""
    out = []
    for x, y in zip(a.astype(f64), b.astype(f64), strict=True):
        exact = x + y  # exact in float64 for these magnitudes
        near = np.float32(exact)
        up = near if near >= exact else np.nextafter(near, np.float32(np.inf))
        down = near if near <= exact else np.nextafter(near, np.float32(-np.inf))
        out.append({"ru": up, "rd": down, "rz": down if exact > 0 else up}[mode])
    return np.array(out, np.float32)


for mode in ("ru", "rd", "rz"):
    elementwise(
        f"ieee_add_{mode}", lambda x, y, m=mode: T.ieee_add(x, y, m), lambda x, y, m=mode: directed(x, y, m), X, UNIT, names=["ieee_add"]
    )

HALF = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
for label, kind in HALF.items():
    for name in ("exp", "sqrt", "tanh", "sigmoid"):
        values = np.abs(normal(64)).astype(kind)
        reference = UNARY[name][0]
        elementwise(
            f"{name}_{label}", getattr(T, name), lambda x, r=reference, k=kind: r(x.astype(f64)).astype(k), values,
            names=[name], rtol=2e-3 if kind is np.float16 else 1e-2,
        )  # fmt: skip
    elementwise(f"max_{label}", T.max, np.maximum, normal(64).astype(kind), normal(64)[::-1].astype(kind), names=["max"])
    elementwise(
        f"add_{label}", lambda x, y: x + y, lambda x, y: x + y, normal(64).astype(kind), normal(64)[::-1].astype(kind), names=["Add"]
    )
    elementwise(
        f"divide_{label}", lambda x, y: x / y, lambda x, y: x / y, normal(64).astype(kind), uniform(1, 2, 64).astype(kind), names=["Div"]
    )
elementwise("exp_double", T.exp, np.exp, normal(64, dtype=f64), names=["exp"], rtol=1e-14)
elementwise("pow_of_int", lambda x: T.pow(x, 3), lambda x: x * x * x, X, names=["pow"], rtol=1e-6)


@snippet(lambda: {"O": np.float32([np.inf, -np.inf, np.finfo(np.float32).max, np.finfo(np.float32).min])})
def limits():
    @T.prim_func
    def k(O: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            O[0] = T.infinity("float32")
            O[1] = -T.infinity("float32")
            O[2] = T.max_value("float32")
            O[3] = T.min_value("float32")

    return k


@snippet(lambda A: A.astype(np.float32) * np.float32(np.log2(np.e)), A=normal(64), rtol=1e-6)
def python_numbers():
    """Python's own floats are constants."""

    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                O[i] = A[i] * math.log2(math.e)

    return k

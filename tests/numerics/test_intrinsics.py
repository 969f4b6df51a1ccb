"""Pure functions against math, torch and exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from tilelab import ir
from tilelab.sim import _special as special
from tilelab.sim import dtypes, intrinsics

RNG = np.random.Generator(np.random.PCG64(3))


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def call(op: str, *args: np.ndarray | str, dtype: str = "float32", arg_dtype: str | None = None) -> np.ndarray:
    """Resolve and run ``op`` as the simulator does, rounding the result."""
    exprs = tuple(ir.Str(dtype="handle", value=a) if isinstance(a, str) else ir.Var(dtype=arg_dtype or dtype, name="x") for a in args)
    resolved = intrinsics.resolve(ir.Call(dtype=dtype, op=op, args=exprs))
    assert resolved is not None
    fn, operands = resolved
    values = [np.asarray(a) for a in args if not isinstance(a, str)]
    assert len(operands) == len(values)
    return dtypes.round_to(np.asarray(fn(*values)), dtype)


def test_erf_is_accurate_in_float64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 40_001), 10.0 ** np.linspace(-300, 1, 500), [0.0, 1.0, -1.0, np.nextafter(1, 2), 30, 1e300]])
    want = np.array([math.erf(v) for v in x])
    got = special.erf(x)
    nonzero = want != 0
    assert np.max(np.abs(got[nonzero] / want[nonzero] - 1)) < 1e-15
    np.testing.assert_array_equal(special.erf(np.array([np.nan, np.inf, -np.inf])), [np.nan, 1, -1])
    got = special.erfc(np.linspace(-6, 26, 5000))
    want = np.array([math.erfc(v) for v in np.linspace(-6, 26, 5000)])
    assert np.max(np.abs(got / want - 1)) < 2e-15


def test_erf_in_float32_agrees_with_torch() -> None:
    x = RNG.standard_normal(100_000).astype(np.float32) * 2
    want = torch.special.erf(torch.from_numpy(x).double()).numpy()
    assert np.max(np.abs(special.erf(x) - want) / np.spacing(np.abs(want.astype(np.float32)))) <= 0.501
    assert np.copysign(1, special.erf(np.float32([-0.0])))[0] == -1


@pytest.mark.parametrize(
    "name",
    ["exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
     "atanh", "sqrt", "rsqrt", "sigmoid", "floor", "ceil", "trunc", "round", "erf"],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_elementwise_against_torch(name: str, dtype: str) -> None:
    x = (RNG.standard_normal(4000) * 4).astype(dtypes.carrier(dtype))
    x = dtypes.round_to(np.concatenate([x, np.array([0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan], x.dtype)]), dtype)
    want = getattr(torch, {"atan2": "atan2"}.get(name, name))(torch.from_numpy(x).double()).numpy()
    got = call(f"tirx.{name}", x, dtype=dtype)
    assert got.dtype == dtypes.carrier(dtype)
    tolerance = {"float64": 4e-15, "float32": 5e-7, "float16": 2e-3, "bfloat16": 8e-3}[dtype]
    if dtype == "float16":
        want = np.where(np.abs(want) >= 65520, np.copysign(np.inf, want), want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=2.0**-24 if dtype == "float16" else 1e-7 if dtype != "float64" else 1e-15)


def test_exp10_and_binary_functions() -> None:
    x, y = np.float32(RNG.standard_normal((2, 1000)))
    np.testing.assert_allclose(call("tirx.exp10", x), 10.0 ** x.astype(np.float64), rtol=1e-7)
    np.testing.assert_allclose(call("tl.__exp10", x.astype(np.float64), dtype="float64"), 10.0 ** x.astype(np.float64), rtol=1e-15)
    for name, fn in (("pow", math.pow), ("fmod", math.fmod), ("hypot", math.hypot), ("atan2", math.atan2), ("copysign", math.copysign)):
        a = np.abs(x) if name == "pow" else x
        np.testing.assert_allclose(call(f"tirx.{name}", a, y), [fn(float(p), float(q)) for p, q in zip(a, y, strict=True)], rtol=1e-6)
    assert call("tirx.fmod", np.float32([-5.5]), np.float32([2]))[0] == -1.5
    assert call("tirx.ldexp", np.float32([1.5]), np.array([4], np.int32))[0] == 24


def test_rounding_functions() -> None:
    x = np.float32([0.5, 1.5, 2.5, -0.5, -2.5, 0.49999997, 8388609])
    assert call("tirx.round", x).tolist() == [0, 2, 2, 0, -2, 0, 8388609]
    assert call("tirx.nearbyint", x).tolist() == [0, 2, 2, 0, -2, 0, 8388609]
    assert call("tl.round_ties_away_from_zero", x).tolist() == [1, 2, 3, -1, -3, 0, 8388609]


def test_integer_functions() -> None:
    x = np.array([0, 1, -1, 2, 80, 2**31 - 1, -(2**31)], np.int32)
    assert call("tirx.popcount", x, dtype="int32").tolist() == [bin(v & 0xFFFFFFFF).count("1") for v in x.tolist()]
    assert call("tirx.clz", x, dtype="int32").tolist() == [32 - (v & 0xFFFFFFFF).bit_length() for v in x.tolist()]
    assert call("tl.__ffs", x, dtype="int32").tolist() == [0, 1, 1, 2, 5, 1, 32]
    y = np.array([0, 1, -1, 2**40], np.int64)
    assert call("tirx.clz", y, dtype="int32", arg_dtype="int64").tolist() == [64, 63, 0, 23]
    assert call("tl.__ffs", y, dtype="int32", arg_dtype="int64").tolist() == [0, 1, 1, 41]
    assert call("tl.__fns", np.uint32([0b1011, 0b1011, 0b1011, 0]), np.int32([0, 1, 3, 0]), np.int32([3, 1, -2, 1]), dtype="uint32").tolist() == [
        3, 1, 1, 0xFFFFFFFF]  # fmt: skip
    assert call("tirx.shift_right", np.int32([-8]), np.int32([1]), dtype="int32")[0] == -4
    assert call("tirx.shift_left", np.int32([3]), np.int32([4]), dtype="int32")[0] == 48
    assert call("tirx.bitwise_not", np.int32([5]), dtype="int32")[0] == -6


def test_predicates_clamp_and_nan_rules() -> None:
    x = np.float32([1, np.nan, np.inf])
    assert call("tirx.isnan", x, dtype="bool").tolist() == [False, True, False]
    assert call("tirx.isinf", x, dtype="bool").tolist() == [False, False, True]
    assert call("tirx.isfinite", x, dtype="bool").tolist() == [True, False, False]
    np.testing.assert_array_equal(call("tl.max_nan", x, np.float32([2, 2, 2])), [2, np.nan, np.inf])
    np.testing.assert_array_equal(call("tl.max2", x, np.float32([2, 2, 2])), [2, 2, np.inf])
    np.testing.assert_array_equal(call("tl.clamp", np.float32([5, -5, np.nan, 1]), np.float32(-1), np.float32(2)), [2, -1, np.nan, 1])
    np.testing.assert_array_equal(call("tl.clamp", np.float32([0]), np.float32(3), np.float32(2)), [2])  # low above high
    assert call("tl.infinity", "float16", dtype="float16") == np.inf
    assert call("tl.pow_of_int", np.float32([3, -2]), np.int32(3)).tolist() == [27, -8]


def exact(x: np.ndarray) -> list[Fraction]:
    return [Fraction(float(v)) for v in x]


def nearest(value: Fraction, kind: type) -> float:
    """Round an exact value to the nearest, even on ties, by the definition."""
    guess = kind(float(value))  # within an ulp or so
    candidates = [kind(guess), np.nextafter(guess, kind(-np.inf)), np.nextafter(guess, kind(np.inf))]
    return float(min(candidates, key=lambda c: (abs(Fraction(float(c)) - value), int(np.asarray(c).view(f"u{c.itemsize}")) & 1)))


def test_fma_rounds_once() -> None:
    x, y = np.float32(RNG.standard_normal((2, 600)))
    z = (-(x.astype(np.float64) * y)).astype(np.float32) * np.float32(RNG.choice([1, 1 + 2**-20, 1e-4, 1e6], 600))
    got = call("tl.fma", x, y, z)
    for g, a, b, c in zip(got, exact(x), exact(y), exact(z), strict=True):
        assert float(g) == nearest(a * b + c, np.float32)
    # a tie that double rounding gets wrong: 2^-24 above 1 plus a hair
    assert call("tl.fma", np.float32(2.0**-24), np.float32(1 + 2.0**-23), np.float32(1)) == np.float32(1 + 2.0**-23)
    assert call("tl.fma", np.float32(np.inf), np.float32(1), np.float32(1)) == np.inf
    half = call("tl.fma", np.float32(2.0**-11), np.float32(1 + 2.0**-10), np.float32(1), dtype="float16")
    assert half == 1 + 2.0**-10


@pytest.mark.parametrize("mode", ["rn", "rz", "ru", "rd"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "fdiv", "fmaf", "frcp", "fsqrt"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_ieee_forms_round_as_asked(op: str, mode: str, kind: type) -> None:
    n = 120
    x, y, z = (kind(RNG.standard_normal((3, n))) * kind(2.0) ** RNG.integers(-9, 9, (3, n))).astype(kind)
    x = np.abs(x) if op == "fsqrt" else x
    args = {"frcp": (x,), "fsqrt": (x,), "fmaf": (x, y, z)}.get(op, (x, y))
    got = call(f"tl.ieee_{op}", *args, mode, dtype=np.dtype(kind).name)
    fx, fy, fz = exact(x), exact(y), exact(z)
    for i, g in enumerate(got):
        value = Fraction(float(g))
        below, above = Fraction(float(np.nextafter(g, kind(-np.inf)))), Fraction(float(np.nextafter(g, kind(np.inf))))
        if op == "fsqrt":
            lo, mid, hi, want = below**2, value**2, above**2, fx[i]
            assert mode == "rn" or (mid <= want < hi if mode in ("rz", "rd") else lo < want <= mid)
            continue
        want = {"add": lambda: fx[i] + fy[i], "sub": lambda: fx[i] - fy[i], "mul": lambda: fx[i] * fy[i], "fdiv": lambda: fx[i] / fy[i],
                "fmaf": lambda: fx[i] * fy[i] + fz[i], "frcp": lambda: 1 / fx[i]}[op]()  # fmt: skip
        down = mode == "rd" or (mode == "rz" and want > 0)
        if mode == "rn":
            assert abs(value - want) <= min(abs(below - want), abs(above - want))
        elif down:
            assert value <= want < above
        else:
            assert below < want <= value


def test_ieee_overflow_in_each_direction() -> None:
    big = np.float32([3e38])
    assert call("tl.ieee_add", big, big, "rn")[0] == np.inf
    assert call("tl.ieee_add", big, big, "rz")[0] == np.finfo(np.float32).max
    assert call("tl.ieee_mul", -big, big, "ru")[0] == -np.finfo(np.float32).max
    assert call("tl.ieee_fdiv", np.float32([1]), np.float32([0]), "rz")[0] == np.inf


@pytest.mark.parametrize(("name", "want"), [("expf", math.exp(0.5)), ("__expf", math.exp(0.5)), ("hexp", math.exp(0.5)), ("fabsf", 0.5),
                                            ("__saturatef", 0.5), ("roundf", 1.0), ("tanhf", math.tanh(0.5)), ("erff", math.erf(0.5)),
                                            ("erfcf", math.erfc(0.5)), ("cutlass::fast_tanh", math.tanh(0.5)), ("rsqrtf", 2**0.5)])  # fmt: skip
def test_device_functions_by_name(name: str, want: float) -> None:
    assert call("tirx.call_pure_extern", name, np.float32([0.5]))[0] == pytest.approx(want, rel=1e-6)


def test_unknown_functions_are_not_resolved() -> None:
    assert intrinsics.extern("system") is None
    assert intrinsics.resolve(ir.Call(dtype="float32", op="tl.shfl_sync", args=())) is None


def test_reinterpret_and_nextafter_know_dtypes() -> None:
    assert call("tirx.reinterpret", np.float32([1.0]), dtype="int32", arg_dtype="float32")[0] == 0x3F800000
    assert call("tirx.nextafter", np.float32([1]), np.float32([2]), dtype="float16")[0] == 1 + 2.0**-10
    assert call("tirx.nextafter", np.float32([1]), np.float32([2]), dtype="bfloat16")[0] == 1 + 2.0**-7
    packed = call("tl.pack_b16", np.float32([1]), np.float32([2]), dtype="uint32", arg_dtype="float16")
    assert packed[0] == 0x4000_3C00

"""The pure functions of a kernel: what each mathematical operation of TVM and TileLang computes on carrier values.

:func:`resolve` turns a :class:`tilelab.ir.Call` into a vectorised function and the operands it wants. Functions take
and return carrier arrays (see :mod:`tilelab.sim.dtypes`) and expect ``np.errstate(all="ignore")`` around them; the
caller rounds the result to the dtype of the call. Fast forms (``tl.__exp``) compute what the accurate forms do: the
device's approximations differ in the last bits, which is a documented difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from tilelab import ir
from tilelab.sim import _special as special
from tilelab.sim import dtypes

Array: TypeAlias = np.ndarray[Any, Any]
PureFn: TypeAlias = Callable[..., Array]


def _sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def _exp10(x: Array) -> Array:
    result: Array = np.exp2(x.astype(np.float64) * np.log2(10.0)) if x.dtype == np.float32 else np.power(10.0, x)
    return result


def _rsqrt(x: Array) -> Array:
    result: Array = 1 / np.sqrt(x)
    return result


def _round_away(x: Array) -> Array:
    """To the nearest integer, ties away from zero (exact: halves below 2^52 are)."""
    floor = np.floor(np.abs(x))
    result: Array = np.copysign(floor + (np.abs(x) - floor >= 0.5), x)
    return result


def _clamp(x: Array, low: Array, high: Array) -> Array:
    result: Array = np.minimum(np.maximum(x, low), high)  # numpy's forms propagate NaN, as tl::clamp does
    return result


def _pow_of_int(x: Array, y: Array) -> Array:
    """``x`` times itself ``y − 1`` times, in the device's order."""
    result = x
    for _ in range(1, int(np.max(y))):
        result = result * x
    return result


def _ffs(x: Array) -> Array:
    lowest = x & -x
    width = x.dtype.itemsize * 8
    position = np.bitwise_count(lowest.view(f"u{width // 8}") - np.uint64(1).astype(f"u{width // 8}")) + 1
    result: Array = np.where(x == 0, 0, position).astype(np.int32)
    return result


def _fns(mask: Array, base: Array, offset: Array) -> Array:
    """CUDA's ``__fns``: the position of the ``offset``-th set bit from ``base`` on (downwards if negative)."""
    mask, base, offset = np.broadcast_arrays(mask.astype(np.uint32), base.astype(np.int64), offset.astype(np.int64))
    result = np.full(mask.shape, 0xFFFFFFFF, np.uint32)
    seen = np.zeros(mask.shape, np.int64)
    step = np.where(offset < 0, -1, 1)
    wanted = np.maximum(np.abs(offset), 1)
    for i in range(32):
        position = base + step * i
        inside = (position >= 0) & (position < 32) & ((offset != 0) | (i == 0))
        is_set = inside & ((mask >> np.clip(position, 0, 31).astype(np.uint32)) & 1).astype(bool)
        seen += is_set
        result = np.where(is_set & (seen == wanted) & (result == 0xFFFFFFFF), position.astype(np.uint32), result)
    return result


def _popcount(x: Array) -> Array:
    result: Array = np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.int32)
    return result


def _clz(x: Array) -> Array:
    """Leading zeros within 32 bits (64 for 64-bit integers), as ``__clz`` counts them."""
    width = 64 if x.dtype.itemsize == 8 else 32
    u = x.astype(f"u{width // 8}")
    shift = 1
    while shift < width:
        u = u | (u >> u.dtype.type(shift))
        shift *= 2
    result: Array = (width - np.bitwise_count(u)).astype(np.int32)
    return result


def _large_uint(low: Array, high: Array) -> Array:
    result: Array = low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32))
    return result


def _multiply_shift(x: Array, y: Array, q: Array, shift: Array) -> Array:
    """TVM's fixed-point product: rounded to nearest, halves up, as its default lowering does."""
    total = q.astype(np.int64) + shift
    product = x.astype(np.int64) * y.astype(np.int64)
    result: Array = (product + (np.int64(1) << np.maximum(total - 1, 0))) >> total
    return result.astype(np.int32)


_ELEMENTWISE: Mapping[str, PureFn] = {
    "exp": np.exp, "exp2": np.exp2, "exp10": _exp10, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": special.erf, "sqrt": np.sqrt, "rsqrt": _rsqrt, "pow": np.power, "fmod": np.fmod, "hypot": np.hypot,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint, "nearbyint": np.rint,
    "sigmoid": _sigmoid, "fabs": np.abs, "copysign": np.copysign, "nextafter": np.nextafter, "ldexp": np.ldexp,
    "fma": special.fma, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
}  # fmt: skip

#: TVM's full operation name → function of carriers, where no dtype or string argument matters.
PURE: Mapping[str, PureFn] = {
    **{f"tirx.{name}": fn for name, fn in _ELEMENTWISE.items()},
    "tirx.popcount": _popcount, "tirx.clz": _clz, "tirx.large_uint_imm": _large_uint, "tirx.likely": lambda x: x,
    "tirx.ignore_loop_partition": lambda x: x, "tirx.tvm_thread_invariant": lambda x: x,
    "tirx.q_multiply_shift": _multiply_shift,
    "tirx.bitwise_and": np.bitwise_and, "tirx.bitwise_or": np.bitwise_or, "tirx.bitwise_xor": np.bitwise_xor,
    "tirx.bitwise_not": np.invert, "tirx.shift_left": np.left_shift, "tirx.shift_right": np.right_shift,
    **{f"tl.__{name}": _ELEMENTWISE[name] for name in ("exp", "exp10", "log", "log2", "log10", "sin", "cos", "tan")},
    "tl.__ffs": _ffs, "tl.__fns": _fns, "tl.fast_rcp": lambda x: 1 / x, "tl.clamp": _clamp, "tl.pow_of_int": _pow_of_int,
    "tl.round_ties_away_from_zero": _round_away, "tl.fmul": np.multiply, "tl.fma": special.fma, "tl.ieee_frsqrt": _rsqrt,
    "tl.max_nan": np.maximum, "tl.min_nan": np.minimum, "tl.max2_nan": np.maximum, "tl.min2_nan": np.minimum,
    "tl.add2": np.add, "tl.sub2": np.subtract, "tl.mul2": np.multiply, "tl.fma2": special.fma,
    "tl.max2": np.fmax, "tl.min2": np.fmin, "tl.abs2": np.abs,
}  # fmt: skip

#: Device functions by the base of their name: ``expf``, ``__expf``, ``exp`` and ``hexp`` are all ``exp``.
_EXTERN_BASES: Mapping[str, PureFn] = {
    **_ELEMENTWISE,
    "erfc": special.erfc, "expm1": np.expm1, "cbrt": np.cbrt, "rint": np.rint, "round": _round_away, "abs": np.abs,
    "max": np.fmax, "min": np.fmin, "fmax": np.fmax, "fmin": np.fmin, "fdim": lambda x, y: np.where(x > y, x - y, 0),
    "rcp": lambda x: 1 / x, "fdividef": np.divide, "fdivide": np.divide, "saturate": lambda x: np.fmin(np.fmax(x, 0), 1),
    "remainder": lambda x, y: x - np.rint(x / y) * y, "exp10": _exp10,
}  # fmt: skip
_EXTERN_EXACT: Mapping[str, PureFn] = {
    "__popc": _popcount, "__popcll": _popcount, "__clz": _clz, "__clzll": _clz, "__ffs": _ffs, "__ffsll": _ffs, "__fns": _fns,
    "__hmax": np.fmax, "__hmin": np.fmin, "__hmax_nan": np.maximum, "__hmin_nan": np.minimum, "__habs": np.abs,
    "__hadd": np.add, "__hsub": np.subtract, "__hmul": np.multiply, "__hdiv": np.divide, "__hfma": special.fma, "fmaf": special.fma,
    "abs": np.abs, "min": np.fmin, "max": np.fmax,
}  # fmt: skip


def extern(name: str) -> PureFn | None:
    """The function that a CUDA device function of this name computes, or None if it is not a known pure one."""
    if name in _EXTERN_EXACT:
        return _EXTERN_EXACT[name]
    base = name.removeprefix("cutlass::fast_").removeprefix("tl::").removeprefix("std::").removeprefix("__")
    for candidate in (base, base.removesuffix("f"), base.removeprefix("h"), base.removeprefix("nv_").removesuffix("f")):
        if candidate in _EXTERN_BASES:
            return _EXTERN_BASES[candidate]
    return None


# ------------------------------------------------------------------------------------------------ typed forms
def _infinity(call: ir.Call) -> PureFn:
    value = np.asarray(np.inf, dtypes.carrier(call.dtype))
    return lambda: value


def _reinterpret(call: ir.Call) -> PureFn:
    return partial(dtypes.reinterpret, src=call.args[0].dtype, dst=call.dtype)


def _nextafter(call: ir.Call) -> PureFn:
    if dtypes.bits(call.dtype) != 16:
        return np.nextafter

    def stored(x: Array, y: Array) -> Array:
        return dtypes.load(np.nextafter(dtypes.store(x, call.dtype), dtypes.store(y, call.dtype)), call.dtype)

    return stored


def _mode(call: ir.Call) -> str:
    modes = [a.value for a in call.args if isinstance(a, ir.Str)]
    return modes[0] if modes else "rn"


def _ieee(fn: PureFn) -> Callable[[ir.Call], PureFn]:
    return lambda call: partial(_with_mode, fn, _mode(call))


def _with_mode(fn: PureFn, mode: str, *args: Array) -> Array:
    return fn(*np.broadcast_arrays(*args), mode=mode)


def _directed_subtract(a: Array, b: Array, mode: str) -> Array:
    return special.directed_add(a, -b, mode)


def _directed_multiply(a: Array, b: Array, mode: str) -> Array:
    return special.directed_fma(a, b, np.zeros_like(a) * np.sign(a) * np.sign(b), mode)


def _directed_reciprocal(a: Array, mode: str) -> Array:
    return special.directed_divide(np.ones_like(a), a, mode)


def _pack(width: int) -> Callable[[ir.Call], PureFn]:
    """Parts of ``width`` bits side by side in a uint32, the first lowest."""

    def make(call: ir.Call) -> PureFn:
        kinds = [a.dtype for a in call.args]

        def pack(*parts: Array) -> Array:
            word: Array = np.zeros((), np.uint32)
            for i, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
                code = np.asarray(dtypes.store(part, kind)).view(f"u{width // 8}").astype(np.uint32)
                word = word | (code << np.uint32(width * i))
            return word.astype(dtypes.carrier(call.dtype))

        return pack

    return make


def _extern(call: ir.Call) -> PureFn | None:
    name = call.args[0]
    return extern(name.value) if isinstance(name, ir.Str) else None


#: Operation → maker of the function from the call, where dtypes or string arguments matter.
TYPED: Mapping[str, Callable[[ir.Call], PureFn | None]] = {
    "tl.infinity": _infinity, "tirx.reinterpret": _reinterpret, "tirx.nextafter": _nextafter,
    "tl.ieee_add": _ieee(special.directed_add), "tl.ieee_sub": _ieee(_directed_subtract), "tl.ieee_mul": _ieee(_directed_multiply),
    "tl.ieee_fmaf": _ieee(special.directed_fma), "tl.ieee_fdiv": _ieee(special.directed_divide),
    "tl.ieee_frcp": _ieee(_directed_reciprocal), "tl.ieee_fsqrt": _ieee(special.directed_sqrt),
    "tl.pack_b16": _pack(16), "tl.pack_b8x4": _pack(8), "tirx.call_pure_extern": _extern, "tirx.call_extern": _extern,
}  # fmt: skip


def resolve(call: ir.Call) -> tuple[PureFn, tuple[ir.Expr, ...]] | None:
    """Return the function of ``call`` and the operands to evaluate for it; None if ``call`` is not a known pure one."""
    maker = TYPED.get(call.op)
    fn = maker(call) if maker is not None else PURE.get(call.op)
    return None if fn is None else (fn, tuple(a for a in call.args if not isinstance(a, ir.Str)))

"""Bit tricks for floats narrower than 32 bits: rounding, packing and unpacking whole arrays through uint32.

Everything works on float32 carriers, to nearest even. 16-bit formats use integer arithmetic in pieces that stay in
the second-level cache; formats of at most 8 bits use tables over the upper half of a float32 (its last bit made
sticky), which still holds at least two more bits than the target, so that rounding it again is exact.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

PIECE = 32768  # elements: three uint32 scratch arrays of it stay within a 1 MiB cache
_SIGN, _ABS, _INF = np.uint32(0x8000_0000), np.uint32(0x7FFF_FFFF), np.uint32(0x7F80_0000)


# ------------------------------------------------------------------------------------------------ at most 8 bits
@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowFloat:
    """A format of at most 8 bits.

    ``style`` says what its special codes are: ``ieee`` (infinities and NaNs), ``fn`` (all ones is NaN), ``fnuz`` (the
    code of -0 is NaN), ``finite`` (none), ``scale`` (unsigned powers of two; all ones is NaN).
    """

    name: str
    bits: int
    exponent: int
    mantissa: int
    bias: int
    style: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NarrowTables:
    """``decode``: code → float32. ``encode`` and ``rounded``: upper half of a float32 → code and float32.

    ``limit`` is the magnitude beyond which a value saturates, itself included if ``limit_overflows``.
    """

    decode: Array
    encode: Array
    rounded: Array
    max_finite: float
    limit: float
    limit_overflows: bool


def _decode(f: NarrowFloat, code: int) -> float:
    code &= (1 << f.bits) - 1
    top = (1 << f.exponent) - 1
    if f.style == "scale":
        return float("nan") if code == top else 2.0 ** (code - f.bias)
    sign = -1.0 if code >> (f.exponent + f.mantissa) else 1.0
    exponent, mantissa = (code >> f.mantissa) & top, code & ((1 << f.mantissa) - 1)
    if f.style == "fnuz" and code == 1 << (f.bits - 1):
        return float("nan")
    if f.style == "ieee" and exponent == top:
        return float("nan") if mantissa else sign * float("inf")
    if f.style == "fn" and exponent == top and mantissa == (1 << f.mantissa) - 1:
        return float("nan")
    fraction = mantissa / (1 << f.mantissa)
    return sign * ((1 + fraction) * 2.0 ** (exponent - f.bias) if exponent else fraction * 2.0 ** (1 - f.bias))


@lru_cache(maxsize=32)
def narrow_tables(f: NarrowFloat) -> NarrowTables:
    """Return the tables of ``f`` (built once, in about a millisecond)."""
    decode = np.array([_decode(f, c) for c in range(256)], np.float64)
    signed = f.style != "scale"
    half = 1 << (f.bits - 1) if signed else 1 << f.bits
    finite = decode[:half][np.isfinite(decode[:half])]  # positive codes are in the order of their values
    last = finite.size - 1

    with np.errstate(invalid="ignore"):
        x = (np.arange(65536, dtype=np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    magnitude = np.where(np.isnan(x), 0.0, np.abs(x))
    upper = np.minimum(np.searchsorted(finite, magnitude), last)
    if f.style == "scale":
        code = upper  # towards infinity (cudaRoundPosInf), as CUDA's constructor does
    else:
        lower = np.maximum(upper - 1, 0)
        to_upper, to_lower = finite[upper] - magnitude, magnitude - finite[lower]
        code = np.where((to_upper < to_lower) | ((to_upper == to_lower) & (upper % 2 == 0)), upper, lower)
        code = np.where(magnitude > finite[last], last, code)
    rounded_code = _finish(f, code, x, half)
    infinite = code if f.style != "ieee" else np.where(np.isinf(x), last + 1, code)
    with np.errstate(invalid="ignore"):
        decode32 = decode.astype(np.float32)
    digit = finite[last] - finite[last - 1] if last else 1.0
    return NarrowTables(
        decode=decode32,
        encode=_finish(f, infinite, x, half),
        rounded=decode32[rounded_code],
        max_finite=float(finite[last]),
        limit=float(finite[last] + (digit / 2 if signed else 0)),
        limit_overflows=bool(last % 2) and signed,
    )


def _finish(f: NarrowFloat, code: Array, x: Array, half: int) -> Array:
    """Add the sign and the NaNs to the codes of magnitudes."""
    if f.style != "scale":
        negative = np.signbit(x) & ((code != 0) | (f.style != "fnuz"))
        code = np.where(negative, code | half, code)
    if f.style == "finite":
        code = np.where(np.isnan(x), half - 1, code)  # CUDA: NaN becomes the largest positive value
    else:
        nan = {"ieee": half - 1, "fn": half - 1, "fnuz": half, "scale": 255}[f.style]
        code = np.where(np.isnan(x), nan | np.where(np.signbit(x) & (f.style in ("ieee", "fn")), half, 0), code)
    return code.astype(np.uint8)


# ------------------------------------------------------------------------------------------------ 16 bits
def round_f16(x: Array, out: Array | None = None) -> Array:
    """Round float32 values to float16, kept in float32; beyond 65504 to infinity."""
    return _by_pieces(x, out, np.dtype(np.float32), _round_f16)


def round_bf16(x: Array, out: Array | None = None) -> Array:
    """Round float32 values to bfloat16, kept in float32."""
    return _by_pieces(x, out, np.dtype(np.float32), _round_bf16)


def pack_f16(x: Array) -> Array:
    """Round float32 values to float16 and return its bits as uint16."""
    return _by_pieces(x, None, np.dtype(np.uint16), _pack_f16)


def pack_bf16(x: Array) -> Array:
    """Round float32 values to bfloat16 and return its bits as uint16."""
    return _by_pieces(x, None, np.dtype(np.uint16), _pack_bf16)


def unpack_f16(h: Array) -> Array:
    """Return the float32 values of float16 bits (uint16, any strides)."""
    wide = h.view(np.int16).astype(np.int32, order="C")  # sign-extended: bit 31 is the sign
    out = np.atleast_1d(wide).reshape(-1).view(np.uint32)
    for at in range(0, out.size, PIECE):
        u = out[at : at + PIECE]
        u <<= np.uint32(13)
        u &= np.uint32(0x8FFF_E000)
        special = u & _ABS
        has_special = bool(special.size) and int(special.max()) >= 0x0F80_0000
        f = u.view(np.float32)
        if has_special:
            mask = special >= np.uint32(0x0F80_0000)
            bits = (u & _SIGN) | _INF | (u & np.uint32(0x007F_E000))
            with np.errstate(over="ignore"):
                f *= np.float32(2.0**112)
            np.copyto(u, bits, where=mask)
        else:
            f *= np.float32(2.0**112)
    result: Array = wide.view(np.float32)
    return result


def unpack_bf16(h: Array) -> Array:
    """Return the float32 values of bfloat16 bits (uint16, any strides)."""
    wide = h.astype(np.uint32, order="C")
    wide <<= np.uint32(16)
    result: Array = np.asarray(wide).view(np.float32)
    return result


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.t = np.empty(PIECE, np.uint32)
        self.s = np.empty(PIECE, np.uint32)


_scratch = _Scratch()


def _by_pieces(x: Array, out: Array | None, dtype: np.dtype[Any], piece: Callable[[Array, Array], None]) -> Array:
    if out is None:
        out = np.empty(x.shape, dtype)
    u = np.ascontiguousarray(x).reshape(-1).view(np.uint32)
    o = out.reshape(-1).view(np.uint32 if dtype.itemsize == 4 else np.uint16)
    if u.size <= PIECE:
        if u.size:
            piece(u, o)
        return out
    for at in range(0, u.size, PIECE):
        piece(u[at : at + PIECE], o[at : at + PIECE])
    return out


def _spacing(u: Array) -> tuple[Array, bool]:
    """For each float32, 1.5 times the power of two whose float32 ulp is the spacing of float16 around the value.

    Adding it rounds to a float16 (ties to even, since it is an even number of ulps) and taking it away leaves that.
    The flag says whether any value has a magnitude of 32768 or more, or is NaN.
    """
    t = _scratch.t[: u.size]
    np.bitwise_and(u, _INF, out=t)
    power: Array = t.view(np.float32)
    large = bool(power.max() >= 32768.0)
    np.maximum(power, np.float32(2.0**-14), out=power)  # subnormals have the spacing of the smallest normals
    if large:
        np.minimum(power, np.float32(2.0**73), out=power)  # keeps it finite; such values become infinite anyway
    power *= np.float32(1.5 * 2.0**13)
    return power, large


def _round_f16(u: Array, o: Array) -> None:
    power, large = _spacing(u)
    nan = _nans(u, 13) if large else None
    f: Array = _scratch.s[: u.size].view(np.float32)
    if large:
        with np.errstate(over="ignore", invalid="ignore"):
            np.add(u.view(np.float32), power, out=f)
            f -= power
            f *= np.float32(2.0**112)  # 65536 and beyond overflow
            f *= np.float32(2.0**-112)
    else:
        np.add(u.view(np.float32), power, out=f)
        f -= power
    np.bitwise_and(u, _SIGN, out=o)  # the sign of zeros
    o |= f.view(np.uint32)
    if nan is not None:
        o[nan[0]] = nan[1]


def _pack_f16(u: Array, o: Array) -> None:
    power, large = _spacing(u)
    nan = _nans(u, 13) if large else None
    s, t = _scratch.s[: u.size], _scratch.t[: u.size]
    f: Array = s.view(np.float32)
    if large:
        with np.errstate(invalid="ignore"):
            np.add(u.view(np.float32), power, out=f)
            f -= power
            np.clip(f, np.float32(-65536), np.float32(65536), out=f)
    else:
        np.add(u.view(np.float32), power, out=f)
        f -= power
    f *= np.float32(2.0**-112)  # float16's exponents, 13 bits too high; its subnormals become float32's
    s >>= np.uint32(13)
    s &= np.uint32(0x7FFF)
    np.right_shift(u, np.uint32(16), out=t)
    t &= np.uint32(0x8000)
    t |= s
    o[:] = t
    if nan is not None:
        at, cut = nan
        o[at] = (cut >> np.uint32(16)) & np.uint32(0x8000) | np.uint32(0x7C00) | (cut >> np.uint32(13)) & np.uint32(0x3FF)


def _bumped(u: Array, drop: int) -> Array:
    """``u`` plus half a unit of what remains after dropping ``drop`` bits, ties to even (to be cut by the caller)."""
    t = _scratch.t[: u.size]
    np.right_shift(u, np.uint32(drop), out=t)
    t &= np.uint32(1)
    t += np.uint32((1 << (drop - 1)) - 1)
    t += u
    return t


def _round_bf16(u: Array, o: Array) -> None:
    t = _bumped(u, 16)
    nan = _nans(u, 16)
    np.bitwise_and(t, np.uint32(0xFFFF_0000), out=o)
    if nan is not None:
        o[nan[0]] = nan[1]


def _pack_bf16(u: Array, o: Array) -> None:
    t = _bumped(u, 16)
    nan = _nans(u, 16)
    t >>= np.uint32(16)
    o[:] = t
    if nan is not None:
        o[nan[0]] = nan[1] >> np.uint32(16)


def _nans(u: Array, drop: int) -> tuple[Array, Array] | None:
    """Where the NaNs of ``u`` are and what they are when cut by ``drop`` bits; None if there are none."""
    is_nan = np.isnan(u.view(np.float32))
    if not is_nan.any():
        return None
    at = np.flatnonzero(is_nan)
    cut = u[at] & np.uint32(0xFFFF_FFFF << drop & 0xFFFF_FFFF)
    return at, np.where(cut & np.uint32(0x007F_FFFF), cut, cut | np.uint32(0x0040_0000))  # still NaN

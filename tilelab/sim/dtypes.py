"""The dtypes of TileLang: how the simulator carries, stores, rounds and converts them, as a CUDA device does.

Three numpy dtypes belong to each TileLang dtype:

* *storage*: what an array of it holds in memory (``ml_dtypes`` for the narrow floats and 4-bit integers, one element
  a byte).
* *carrier*: what values are computed in. 8- and 16-bit floats are carried in float32 and rounded after each
  operation (:func:`round_to`), because numpy's own arithmetic on them is many times slower; all else is its own.
* *bits*: the unsigned integer of the same width, through which the bit tricks go.

Conversions follow CUDA: float to int saturates; float8 and float4 saturate to the largest finite value; float16 and
bfloat16 overflow to infinity; integers wrap. All functions take arrays of any shape and strides; lanes of a vector
dtype are an ordinary (last) axis, so ``"float16x8"`` means the same as ``"float16"`` here unless said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tilelab.errors import InputError
from tilelab.sim._floats import NarrowFloat, narrow_tables, pack_bf16, pack_f16, round_bf16, round_f16, unpack_bf16, unpack_f16

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One base dtype. ``kind``: b(ool) i(nt) u(int) f(loat) h(andle). ``narrow`` is set for floats of at most 8 bits."""

    name: str
    kind: str
    bits: int
    storage: np.dtype[Any]
    carrier: np.dtype[Any]
    narrow: NarrowFloat | None = None


def _entry(name: str, kind: str, bits: int, storage: Any, carrier: Any = None, narrow: NarrowFloat | None = None) -> DType:
    carrier = carrier if carrier is not None else storage
    return DType(name=name, kind=kind, bits=bits, storage=np.dtype(storage), carrier=np.dtype(carrier), narrow=narrow)


def _narrow(name: str, bits: int, exponent: int, mantissa: int, bias: int, style: str) -> DType:
    fmt = NarrowFloat(name=name, bits=bits, exponent=exponent, mantissa=mantissa, bias=bias, style=style)
    return _entry(name, "f", bits, getattr(ml_dtypes, name), np.float32, fmt)


_ALL = (
    _entry("bool", "b", 8, np.bool_),
    *(_entry(f"int{n}", "i", n, f"i{n // 8}") for n in (8, 16, 32, 64)),
    *(_entry(f"uint{n}", "u", n, f"u{n // 8}") for n in (8, 16, 32, 64)),
    _entry("int4", "i", 4, ml_dtypes.int4, np.int8),
    _entry("uint4", "u", 4, ml_dtypes.uint4, np.uint8),
    _entry("int2", "i", 2, ml_dtypes.int2, np.int8),
    _entry("uint2", "u", 2, ml_dtypes.uint2, np.uint8),
    _entry("float16", "f", 16, np.float16, np.float32),
    _entry("bfloat16", "f", 16, ml_dtypes.bfloat16, np.float32),
    _entry("float32", "f", 32, np.float32),
    _entry("tfloat32", "f", 32, np.float32),
    _entry("float64", "f", 64, np.float64),
    _narrow("float8_e4m3fn", 8, 4, 3, 7, "fn"),
    _narrow("float8_e5m2", 8, 5, 2, 15, "ieee"),
    _narrow("float8_e4m3fnuz", 8, 4, 3, 8, "fnuz"),
    _narrow("float8_e5m2fnuz", 8, 5, 2, 16, "fnuz"),
    _narrow("float8_e4m3b11fnuz", 8, 4, 3, 11, "fnuz"),
    _narrow("float8_e3m4", 8, 3, 4, 3, "ieee"),
    _narrow("float8_e8m0fnu", 8, 8, 0, 127, "scale"),
    _narrow("float6_e2m3fn", 6, 2, 3, 1, "finite"),
    _narrow("float6_e3m2fn", 6, 3, 2, 3, "finite"),
    _narrow("float4_e2m1fn", 4, 2, 1, 1, "finite"),
    _entry("handle", "h", 64, np.uint64),
)

#: Base dtype by name.
DTYPES: dict[str, DType] = {d.name: d for d in _ALL}
DTYPES["float8_e4m3"] = DTYPES["float8_e4m3fn"]  # what CUDA makes of it
_ALIASES = {"float": "float32", "double": "float64", "half": "float16", "int": "int32", "uint": "uint32", "bfloat": "bfloat16",
            "custom[tfloat32]": "tfloat32",
            **dict.fromkeys(("float4_e2m1", "float4_e2m1_unpacked", "custom[float4_e2m1_unpacked]", "custom[float4_e2m1_unpacked]8"),
                            "float4_e2m1fn")}  # fmt: skip


# ------------------------------------------------------------------------------------------------ names and widths
@lru_cache(maxsize=1024)
def parse(dtype: str) -> tuple[str, int]:
    """Split ``"float16x8"`` into ``("float16", 8)``.

    Raises:
        InputError: ``dtype`` is not a TileLang dtype.
    """
    base, lanes = dtype, 1
    if base not in DTYPES and base not in _ALIASES:
        match = re.fullmatch(r"(.+?)x(\d+)", dtype)
        if match:
            base, lanes = match.group(1), int(match.group(2))
    base = _ALIASES.get(base, base)
    if base not in DTYPES or lanes < 1:
        raise InputError(f"'{dtype}' is not a dtype of TileLang", fix=f"Known: {', '.join(DTYPES)}; vectors as in 'float16x8'")
    return base, lanes


@lru_cache(maxsize=1024)
def info(dtype: str) -> DType:
    """Return the record of the base of ``dtype``."""
    return DTYPES[parse(dtype)[0]]


def bits(dtype: str) -> int:
    """Width in bits, all lanes together."""
    return info(dtype).bits * parse(dtype)[1]


def carrier(dtype: str) -> np.dtype[Any]:
    """The numpy dtype in which one lane is computed."""
    return info(dtype).carrier


def storage(dtype: str) -> np.dtype[Any]:
    """The numpy dtype in which one lane is kept in memory."""
    return info(dtype).storage


def is_float(dtype: str) -> bool:
    """Whether ``dtype`` is a floating-point dtype."""
    return info(dtype).kind == "f"


def largest(dtype: str) -> float:
    """The largest finite value of ``dtype``."""
    d = info(dtype)
    return _max_finite(d.name) if d.kind == "f" else float(_int_range(d)[1])


# ------------------------------------------------------------------------------------------------ memory ⇄ values
def load(array: Array, dtype: str) -> Array:
    """Turn stored elements of ``dtype`` into carrier values (exact). May return ``array`` itself; never writes to it."""
    d = info(dtype)
    if d.narrow is not None:
        return np.take(narrow_tables(d.narrow).decode, array.view(np.uint8))
    if d.name == "float16":
        return unpack_f16(array.view(np.uint16))
    if d.name == "bfloat16":
        return unpack_bf16(array.view(np.uint16))
    if d.bits < 8:
        return _wrap_small(array.view(np.uint8), d)
    return array if array.dtype == d.carrier else array.astype(d.carrier)


def store(values: Array, dtype: str) -> Array:
    """Turn carrier values into stored elements of ``dtype``, rounding to nearest even and saturating as casts do."""
    d = info(dtype)
    values = np.asarray(values)
    if d.narrow is not None:
        return np.take(narrow_tables(d.narrow).encode, _top_bits(values)).view(d.storage)
    if d.name == "float16":
        return pack_f16(_as_f32(values)).view(np.float16)
    if d.name == "bfloat16":
        return pack_bf16(_as_f32(values)).view(d.storage)
    if d.bits < 8:
        return _wrap_small(values.astype(np.uint8), d).view(np.uint8).view(d.storage)
    return values if values.dtype == d.storage else values.astype(d.storage)


def round_to(values: Array, dtype: str, out: Array | None = None) -> Array:
    """Round carrier values to what ``dtype`` can hold, as the device rounds the result of an operation.

    Args:
        values: In the carrier of ``dtype``, or a float64 that is first rounded to it.
        dtype: Any dtype; only floats narrower than their carrier change anything.
        out: A C-contiguous carrier array of the same shape to write into; may be ``values``.
    """
    d = info(dtype)
    if d.kind != "f" or d.bits >= 32:
        values = values if values.dtype == d.carrier else values.astype(d.carrier)
        if d.name == "tfloat32":
            values = _round_tf32(values)
        if out is None or out is values:
            return values
        out[...] = values
        return out
    if d.narrow is not None:
        return np.take(narrow_tables(d.narrow).rounded, _top_bits(values), out=out, mode="clip")
    return (round_f16 if d.name == "float16" else round_bf16)(_as_f32(values), out)


# ------------------------------------------------------------------------------------------------ conversions
def cast(values: Array, src: str, dst: str) -> Array:
    """Convert carrier values of ``src`` to carrier values of ``dst`` with device semantics (see the module).

    NaN becomes 0 as an integer, except ``1 << 63`` where a 64-bit type is on either side (PTX ISA, ``cvt``).
    """
    s, d = info(src), info(dst)
    values = np.asarray(values)
    if s.name == d.name:
        return values
    if s.name == "tfloat32":
        values = truncated(values)
    if d.kind == "b":
        return np.asarray(values != 0)
    if d.kind == "f":
        if d.bits >= 32:
            values = values if values.dtype == d.carrier else _quiet_astype(values, d.carrier)
            return _round_tf32(values) if d.name == "tfloat32" else values
        if s.narrow is not None and d.name == "bfloat16":
            return values  # which holds every one of them
        return round_to(values if values.dtype == np.float64 else _quiet_astype(values, d.carrier), dst)
    if s.kind == "f":
        return _float_to_int(values, s, d)
    if d.bits < 8:
        return _wrap_small(values.astype(np.uint8), d)
    return values if values.dtype == d.carrier else values.astype(d.carrier)


def truncated(values: Array) -> Array:
    """What is read of tfloat32 values: their low 13 bits are ignored, wherever they come from."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFF_E000)
    return bits.view(np.float32).reshape(np.shape(values))


def overflowed(values: Array, src: str, dst: str) -> Array:
    """Mask of the carrier values of ``src`` that ``dst`` cannot hold: beyond its range, or (integers) not a number."""
    s, d = info(src), info(dst)
    values = np.asarray(values)
    if d.kind == "b" or s.kind == "b" or d.kind == "h":
        return np.zeros(values.shape, np.bool_)
    if d.kind == "f":
        if s.kind == "f" and _max_finite(s.name) <= _max_finite(d.name) and d.narrow is None:
            return np.zeros(values.shape, np.bool_)
        limit, inclusive = _overflow_limit(d.name)
        magnitude = np.abs(values.astype(np.float64)) if s.kind != "f" else np.abs(values)
        beyond = magnitude >= limit if inclusive else magnitude > limit
        return beyond if d.narrow is not None else beyond & np.isfinite(magnitude)
    low, high = _int_range(d)
    if s.kind == "f":
        whole = np.trunc(values.astype(np.float64))
        return ~((whole >= low) & (whole < float(high + 1)))
    slow, shigh = _int_range(s)
    mask = np.zeros(values.shape, np.bool_)
    if shigh > high:
        mask |= values > high
    if slow < low:
        mask |= values < low
    return mask


def reinterpret(values: Array, src: str, dst: str) -> Array:
    """The bits of carrier values of ``src`` read as ``dst``.

    Where the lanes have equal width this is elementwise; otherwise the last axis holds the lanes, low bits first, and
    its length changes (``int8`` with 4 lanes to ``int32`` with one).
    """
    s, d = info(src), info(dst)
    raw = np.ascontiguousarray(store(values, src)) if np.ndim(values) else store(values, src)
    if s.bits == d.bits:
        return load(_unsigned(raw, s).view(d.storage) if d.kind != "b" else raw.view(np.uint8) != 0, dst)
    octets = _pack_small(raw.view(np.uint8), s.bits) if s.bits < 8 else raw.view(np.uint8)
    if d.bits < 8:
        return load(_unpack_small(octets, d.bits).view(d.storage), dst)
    return load(octets.view(d.storage), dst)


# ------------------------------------------------------------------------------------------------ details
def _round_tf32(values: Array) -> Array:
    """To 10 bits of mantissa, ties away from zero, as CUTLASS makes a tfloat32 of a float."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    finite = (bits & np.uint32(0x7F80_0000)) != np.uint32(0x7F80_0000)
    out: Array = np.where(finite, (bits + np.uint32(0x1000)) & np.uint32(0xFFFF_E000), bits).view(np.float32)
    return out.reshape(np.shape(values))


def _as_f32(values: Array) -> Array:
    return values if values.dtype == np.float32 else _quiet_astype(values, np.dtype(np.float32))


def _quiet_astype(values: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(dtype)


def _top_bits(values: Array) -> Array:
    """The upper half of each float32, its last bit set if any dropped bit is (round to odd): what the tables index.

    A second rounding from at least two more bits than the target has is then exact.
    """
    values = np.asarray(values)
    sticky = None
    if values.dtype != np.float32:
        narrow = _quiet_astype(values, np.dtype(np.float32))
        if values.dtype == np.float64:
            # float64 directly to 8 bits rounds once on the device: step back to the float32 nearer zero, set a sticky bit
            with np.errstate(invalid="ignore"):
                wide = np.abs(narrow.astype(np.float64)) > np.abs(values)
                inexact = (narrow != values) & ~np.isnan(values)
            bits32 = narrow.view(np.uint32) - wide.astype(np.uint32)
            narrow, sticky = bits32.view(np.float32), inexact
        values = narrow
    u = values.view(np.uint32)
    index = (u >> np.uint32(16)).astype(np.uint16)
    rest = (u & np.uint32(0xFFFF)) != 0
    index |= rest if sticky is None else (rest | sticky)
    return index


def _unsigned(raw: Array, d: DType) -> Array:
    unsigned: Array = raw.view(f"u{max(d.bits, 8) // 8}")
    return unsigned


def _wrap_small(codes: Array, d: DType) -> Array:
    shift = np.uint8(8 - d.bits)
    if d.kind == "i":
        signed: Array = (codes << shift).view(np.int8) >> np.int8(shift)
        return signed
    masked: Array = codes & np.uint8((1 << d.bits) - 1)
    return masked


def _pack_small(codes: Array, width: int) -> Array:
    per = 8 // width if 8 % width == 0 else 1
    codes = codes & np.uint8((1 << width) - 1)
    parts = codes.reshape(*codes.shape[:-1], -1, per)
    shifts = (np.arange(per) * width).astype(np.uint8)
    packed: Array = np.bitwise_or.reduce(parts << shifts, axis=-1)
    return packed


def _unpack_small(octets: Array, width: int) -> Array:
    per = 8 // width if 8 % width == 0 else 1
    shifts = (np.arange(per) * width).astype(np.uint8)
    parts = (octets[..., None] >> shifts) & np.uint8((1 << width) - 1)
    codes: Array = parts.reshape(*octets.shape[:-1], -1)
    return codes


def _int_range(d: DType) -> tuple[int, int]:
    return (-(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1) if d.kind == "i" else (0, (1 << d.bits) - 1)


def _float_to_int(values: Array, s: DType, d: DType) -> Array:
    low, high = _int_range(d)
    nan = np.isnan(values)
    any_nan = bool(nan.any())
    top = float(high + 1)
    with np.errstate(invalid="ignore"):
        inside = (values > low - 1.0 if d.bits < 64 else values >= float(low)) & (values < top)
        if inside.all():
            return values.astype(np.int64).astype(d.carrier) if d.bits < 32 else values.astype(d.carrier)
        whole = np.where(inside, values, 0).astype(d.carrier)
    whole = np.where(values >= top, d.carrier.type(high), whole)
    whole = np.where(~inside & (values < 0), d.carrier.type(low), whole)
    if any_nan and d.bits >= 32 and (s.bits == 64 or d.bits == 64):
        indefinite = low if d.kind == "i" else 1 << (d.bits - 1)
        whole = np.where(nan, d.carrier.type(indefinite), whole)
    return whole


@lru_cache(maxsize=64)
def _max_finite(name: str) -> float:
    d = DTYPES[name]
    if d.narrow is not None:
        return narrow_tables(d.narrow).max_finite
    return float(ml_dtypes.finfo(d.storage).max)


@lru_cache(maxsize=64)
def _overflow_limit(name: str) -> tuple[float, bool]:
    """The magnitude beyond which rounding to ``name`` leaves its range, and whether that magnitude itself does."""
    d = DTYPES[name]
    top = _max_finite(name)
    if d.narrow is not None:
        return narrow_tables(d.narrow).limit, narrow_tables(d.narrow).limit_overflows
    if d.bits == 64:
        return float("inf"), True
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "tfloat32": 24}[name]
    return top + 2.0 ** (int(np.frexp(top)[1]) - 1 - digits), True

"""Functions that numpy lacks: erf and erfc, fused multiply-add, and arithmetic with a chosen rounding direction."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_LAST_ERFC = 27.25  # erfc underflows to zero in float64 beyond it


# ------------------------------------------------------------------------------------------------ erf
@lru_cache(maxsize=4)
def _erf_series(terms: int) -> tuple[float, ...]:
    """Coefficients of erf(x) / x in x², highest first: the Maclaurin series, which |x| ≤ 1 needs 19 terms of."""
    scale = 2 / math.sqrt(math.pi)
    return tuple(scale * (-1) ** n / (math.factorial(n) * (2 * n + 1)) for n in reversed(range(terms)))


@lru_cache(maxsize=4)
def _erfcx_series(terms: int) -> tuple[float, ...]:
    """Chebyshev coefficients, highest first, of x·exp(x²)·erfc(x) over 1 ≤ x ≤ 27.25 in the variable of :func:`_to_t`.

    The factor x keeps the function between 0.43 and 0.57, so that the error is small relatively everywhere.
    """
    k = np.arange(terms)
    nodes = np.cos(np.pi * (k + 0.5) / terms)
    samples = np.array([x * _erfcx_scalar(x) for x in _from_t(nodes).tolist()])
    turns = np.outer(k, 2 * k + 1) % (4 * terms)  # whole numbers: the angles lose nothing
    matrix = np.cos(np.pi * turns / (2 * terms))
    coefficients = 2 / terms * matrix @ samples
    coefficients[0] /= 2
    return tuple(float(c) for c in coefficients[::-1])


def _to_t(x: Array) -> Array:
    """Map 1…27.25 to 1…-1 by a Möbius map, under which that function is smooth."""
    low, high = 1 / (1.0 + 2.0), 1 / (_LAST_ERFC + 2.0)
    t: Array = (2 / (x + 2.0) - (low + high)) / (low - high)
    return t


def _from_t(t: Array) -> Array:
    low, high = 1 / (1.0 + 2.0), 1 / (_LAST_ERFC + 2.0)
    x: Array = 2 / (t * (low - high) + (low + high)) - 2.0
    return x


def _erfcx_scalar(x: float) -> float:
    """exp(x²)·erfc(x) for x ≥ 1 by the continued fraction of Laplace, evaluated from far enough out."""
    depth = 400 if x < 3 else 120
    f = x
    for n in range(depth, 0, -1):
        f = x + n / 2 / f
    return 1 / (math.sqrt(math.pi) * f)


def _exp_minus_square(x: Array) -> Array:
    """exp(−x²) without the loss that rounding x² would bring: x is split into a part with a short square and a rest."""
    head = np.round(x * 16) / 16
    tail = (x - head) * (x + head)
    result: Array = np.exp(-head * head) * np.exp(-tail)
    return result


def _erfc_tail(x: Array, terms: int) -> Array:
    """The complementary error function for x ≥ 1."""
    x = np.minimum(x, _LAST_ERFC)
    t = _to_t(x)
    b1 = np.zeros_like(t)
    b2 = np.zeros_like(t)
    twice = 2 * t
    coefficients = _erfcx_series(terms)
    for c in coefficients[:-1]:  # Clenshaw
        b1, b2 = twice * b1 - b2 + c, b1
    result: Array = (t * b1 - b2 + coefficients[-1]) * _exp_minus_square(x) / x
    return result


def _erf_parts(x: Array) -> tuple[Array, Array, Array]:
    """(near zero, erf there, erfc of the rest's magnitude), all of the shape of ``x``, in float64."""
    exact = x.dtype == np.float64
    wide = x.astype(np.float64)
    magnitude = np.abs(wide)
    near = magnitude <= 1
    square = np.where(near, wide * wide, 0.0)
    series = _erf_series(20 if exact else 12)
    acc = np.full(wide.shape, series[0])
    for c in series[1:]:
        acc = acc * square + c
    far = np.where(near | np.isnan(wide), 1.0, magnitude)
    return near, acc * wide, _erfc_tail(far, 30 if exact else 14)


def erf(x: Array) -> Array:
    """The error function; float64 within 1e-15 of the true value relatively, float32 within an ulp."""
    near, small, tail = _erf_parts(x)
    result: Array = np.where(near | np.isnan(x), small, np.copysign(1.0 - tail, x)).astype(x.dtype)
    return result


def erfc(x: Array) -> Array:
    """1 − erf(x), accurate for large ``x`` too."""
    near, small, tail = _erf_parts(x)
    result: Array = np.where(near | np.isnan(x), 1.0 - small, np.where(x > 0, tail, 2.0 - tail)).astype(x.dtype)
    return result


# ------------------------------------------------------------------------------------------------ exact arithmetic
def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return (a + b rounded, the exact error of that)."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return (a·b rounded, its exact error) in float64, by splitting each factor in halves of 26 bits."""
    p = a * b
    a_head, b_head = _head(a), _head(b)
    a_tail, b_tail = a - a_head, b - b_head
    return p, ((a_head * b_head - p) + a_head * b_tail + a_tail * b_head) + a_tail * b_tail


def _head(a: Array) -> Array:
    c = a * 134217729.0  # 2^27 + 1
    head: Array = c - (c - a)
    return head


def _to_odd(s: Array, error: Array) -> Array:
    """The float64 ``s`` moved so that its last bit is set if ``s + error`` is inexact: rounding it again is then exact."""
    bits = s.view(np.int64)
    inexact = (error != 0) & np.isfinite(s) & ((bits & 1) == 0)
    step = np.where((error > 0) == (s > 0), 1, -1)
    odd: Array = np.where(inexact, bits + step, bits).view(np.float64)
    return odd


def fma(x: Array, y: Array, z: Array) -> Array:
    """``x·y + z`` rounded once. float32 operands give a float64 that the caller may round to anything up to float32."""
    if x.dtype == np.float64:
        p, p_error = two_product(x, y)
        s, s_error = two_sum(p, z)
        corrected = s + (s_error + p_error)
        return np.where(np.isfinite(corrected), corrected, x * y + z)
    p = x.astype(np.float64) * y  # exact: 24 + 24 bits
    s, error = two_sum(p, z.astype(np.float64))
    return _to_odd(s, error)


def fma32(x: Array, y: Array, z: Array) -> Array:
    """:func:`fma` in the precision of ``x``."""
    return fma(x, y, z).astype(x.dtype)


def directed(nearest: Array, residual: Array, mode: str) -> Array:
    """Move ``nearest`` one step where rounding mode ``mode`` (rn rz ru rd) wants it.

    ``residual`` has the sign of (exact value − nearest).
    """
    if mode == "rn":
        return nearest
    infinity = nearest.dtype.type(np.inf)
    up = residual > 0
    down = residual < 0
    if mode == "ru":
        move, towards = up, infinity
    elif mode == "rd":
        move, towards = down, -infinity
    else:
        move, towards = np.where(nearest > 0, down, up), nearest.dtype.type(0)
    result: Array = np.where(move, np.nextafter(nearest, towards), nearest)
    return result


def _overflow_residual(nearest: Array, exact: Array) -> Array:
    """A finite exact value that rounded to infinity lies below it in magnitude."""
    return np.where(np.isinf(nearest) & np.isfinite(exact), -nearest, 0.0)


def directed_add(a: Array, b: Array, mode: str) -> Array:
    """``a + b`` rounded by ``mode``."""
    wide, error = two_sum(a.astype(np.float64), b.astype(np.float64))
    nearest = (a + b) if a.dtype == np.float64 else (a.astype(np.float64) + b).astype(a.dtype)
    residual = error if a.dtype == np.float64 else (wide - nearest.astype(np.float64)) + error
    return directed(nearest, residual + _overflow_residual(nearest, wide), mode)


def directed_fma(a: Array, b: Array, c: Array, mode: str) -> Array:
    """``a·b + c`` rounded by ``mode`` (``c`` None for a bare product)."""
    if a.dtype == np.float64:
        p, p_error = two_product(a, b)
        wide, s_error = two_sum(p, c)
        nearest = wide + (s_error + p_error)
        residual = (wide - nearest) + (s_error + p_error)
        return directed(nearest, residual + _overflow_residual(nearest, wide), mode)
    wide, error = two_sum(a.astype(np.float64) * b, c.astype(np.float64))
    nearest = _to_odd(wide, error).astype(a.dtype)
    residual = (wide - nearest.astype(np.float64)) + error
    return directed(nearest, residual + _overflow_residual(nearest, wide), mode)


def directed_divide(a: Array, b: Array, mode: str) -> Array:
    """``a / b`` rounded by ``mode``."""
    nearest = a / b
    p, error = two_product(nearest.astype(np.float64), b.astype(np.float64))
    residual = ((a - p) - error) * np.sign(b)
    return directed(nearest, np.where(np.isfinite(nearest), residual, _overflow_residual(nearest, np.where(b == 0, np.inf, a))), mode)


def directed_sqrt(a: Array, mode: str) -> Array:
    """The square root of ``a`` rounded by ``mode``."""
    nearest = np.sqrt(a)
    p, error = two_product(nearest.astype(np.float64), nearest.astype(np.float64))
    return directed(nearest, np.where(np.isfinite(nearest), (a - p) - error, 0.0), mode)

"""Arithmetic of values: the tables from operators to functions on arrays and on scalars, with the device's rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tilelab.sim import dtypes
from tilelab.sim.lanes import Value


def _trunc_div(a: Value, b: Value) -> Value:
    b = np.asarray(b)
    safe = np.where(b == 0, 1, b)
    q = np.floor_divide(a, safe)
    r = a - q * safe
    return np.where(b == 0, 0, q + ((r != 0) & ((r < 0) != (np.asarray(a) < 0)))).astype(np.result_type(a, b), copy=False)


def _trunc_mod(a: Value, b: Value) -> Value:
    b = np.asarray(b)
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.fmod(a, safe)).astype(np.result_type(a, b), copy=False)


def _floor_div(a: Value, b: Value) -> Value:
    if isinstance(b, int) and b > 0:
        return np.right_shift(a, b.bit_length() - 1) if b & (b - 1) == 0 else np.floor_divide(a, b)
    return np.floor_divide(a, np.where(np.asarray(b) == 0, 1, b))


def _floor_mod(a: Value, b: Value) -> Value:
    if isinstance(b, int) and b > 0 and b & (b - 1) == 0:
        return np.bitwise_and(a, b - 1)
    return np.remainder(a, np.where(np.asarray(b) == 0, 1, b))


#: Operator → function on integer arrays.
INT: Mapping[str, Callable[..., Value]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _trunc_div, "mod": _trunc_mod, "floordiv": _floor_div,
    "floormod": _floor_mod, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
#: Operator → function on float arrays. CUDA's fmin and fmax return the operand that is a number.
FLOAT: Mapping[str, Callable[..., Value]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "mod": np.fmod,
    "floordiv": lambda a, b: np.floor(np.divide(a, b)), "floormod": np.remainder, "min": np.fmin, "max": np.fmax,
}  # fmt: skip
COMPARE: Mapping[str, Callable[..., Value]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
#: Operator → function on Python integers.
SCALAR: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0,
    "mod": lambda a, b: (abs(a) % abs(b)) * (-1 if a < 0 else 1) if b else 0,
    "floordiv": lambda a, b: a // b if b else 0, "floormod": lambda a, b: a % b if b else 0, "min": min, "max": max,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
MIRROR = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}


def wrapper(dtype: str) -> Callable[[int], int]:
    """Return the function that wraps a Python integer into ``dtype``."""
    d = dtypes.info(dtype)
    low, high = (-(1 << (d.bits - 1)), (1 << (d.bits - 1)) - 1) if d.kind == "i" else (0, (1 << d.bits) - 1)
    span = 1 << d.bits

    def wrap(x: int) -> int:
        return x if low <= x <= high else (x - low) % span + low

    return wrap


def rounds(dtype: str) -> bool:
    """Whether the result of an operation in ``dtype`` must be rounded to it."""
    d = dtypes.info(dtype)
    return d.kind == "f" and (d.bits < 32 or d.name == "tfloat32")


def finisher(dtype: str) -> Callable[[Value], Value]:
    """Return the function that brings the raw result of an operation (array or numpy scalar) into ``dtype``."""
    d = dtypes.info(dtype)
    want = d.carrier
    if rounds(dtype):
        return lambda x: dtypes.round_to(np.asarray(x), dtype) if np.ndim(x) else dtypes.round_to(np.asarray(x).reshape(1), dtype)[0]

    def finish(x: Any) -> Value:
        return x if getattr(x, "dtype", None) == want else np.asarray(x).astype(want) if np.ndim(x) else want.type(x)

    return finish


def scalar(dtype: str, value: Any) -> Value:
    """A constant of ``dtype`` as the scalar that expressions use: int, bool, or a float in the carrier."""
    d = dtypes.info(dtype)
    if d.kind == "b":
        return bool(value)
    if d.kind in "iuh":
        return wrapper(dtype)(int(value)) if d.kind != "h" else int(value)
    with np.errstate(all="ignore"):
        out = np.asarray([value], np.float64)
        return dtypes.round_to(out, dtype)[0] if rounds(dtype) else d.carrier.type(value)


def as_scalar(dtype: str, value: Value) -> Value:
    """Bring a 0-d result to the scalar that expressions use."""
    kind = dtypes.info(dtype).kind
    if kind in "iuh":
        return int(value)
    if kind == "b":
        return bool(value)
    return value[()] if isinstance(value, np.ndarray) else value

"""A puzzle's ``oracle.py``: what the kernel means, how far rounding may carry it, and inputs that obey a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilelab.errors import InputError

Array = NDArray[Any]


@cache
def load(path: Path) -> Mapping[str, Any]:
    """Return the functions of an ``oracle.py``: the author's own file, beside ``puzzle.toml``.

    Raises:
        InputError: It is missing, or cannot be run.
    """
    namespace: dict[str, Any] = {"__name__": "oracle", "__file__": str(path)}
    try:
        exec(compile(path.read_text("utf-8"), str(path), "exec"), namespace)
    except Exception as e:
        raise InputError(f"{path} cannot be run: {type(e).__name__}: {e}", fix="it is the author's: tell them") from None
    return namespace


def need(path: Path, name: str) -> Any:
    """Return a function that an ``oracle.py`` must have.

    Raises:
        InputError: It has none of that name.
    """
    function = load(path).get(name)
    if not callable(function):
        raise InputError(f"{path} defines no {name}()", fix="it is the author's: tell them")
    return function


def call(function: Any, arrays: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """Call a function of an oracle: ``arrays`` by name, and those of ``sizes`` that it names."""
    return function(**arrays, **_named_sizes(function, sizes))


def taken(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of ``values`` that a function names among its parameters."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {k: v for k, v in values.items() if k in names}


def by_name(value: Any, names: Sequence[str]) -> dict[str, Array]:
    """Return what an oracle returned (an array, or a tuple of them) by output name."""
    values = value if isinstance(value, tuple) else (value,)
    if len(values) != len(names):
        raise InputError(f"the oracle returns {len(values)} arrays; the puzzle has {', '.join(names)}", fix="it is the author's: tell them")
    return dict(zip(names, map(np.asarray, values), strict=True))


def ruled_inputs(
    path: Path, drawn: Mapping[str, Array | None], sizes: Mapping[str, int], rng: np.random.Generator
) -> dict[str, Array | None]:
    """Replace those drawn inputs for which the oracle's ``inputs(rng, drawn, …sizes)`` has a rule (ascending offsets, a permutation).

    What it returns keeps the dtype and the shape of what was drawn.
    """
    rule = load(path).get("inputs")
    if rule is None:
        return dict(drawn)
    out = dict(drawn)
    for name, value in rule(rng, drawn, **_named_sizes(rule, sizes)).items():
        old = out[name]
        assert old is not None, f"{path}: inputs() gives {name}, which is only written"
        out[name] = np.asarray(value).astype(old.dtype).reshape(old.shape)
    return out


def _named_sizes(function: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    return taken(function, sizes)

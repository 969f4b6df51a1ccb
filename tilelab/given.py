"""Constants that the user gave: which of them is why a kernel cannot be made. Found by making it again with an ordinary value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilelab.errors import InputError, TileLabError
from tilelab.finding import KernelRefused

#: Values with which most kernels can be made, and what they are called.
_ORDINARY: tuple[tuple[Any, str], ...] = ((64, "a whole number above 0"), ("float32", 'a dtype such as "float32"'))


def at_fault(make: Callable[[Mapping[str, Any]], Any], consts: Mapping[str, Any], refused: KernelRefused, name: str) -> InputError | None:
    """Return the error of the user's constant that made TileLang refuse, None where the kernel itself is to blame.

    Args:
        make: Makes the kernel of constants; raises where it cannot.
        consts: What was given.
        refused: How making it failed.
        name: What the kernel is called.
    """
    for const, value in consts.items():
        for other, kind in _ORDINARY:
            if not _odd(value, other, refused.finding.code):
                continue
            try:
                make({**consts, const: other})
            except (TileLabError, KernelRefused):
                continue
            return InputError(f"{const} = {value!r} does not do for {name}, {const} = {other!r} does", fix=f"give {kind}")
    return None


def _odd(value: Any, other: Any, code: str) -> bool:
    """Whether ``value`` may be wrong where ``other`` is right: of another type, or no size at all (0 blocks are the kernel's affair)."""
    if type(value) is not type(other):
        return not (code == "TL505" and isinstance(other, str))
    return isinstance(value, str) or value < 0 or (value == 0 and code != "TL505")

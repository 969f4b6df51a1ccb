"""Canonical target names → TVM targets. A target with options is a dict: a string would lose them."""

from __future__ import annotations

from typing import Any

from tilelab import machine
from tilelab.compiler.quiet import quiet


def tvm_target(target: str) -> tuple[str, Any]:
    """Return the canonical name of ``target`` and the ``tvm.target.Target`` for it.

    Raises:
        InputError: There is no such target.
    """
    import tilelang  # noqa: F401  (registers the targets)
    from tvm.target import Target

    name = machine.canonical_target(target)
    with quiet():  # TVM asks for a ROCm installation aloud
        return name, Target(_description(name))


def _description(name: str) -> dict[str, Any]:
    if name.startswith("sm_"):
        return {"kind": "cuda", "arch": name}
    if name.startswith("gfx"):
        return {"kind": "hip", "mcpu": name}
    return {"kind": name}

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
        if name == "cutedsl":
            from tilelang.cuda.target import normalize_cutedsl_target

            return name, Target(normalize_cutedsl_target({"kind": "cutedsl", "arch": "sm_90a"}), Target("c"))
        return name, Target(_description(name))


def run_lowering(func: Any, tvm_t: Any) -> Any:
    """Run TileLang's compiler on a prim_func; return its artifact. CuTe DSL is asked for by hand: its package need not be here."""
    import tilelang

    if "cutedsl" not in tvm_t.keys:
        return tilelang.lower(func, target=tvm_t)
    from tilelang.backend.module import BackendContext, get_backend
    from tilelang.engine.lower import lower_with_context

    module = get_backend("cutedsl")
    context = BackendContext(module=module, target=tvm_t, target_host=tvm_t.host, execution_backend=module.execution_backends[0])
    return lower_with_context(func, context)


def _description(name: str) -> dict[str, Any]:
    if name.startswith("sm_"):
        return {"kind": "cuda", "arch": name}
    if name.startswith("gfx"):
        return {"kind": "hip", "mcpu": name}
    return {"kind": name}

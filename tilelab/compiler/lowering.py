"""Kernel → Artifact: TileLang's compiler, run with no GPU, and everything it decides written down."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilelab import ir
from tilelab.artifact import Artifact
from tilelab.compiler import binary, cache, conflicts
from tilelab.compiler.device import read_device, read_resources, read_smem
from tilelab.compiler.front import PASS_CONFIGS, capture, loading
from tilelab.compiler.layouts import read_layouts, read_pipelines
from tilelab.compiler.quiet import quiet
from tilelab.compiler.targets import run_lowering, tvm_target
from tilelab.compiler.watch import LAYOUTS, Watch
from tilelab.compiler.writer import emit
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import KernelRefused
from tilelab.layout import Layout
from tilelab.machine import canonical_target


def lower(
    kernel: Any,
    *tensors: Any,
    target: str = "sm_80",
    consts: Mapping[str, Any] | None = None,
    files: Mapping[str, str] | None = None,
    history: bool = False,
    use_cache: bool = True,
    assemble: bool = False,
) -> Artifact:
    """Lower a kernel for a target; no GPU is needed.

    Args:
        kernel: What :func:`tilelab.capture` takes, a Program included.
        tensors: Tensors that settle the sizes of an eager kernel.
        target: A target, as in :func:`tilelab.machine.canonical_target`. Default: ``"sm_80"``.
        consts: Constants by name.
        files: File names as recorded → as the user typed them, for findings.
        history: Keep the IR's text after each pass that changed it. Default: False.
        use_cache: Answer from the cache on disk, and fill it. Default: True.
        assemble: Compile the source for PTX, SASS, registers and spills; takes nvcc. Default: False.

    Raises:
        InputError: The target or a constant is unknown.
        KernelRefused: TileLang cannot lower the kernel for this target (TL402, TL403, TL702…).
        EnvironmentLacks: This TileLang has no compiler for the target; or ``assemble``, and there is no nvcc.
    """
    program = capture(kernel, *tensors, consts=consts, files=files)
    name = canonical_target(target)
    if program.level != "tile":
        raise InputError(f"{program.name} is lowered already")
    key = cache.key(program, name, history=history) if use_cache else ""
    found = cache.get(key) if key else None
    if found is None:
        found = _lower(program, name, tvm_target(name)[1], history, files)
        if key:
            cache.put(key, found)
    if not assemble or found.ptx:
        return found
    found = binary.assemble(found)
    if key:
        cache.put(key, found)  # in place of the one that was not assembled: it says the same and more
    return found


def infer_layouts(program: ir.Program, target: str = "sm_80") -> dict[str, Layout]:
    """Return the inferred layouts only: passes run no further than layout inference.

    Raises:
        KernelRefused: Layouts conflict, or there are none.
    """
    name, tvm_t = tvm_target(target)
    watch = Watch(stop_after=LAYOUTS)
    func = emit(program)
    try:
        _run(func, program, tvm_t, watch)
    except Exception as error:
        if not watch.stopped:
            raise KernelRefused(conflicts.lowering_finding(error, program, name, _tries(tvm_t))) from error
    module = watch.kept.get(LAYOUTS)
    return read_layouts(module, threads_of(program))[0] if module is not None else {}


def threads_of(program: ir.Program) -> int:
    """Return the threads of a block of the first kernel."""
    for s in ir.walk(program):
        if isinstance(s, ir.Launch):
            n = 1
            for e in s.threads:
                n *= int(e.value) if isinstance(e, ir.Const) else 1
            return n
    return 0


def _lower(program: ir.Program, name: str, tvm_t: Any, history: bool, files: Mapping[str, str] | None) -> Artifact:
    watch = Watch(texts=history)
    started = time.perf_counter()
    with loading(files):
        func = emit(program)
        try:
            out = _run(func, program, tvm_t, watch)
        except Exception as error:
            _lacking(error, name)
            told = conflicts.lowering_finding(error, program, name, _tries(tvm_t))
            if files and told.file is not None and told.file in files:
                told = replace(told, file=files[told.file])
            raise KernelRefused(told) from error
    seconds = time.perf_counter() - started
    device = read_device(out.device_mod, out.host_mod, program)
    module = watch.kept.get(LAYOUTS)
    layouts, staged = read_layouts(module, threads_of(program)) if module is not None else ({}, {})
    planned = watch.kept.get("tl.PipelinePlanning")
    pipelines = read_pipelines(planned) if planned is not None else ()
    smem = read_smem(device, staged)
    offsets = {s.name: s.offset_bytes for s in smem}
    placed = {n: replace(x, offset_bytes=offsets.get(n)) if x.kind == "shared" else x for n, x in layouts.items()}
    specialised = any(isinstance(s, ir.Attribute) and "arpSpecialization" in s.key for s in ir.walk(device))
    return Artifact(
        tile=program,
        target=name,
        program=device,
        source=str(out.kernel_source),
        layouts=placed,
        passes=tuple(watch.passes),
        start=watch.start,
        resources=read_resources(device),
        smem=smem,
        pipelines=pipelines,
        attrs={"tilelang": cache.version("tilelang"), "seconds": f"{seconds:.3f}", "warp_specialized": str(specialised).lower()},
    )


def _run(func: Any, program: ir.Program, tvm_t: Any, watch: Watch) -> Any:
    import tilelang  # noqa: F401  (makes tvm known)
    import tvm

    configs = program.attrs.get(PASS_CONFIGS)
    config = dict(configs.items) if isinstance(configs, ir.AttrMap) else {}
    with quiet(), tvm.transform.PassContext(opt_level=3, config=config, instruments=[watch.instrument]), tvm_t:
        return run_lowering(func, tvm_t)


def _tries(tvm_t: Any) -> conflicts.Tries:
    def tries(edited: ir.Program) -> bool:
        watch = Watch(stop_after=LAYOUTS)
        try:
            _run(emit(edited), edited, tvm_t, watch)
        except Exception:
            return watch.stopped
        return True

    return tries


def _lacking(error: BaseException, target: str) -> None:
    """Raise where it is the installed TileLang, not the kernel, that falls short."""
    text = str(error)
    if "No backend" in text or "not enabled" in text or "Cannot find global function target.build" in text:
        raise EnvironmentLacks(
            f"this TileLang has no compiler for {target}",
            fix="on macOS only Metal is there; lower on Linux or Windows, or look at a shipped artifact",
        ) from error

"""Turn this process into one whose GPU is the simulator. Order matters: torch must look right before TileLang is imported."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tilelab import ir
from tilelab.errors import EnvironmentLacks
from tilelab.finding import Finding
from tilelab.trace import PrintRecord, SimParams, Trace


@dataclass(slots=True, kw_only=True)
class Settings:
    """How kernels run under the hook, and what the runs found.

    Attributes:
        level: ``"tile"`` or ``"thread"``. Default: ``"tile"``.
        target: The GPU that torch and TileLang are told of, in canonical form. Default: ``"sm_90a"``.
        checks: Look for mistakes while running. Default: False.
        show_prints: Write ``T.print`` records to stdout as they come. Default: True.
        lower: Lower each kernel when it is compiled, so that TileLang raises there what it refuses. Default: False.
        findings: What every launch found so far, each once.
        prints: The records of every ``T.print`` so far, at most ``keep_prints``.
    """

    level: str = "tile"
    target: str = "sm_90a"
    checks: bool = False
    show_prints: bool = True
    lower: bool = False
    keep_prints: int = 10_000
    findings: list[Finding] = field(default_factory=list)
    prints: list[PrintRecord] = field(default_factory=list)
    launches: int = 0
    _lock: Any = field(default_factory=threading.Lock)

    def look(self, program: ir.Program) -> None:
        """Keep what is wrong with a kernel before any launch: budgets of the target, and what its lowering says."""
        from tilelab import api

        self._keep(api.static_findings(program, self.target))

    def _keep(self, found: Iterable[Finding]) -> None:
        with self._lock:
            seen = {(f.code, f.file, f.line) for f in self.findings}
            self.findings += [f for f in found if (f.code, f.file, f.line) not in seen]

    def run(self, program: ir.Program, inputs: Mapping[str, Any]) -> Trace:
        """Simulate one launch and keep what it found."""
        from tilelab import api

        trace = api.run(program, inputs, level=self.level, params=SimParams(checks=self.checks, target=self.target))
        self._keep(trace.findings)
        with self._lock:
            self.launches += 1
            self.prints += trace.prints[: max(0, self.keep_prints - len(self.prints))]
        if self.show_prints:
            for record in trace.prints:
                print(print_line(record))
        return trace


def print_line(record: PrintRecord) -> str:
    """Return one line for a ``T.print``: where it ran, what it said, its value."""
    import numpy as np

    who = f"block={record.block}" + (f" thread={record.thread}" if record.thread else "")
    label = " ".join(x for x in (record.message, record.name) if x)
    values = np.array2string(np.asarray(record.values), threshold=64, separator=", ")
    return f"[{who}] {label}{': ' if label else ''}{values} ({record.dtype})"


_installed: Settings | None = None


def installed() -> Settings | None:
    """Return the settings in force, None where the hook is not installed."""
    return _installed


def install(*, level: str = "tile", target: str = "sm_90", checks: bool = False, show_prints: bool = True, lower: bool = False) -> Settings:
    """Install the hook for the whole process, once; a second call changes all but the target.

    Raises:
        InputError: There is no such target.
        EnvironmentLacks: torch or TileLang is missing.
    """
    global _installed
    from tilelab.machine import canonical_target, gpu

    if _installed is not None:
        _installed.level, _installed.checks, _installed.show_prints, _installed.lower = level, checks, show_prints, lower
        return _installed
    target = canonical_target(target)
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise EnvironmentLacks(f"torch cannot be imported: {error}", fix="pip install torch") from None
    from tilelab.runtime import cuda, devices, torch_more

    settings = Settings(level=level, target=target, checks=checks, show_prints=show_prints, lower=lower)
    capability = _capability(target)
    cuda.install(capability, f"TileLab simulator ({target})", gpu(target))
    torch_more.install()
    devices.everywhere()
    try:
        _tilelang(settings, capability)
    except ImportError as error:
        raise EnvironmentLacks(f"TileLang cannot be imported: {error}", fix="pip install 'tilelang>=0.1.15,<0.2'") from None
    _installed = settings
    return settings


def _capability(target: str) -> tuple[int, int]:
    """``"sm_90a"`` → (9, 0)."""
    digits = re.sub(r"\D", "", target) or "90"
    return int(digits[:-1]), int(digits[-1])


def _tilelang(settings: Settings, capability: tuple[int, int]) -> None:
    os.environ.setdefault("TILELANG_AUTO_TUNING_DISABLE_CACHE", "1")  # what a simulated timing chose must never be kept
    os.environ.setdefault("TVM_TEST_TARGETS", "cuda")
    import tilelang
    import tilelang.utils.device as device
    import torch
    import tvm
    from tilelang.backend import target as targets

    cuda_target = tvm.target.Target({"kind": "cuda", "arch": settings.target})
    device.IS_CUDA, device.Event = True, torch.cuda.Event  # read at import, which may have been earlier
    targets.register_target_detector("cuda", lambda: cuda_target, override=True)
    plain = targets._TARGET_NORMALIZERS["cuda"].normalize
    targets.register_target_normalizer("cuda", lambda t: cuda_target if _is_bare_cuda(t) else plain(t), override=True)
    jit = sys.modules["tilelang.jit"]
    jit.cached = _cached(settings, jit.cached)  # type: ignore[attr-defined]
    _timing(tilelang)
    _autotuner()
    _tvm_answers(capability)


def _is_bare_cuda(target: Any) -> bool:
    return isinstance(target, str) and target.strip() == "cuda"


def _cached(settings: Settings, plain: Any) -> Any:
    """Replace the one door through which every kernel is compiled."""
    kernels: dict[Any, Any] = {}

    def cached(func: Any = None, out_idx: Any = None, *args: Any, target: Any = None, **options: Any) -> Any:
        from tilelang import env
        from tilelang.backend.target import determine_target

        from tilelab.runtime.kernel import SimKernel

        resolved = determine_target(target or env.get_default_target(), return_object=True)
        if resolved.kind.name in ("c", "llvm"):  # the CPU is here: nothing to simulate
            return plain(func, out_idx, *args, target=target, **options)
        key = (func, str(out_idx), str(resolved), str(sorted((options.get("pass_configs") or {}).items(), key=str)))
        if key not in kernels:
            kernels[key] = SimKernel(func, out_idx, target=resolved, settings=settings, **options)
        return kernels[key]

    return cached


def _timing(tilelang: Any) -> None:
    from tilelang.profiler import bench

    from tilelab.runtime.timing import do_bench

    plain = bench.do_bench
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tilelang") and getattr(module, "do_bench", None) is plain:
            module.do_bench = do_bench  # type: ignore[attr-defined]
    bench.IS_CUDA, bench.device = True, "cuda:0"


def _autotuner() -> None:
    """Tune one configuration at a time, and leave no log in the working folder."""
    import logging

    from tilelang.autotuner import tuner

    plain = tuner.AutoTuner._resolve_grouped_compile_mode

    def ungrouped(self: Any, *args: Any, **kwargs: Any) -> tuple[str, str, bool, str]:
        kind, backend, _, reason = plain(self, *args, **kwargs)
        return kind, backend, False, reason  # a group would build native kernels by itself

    def console_only() -> None:
        if not tuner._logger_handlers_initialized:
            handler = logging.StreamHandler(sys.stderr)
            handler.setLevel(logging.WARNING)
            tuner.logger.addHandler(handler)
            tuner._logger_handlers_initialized = True

    tuner.AutoTuner._resolve_grouped_compile_mode = ungrouped
    tuner._init_logger_handlers = console_only


def _tvm_answers(capability: tuple[int, int]) -> None:
    """Satisfy ``tilelang.testing.requires_cuda*``, which skip silently otherwise."""
    from tilelang.contrib import nvcc

    version = f"{capability[0]}.{capability[1]}"
    plain = nvcc.get_target_compute_version

    def get_target_compute_version(target: Any = None) -> str:
        try:
            return str(plain(target))
        except ValueError:
            return version

    for module in list(sys.modules.values()):
        if getattr(module, "get_target_compute_version", None) is plain:
            module.get_target_compute_version = get_target_compute_version  # type: ignore[attr-defined]


def satisfy_test_markers() -> None:
    """Tell TVM's test features that CUDA and a GPU are here; costs an import of ``tvm.testing``, so only test suites ask."""
    from tvm.testing.utils import Feature

    for name in ("gpu", "cuda", "tensorcore"):
        feature = Feature._all_features.get(name)
        if feature is not None:
            feature.compile_time_check = feature.run_time_check = feature.target_kind_hardware = feature.target_kind_enabled = None

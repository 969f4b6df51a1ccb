"""A compiled kernel whose launches go to the simulator; to everybody else it is a TileLang ``JITKernel``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from tilelang.engine.param import KernelParam
from tilelang.jit.adapter.base import BaseKernelAdapter
from tilelang.jit.kernel import JITKernel

from tilelab.finding import KernelRefused
from tilelab.runtime.arguments import bound, packed, pointed, used_params
from tilelab.runtime.devices import mark, plainly
from tilelab.tensors import to_torch
from tilelab.trace import Trace

#: findings after which a kernel has no result: the launch raises them
ENDING = frozenset({"TL206", "TL501", "TL502", "TL505", "TL701", "TL703", "TL902"})


class SimKernel(JITKernel):  # type: ignore[misc]
    """What ``tilelang.compile`` returns under the hook. Capturing happens at once, lowering only when its source is asked for."""

    execution_backend = "simulator"

    def __init__(self, func: Any, out_idx: Any, *, target: Any, settings: Any, **options: Any) -> None:
        from tilelab.compiler import capture_prim_func
        from tilelab.compiler.front import PASS_CONFIGS

        self.prim_func, self.target, self.target_host = func, target, options.get("target_host")
        self.pass_configs, self.compile_flags, self.verbose = options.get("pass_configs"), options.get("compile_flags"), False
        self._settings = settings
        self._lowered: Any = None
        self._used: frozenset[str] | None = None
        params = _params(func)
        self.adapter = SimAdapter(params, _list(out_idx), self._launch)
        self.torch_function = self.adapter.func
        configs = {str(getattr(k, "value", k)): v for k, v in (self.pass_configs or {}).items()}
        self.program = capture_prim_func(
            func, outputs=self.adapter.result_idx or None, extra_attrs={PASS_CONFIGS: configs} if configs else None
        )
        if settings.lower:
            _ = self.artifact
        elif settings.checks:
            settings.look(self.program)

    def _launch(self, *args: Any) -> Any:
        with plainly():
            return self._simulate(args)

    def _simulate(self, args: tuple[Any, ...]) -> Any:
        wanted = [i for i in range(len(self.program.params)) if i not in self.program.outputs]
        if len(args) != len(wanted):
            raise ValueError(f"Kernel expected {len(wanted)} inputs, but {len(args)} are provided.")
        program = self.program
        if self._used is None:
            self._used = used_params(program)
        args = pointed(program, args)
        trace = self._settings.run(program, bound(program, args, self._used))
        ended = next((f for f in trace.findings if f.code in ENDING and f.severity == "error"), None)
        if ended is not None:
            raise KernelRefused(ended)
        names = [p.name for i, p in enumerate(program.params) if i not in program.outputs]
        for name, given in zip(names, args, strict=True):
            parts = {f"{name}[{i}]": t for i, t in enumerate(given)} if isinstance(given, tuple) else {name: given}
            for key, tensor in parts.items():
                if key in trace.outputs and isinstance(tensor, torch.Tensor):
                    _write_back(tensor.detach(), trace.outputs[key])
        return _result(trace, [self.adapter.params[i].torch_dtype() for i in program.outputs])

    @property
    def artifact(self) -> Any:
        """What TileLang makes of the kernel for the simulated GPU (its ``CompiledArtifact``), when it is asked for first.

        Raises:
            KernelRefused: TileLang cannot lower the kernel; told in plain words.
            Exception: The same, as TileLang raises it, where test suites run.
        """
        if self._lowered is None:
            import tilelang
            import tvm

            from tilelab.compiler import lower
            from tilelab.compiler.quiet import quiet

            try:
                with quiet(), tvm.transform.PassContext(opt_level=3, config=dict(self.pass_configs or {})), self.target:
                    self._lowered = tilelang.lower(self.prim_func, target=self.target, target_host=self.target_host)
            except Exception:
                if not self._settings.lower:
                    lower(self.program, target=self._settings.target)
                raise
        return self._lowered

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the CUDA source that TileLang generates for the simulated GPU, after the host program unless ``kernel_only``."""
        device = str(self.artifact.kernel_source)
        return device if kernel_only else f"{self.get_host_source()}\n\n{device}"

    def get_host_source(self) -> str:
        """Return the host program, as TIR text."""
        return str(self.artifact.host_mod)

    @property
    def kernel_source(self) -> str:
        """The CUDA source."""
        return self.get_kernel_source()

    @property
    def host_source(self) -> str:
        """The host program."""
        return self.get_host_source()

    def export_library(self, kernel_file: str) -> None:
        """Refuse: there is no machine code."""
        raise NotImplementedError("under `tilelab run` a kernel has no machine code to export; get_kernel_source() has its CUDA source")


class SimAdapter(BaseKernelAdapter):  # type: ignore[misc]
    """What a Profiler calls: the launch, and the declarations of the parameters."""

    def __init__(self, params: list[KernelParam], result_idx: Any, launch: Callable[..., Any]) -> None:
        self._launch_simulated = launch
        self.prim_func = launch.__self__.prim_func  # type: ignore[attr-defined]
        super().__init__(None, params, result_idx)

    def _convert_torch_func(self) -> Callable[..., Any]:
        return self._launch_simulated

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the CUDA source of the kernel this belongs to."""
        return str(self._launch_simulated.__self__.get_kernel_source(kernel_only))  # type: ignore[attr-defined]


def _params(func: Any) -> list[KernelParam]:
    buffers: Mapping[Any, Any] = func.buffer_map
    return [KernelParam.from_buffer(buffers[v]) if v in buffers else KernelParam.from_var(v) for v in func.params]


def _list(out_idx: Any) -> Any:
    if out_idx is None or isinstance(out_idx, int):
        return out_idx
    return [int(i) for i in out_idx]


def _write_back(tensor: torch.Tensor, array: Any) -> None:
    made = _torch(array)
    if tensor.dtype != made.dtype and made.element_size() == tensor.element_size():
        made = made.view(tensor.dtype)
    tensor.copy_(made.view(tensor.shape) if made.shape != tensor.shape else made)


def _torch(array: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """An array as a torch tensor, elements of 4 bits in pairs as torch keeps them; ``dtype`` says what the bytes are called."""
    made: torch.Tensor = to_torch(packed(array))
    return made.view(dtype) if dtype is not None and made.dtype != dtype and made.element_size() == dtype.itemsize else made


def _result(trace: Trace, dtypes: list[torch.dtype]) -> Any:
    if trace.result is None:
        return None
    results = trace.result if isinstance(trace.result, tuple | list) else (trace.result,)
    made = [mark(_torch(array, dtype)) for array, dtype in zip(results, dtypes, strict=True)]
    return made if isinstance(trace.result, tuple | list) else made[0]

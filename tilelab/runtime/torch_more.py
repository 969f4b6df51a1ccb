"""The rest of torch that looks at the GPU: its private entry points, the compiler, random states, the profiler, accelerators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_CUDA = torch.device("cuda", 0)


def install() -> None:
    """Make them answer for the simulated device."""
    private: dict[str, Callable[..., Any]] = {
        "_cuda_getDevice": lambda: 0,
        "_cuda_getDeviceCount": lambda: 1,
        "_cuda_setDevice": lambda device: None,
        "_cuda_exchangeDevice": lambda device: 0,
        "_cuda_maybeExchangeDevice": lambda device: 0,
        "_cuda_getCurrentRawStream": lambda device=0: 0,
        "_cuda_getCurrentBlasHandle": lambda: 0,
        "_cuda_getDriverVersion": lambda: 12080,
        "_cuda_synchronize": lambda: None,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }
    for name, answer in private.items():
        setattr(torch._C, name, answer)
    cuda = torch.cuda
    cuda.get_rng_state = lambda device="cuda": torch.default_generator.get_state()
    cuda.get_rng_state_all = lambda: [torch.default_generator.get_state()]
    cuda.set_rng_state = lambda state, device="cuda": torch.default_generator.set_state(state.cpu())
    cuda.set_rng_state_all = lambda states: torch.default_generator.set_state(states[0].cpu())
    cuda.initial_seed = lambda: torch.default_generator.initial_seed()
    cuda.memory_summary = lambda *a, **k: "the simulator has no memory of a device"
    cuda.is_current_stream_capturing = lambda: False
    torch.compile = _uncompiled
    _profile_the_cpu()
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        accelerator.is_available = lambda: True
        accelerator.device_count = lambda: 1
        accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
        accelerator.current_device_index = lambda: 0
        accelerator.synchronize = lambda device=None: None


def _uncompiled(model: Any = None, **options: Any) -> Any:
    """Stand in for ``torch.compile``: the function itself, which computes the same; torch's compiler would look for the device."""
    return model if model is not None else lambda function: function


def _profile_the_cpu() -> None:
    """``torch.profiler`` without its CUDA half, which ends the process where there is no driver."""
    from torch.autograd import profiler as autograd
    from torch.profiler import profiler

    plain = autograd.profile.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs.pop("use_cuda", None)
        if kwargs.get("use_device") == "cuda":
            kwargs["use_device"] = None
        plain(self, *args, **kwargs)

    autograd.profile.__init__ = init
    profiler.supported_activities = lambda: {torch.profiler.ProfilerActivity.CPU}
    plain_kineto = profiler._KinetoProfile.__init__

    def kineto(self: Any, *args: Any, activities: Any = None, **kwargs: Any) -> None:
        kept = [a for a in activities or () if a != torch.profiler.ProfilerActivity.CUDA]
        plain_kineto(self, *args, activities=kept or [torch.profiler.ProfilerActivity.CPU], **kwargs)

    profiler._KinetoProfile.__init__ = kineto

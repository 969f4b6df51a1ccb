"""What ``torch.cuda`` answers when the GPU is the simulator: one device of the chosen architecture, with no hidden state."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

from tilelab.runtime.timing import SimulatedMs, notice

#: functions of ``torch.cuda`` that do nothing here
_IDLE = (
    "init", "_lazy_init", "set_device", "synchronize", "empty_cache", "ipc_collect", "reset_peak_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_accumulated_memory_stats", "seed", "seed_all", "set_stream",
    "set_per_process_memory_fraction",
)  # fmt: skip


def install(capability: tuple[int, int], name: str, gpu: Any) -> None:
    """Make ``torch.cuda`` describe the simulated device."""
    cuda = torch.cuda
    torch.version.cuda = torch.version.cuda or "12.8"
    properties = _properties(capability, name, gpu)
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: name,
        "get_device_capability": lambda device=None: capability,
        "get_device_properties": lambda device=None: properties,
        "get_arch_list": lambda: [f"sm_{capability[0]}{capability[1]}"],
        "is_bf16_supported": lambda *a, **k: capability >= (8, 0),
        "memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "mem_get_info": lambda device=None: (properties.total_memory, properties.total_memory),
        "manual_seed": lambda seed: _seed(seed),
        "manual_seed_all": lambda seed: _seed(seed),
        "current_stream": lambda device=None: Stream(),
        "default_stream": lambda device=None: Stream(),
        "can_device_access_peer": lambda *a: False,
        "Stream": Stream,
        "Event": Event,
        **{name: type(name, (_Scope,), {}) for name in ("stream", "device", "device_of")},
        "CUDAGraph": lambda *a, **k: _no_graphs(),
        "graph": lambda *a, **k: _no_graphs(),
        **{name: _nothing(name) for name in _IDLE},
    }
    for key, value in answers.items():
        setattr(cuda, key, value)
    for key in ("range_push", "range_pop", "mark", "range_start", "range_end"):
        setattr(cuda.nvtx, key, _nothing(key))


class Stream:
    """A stream of work: everything is done by the time it is asked for."""

    cuda_stream = 0
    device = torch.device("cuda", 0)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take and ignore device and priority."""

    def synchronize(self) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def record_event(self, event: Any = None) -> Event:
        """Return an event recorded now."""
        recorded: Event = event or Event()
        recorded.record()
        return recorded

    def query(self) -> bool:
        """Everything is done."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing to undo."""


class Event:
    """A point in time on this computer's clock; a time between two says that it is simulated."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._at = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self._at = time.perf_counter()

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def query(self) -> bool:
        """Everything is done."""
        return True

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds until ``end``: the simulator's time, not a GPU's."""
        notice()
        return SimulatedMs((end._at - self._at) * 1e3)


class _Scope:
    """``torch.cuda.device(…)`` and ``torch.cuda.stream(…)``: there is one device and one order."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take and ignore what is asked for."""

    def __enter__(self) -> None:
        """Nothing changes."""

    def __exit__(self, *error: object) -> None:
        """Nothing to undo."""


def _nothing(name: str) -> Callable[..., None]:
    """Make a function that has nothing to do, since there is no device behind; torch's compiler wants each name to have its own."""

    def nothing(*args: Any, **kwargs: Any) -> None:
        return None

    nothing.__name__ = nothing.__qualname__ = name
    return nothing


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(int(seed))


def _no_graphs() -> Any:
    raise NotImplementedError("TileLab simulates kernels, not CUDA graphs: run the function without capturing it")


def _properties(capability: tuple[int, int], name: str, gpu: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        major=capability[0],
        minor=capability[1],
        total_memory=80 << 30,
        multi_processor_count=int(getattr(gpu, "sms", 132)),
        warp_size=32,
        max_threads_per_block=1024,
        max_threads_per_multi_processor=int(getattr(gpu, "threads_per_sm", 2048)),
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=int(getattr(gpu, "smem_per_block_bytes", 227 << 10)),
        shared_memory_per_multiprocessor=int(getattr(gpu, "smem_per_sm_bytes", 228 << 10)),
        L2_cache_size=50 << 20,
        is_integrated=0,
        is_multi_gpu_board=0,
    )

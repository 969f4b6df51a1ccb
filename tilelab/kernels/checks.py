"""Checks that the operators' host functions share: each failure is one clear sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tilelab.errors import InputError

if TYPE_CHECKING:
    import torch


def require(condition: bool, message: str) -> None:
    """Raises ``InputError(message)`` unless ``condition`` holds."""
    if not condition:
        raise InputError(message)


def tensor(name: str, value: torch.Tensor, dims: int, dtypes: Iterable[str]) -> None:
    """Checks that ``value`` has ``dims`` axes, one of ``dtypes`` (torch names without the prefix), and is contiguous."""
    allowed = tuple(dtypes)
    kind = str(value.dtype).removeprefix("torch.")
    require(value.dim() == dims, f"{name} must have {dims} axes, but its shape is {tuple(value.shape)}")
    require(kind in allowed, f"{name} must be {' or '.join(allowed)}, but it is {kind}")
    require(value.is_contiguous(), f"{name} must be contiguous: call {name}.contiguous() first")


def same_device(**tensors: torch.Tensor | None) -> None:
    """Checks that all the given tensors (None is left out) lie on one device."""
    places = {name: value.device for name, value in tensors.items() if value is not None}
    require(len(set(places.values())) <= 1, f"all tensors must be on one device, but they are on {places}")


def hopper(value: torch.Tensor) -> bool:
    """True where ``value`` lies on a GPU of compute capability 9.0, which the warp-specialised builders need."""
    if not value.is_cuda:
        return False
    import torch

    return torch.cuda.get_device_capability(value.device) == (9, 0)


def sm_count(value: torch.Tensor) -> int:
    """The number of multiprocessors of the GPU that holds ``value``."""
    import torch

    return int(torch.cuda.get_device_properties(value.device).multi_processor_count)

"""Occupancy: how many blocks of a kernel one SM holds at a time, and what limits it.

The rules are those of NVIDIA's occupancy calculator: registers are given to whole warps in units, warps in groups of four
(one for each part of the SM), and shared memory to blocks in units, with what the system reserves for each block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilelab.errors import InputError
from tilelab.machine import Gpu, gpu

_WARP_GROUP = 4
_SOURCE = "NVIDIA Nsight Compute occupancy calculator; CUDA C++ Best Practices Guide, Occupancy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """Residency of a kernel on one SM.

    Attributes:
        gpu: The GPU.
        blocks_per_sm: Blocks that an SM holds at a time; 0 if the kernel cannot run at all.
        warps_per_sm: Their warps.
        fraction: Those warps over the most that the SM can hold.
        limits: What each resource alone would allow, in blocks: ``"warps"``, ``"blocks"``, ``"registers"``, ``"shared memory"``.
        limited_by: The resources that allow the fewest, in that order.
        registers_known: False if the number of registers was not given, so that it was not counted.
        source: Where the rules come from.
    """

    gpu: Gpu
    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limits: Mapping[str, int]
    limited_by: tuple[str, ...]
    registers_known: bool
    source: str = _SOURCE

    def waves(self, blocks: int) -> float:
        """How many times the whole GPU is filled by ``blocks`` blocks; the fraction after the point is the last, partial wave."""
        return blocks / (self.blocks_per_sm * self.gpu.sms) if self.blocks_per_sm else float("inf")


def occupancy(target: str, *, threads: int, smem_bytes: int = 0, registers: int | None = None) -> Occupancy:
    """Compute the occupancy of a kernel.

    Args:
        target: A target or the name of a GPU.
        threads: Threads of a block.
        smem_bytes: Shared memory of a block, static and dynamic together.
        registers: Registers of a thread, as ptxas reports them; None if unknown.

    Raises:
        InputError: ``target`` is unknown, or a number makes no sense.
    """
    g = gpu(target)
    if threads < 1 or smem_bytes < 0 or (registers is not None and registers < 0):
        raise InputError(f"threads={threads}, smem_bytes={smem_bytes}, registers={registers} is not a kernel", fix="Give positive numbers")
    warps = -(-threads // g.warp)
    limits = {"warps": g.warps_per_sm // warps if threads <= g.threads_per_block else 0, "blocks": g.blocks_per_sm}
    if registers:
        limits["registers"] = _by_registers(g, registers, warps)
    if smem_bytes or g.smem_reserved_bytes:
        limits["shared memory"] = _by_shared_memory(g, smem_bytes)
    blocks = min(limits.values())
    return Occupancy(
        gpu=g,
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps,
        fraction=blocks * warps / g.warps_per_sm,
        limits=limits,
        limited_by=tuple(name for name, n in limits.items() if n == blocks),
        registers_known=registers is not None,
    )


def _by_registers(g: Gpu, registers: int, warps: int) -> int:
    if registers > g.registers_per_thread:
        return 0
    per_warp = -(-registers * g.warp // g.register_unit) * g.register_unit
    resident = g.registers_per_sm // per_warp
    return resident // _WARP_GROUP * _WARP_GROUP // warps


def _by_shared_memory(g: Gpu, smem_bytes: int) -> int:
    if smem_bytes > g.smem_per_block_bytes:
        return 0
    per_block = -(-(smem_bytes + g.smem_reserved_bytes) // g.smem_unit_bytes) * g.smem_unit_bytes
    return g.smem_per_sm_bytes // per_block

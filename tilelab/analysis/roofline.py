"""Roofline: the least time that a kernel's arithmetic and its traffic need on a GPU, and which of the two binds it.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
CACM 52 (4), 2009. Peaks are those of :mod:`tilelab.machine`: published, dense, never fully reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tilelab.errors import InputError
from tilelab.machine import Gpu, gpu

#: dtypes without arithmetic units of their own are computed as another.
_COMPUTED_AS = {
    "float8_e4m3fnuz": "float8_e4m3fn",
    "float8_e5m2fnuz": "float8_e5m2",
    "uint8": "int8",
    "float": "float32",
    "int32": "float32",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """A kernel on the roofline of a GPU.

    Attributes:
        gpu: The GPU.
        dtype: The dtype of the operands of its arithmetic.
        flops: Its floating-point operations (an FMA is two).
        bytes: What it moves to and from global memory.
        intensity: FLOPs a byte.
        ridge: The intensity at which arithmetic and traffic take equally long.
        compute_s: Least time of the arithmetic.
        memory_s: Least time of the traffic.
        bound: ``"memory"`` or ``"compute"``, whichever takes longer.
        bound_s: The longer of the two times: no kernel with this work is faster.
        measured_s: A measured time, if there is one.
        source: Where the peaks come from.
    """

    gpu: Gpu
    dtype: str
    flops: float
    bytes: float
    intensity: float
    ridge: float
    compute_s: float
    memory_s: float
    bound: Literal["memory", "compute"]
    bound_s: float
    measured_s: float | None
    source: str

    @property
    def attained(self) -> float | None:
        """The bound over the measured time: 1 is as fast as the model allows."""
        return self.bound_s / self.measured_s if self.measured_s else None

    @property
    def ceiling_flops(self) -> float:
        """The rate that this intensity allows, in FLOP/s."""
        return self.flops / self.bound_s if self.bound_s else 0.0


def roofline(
    target: str, *, flops: float, bytes: float, dtype: str = "float32", matrix: bool = True, measured_s: float | None = None
) -> Roofline:
    """Place a kernel on the roofline of ``target`` (a target or the name of a GPU).

    Args:
        target: A target or the name of a GPU.
        flops: Floating-point operations of the whole kernel.
        bytes: Bytes between the GPU and its global memory.
        dtype: The dtype of the operands.
        matrix: Whether the arithmetic is matrix products, so that the tensor cores' rate counts.
        measured_s: A measured time in seconds.

    Raises:
        InputError: The GPU is unknown, or does no arithmetic in ``dtype``, or a number makes no sense.
    """
    g = gpu(target)
    if flops < 0 or bytes < 0 or flops + bytes <= 0 or (measured_s is not None and measured_s <= 0):
        raise InputError(f"flops={flops}, bytes={bytes}, measured_s={measured_s} is not a kernel", fix="Give positive numbers")
    peak = _peak(g, _COMPUTED_AS.get(dtype, dtype), matrix)
    compute_s, memory_s = flops / peak, bytes / g.memory_bytes_per_s
    return Roofline(
        gpu=g,
        dtype=dtype,
        flops=flops,
        bytes=bytes,
        intensity=flops / bytes if bytes else float("inf"),
        ridge=peak / g.memory_bytes_per_s,
        compute_s=compute_s,
        memory_s=memory_s,
        bound="compute" if compute_s > memory_s else "memory",
        bound_s=max(compute_s, memory_s),
        measured_s=measured_s,
        source=g.source,
    )


def _peak(g: Gpu, dtype: str, matrix: bool) -> float:
    if matrix and dtype in g.peak_flops:
        return g.peak_flops[dtype]
    vector = dict(g.vector_flops)
    if dtype == "bfloat16":  # ordinary arithmetic in bfloat16 runs at the rate of float32, or twice that in pairs
        vector.setdefault("bfloat16", vector["float32"])
    if dtype == "float16":
        vector.setdefault("float16", vector["float32"])
    if dtype not in vector:
        known = ", ".join(sorted(g.peak_flops))
        raise InputError(f"{g.name} has no {'matrix' if matrix else 'ordinary'} arithmetic in {dtype}", fix=f"It has: {known}")
    return vector[dtype]

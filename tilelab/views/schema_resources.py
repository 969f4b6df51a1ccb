"""The JSON of the resources view: everything for each GPU, so that the front end only chooses one."""

from __future__ import annotations

from typing import Any, TypedDict


class ResourceUse(TypedDict):
    """What a block asks for of one resource (a key of the word table). ``used`` is null where unknown, ``limit`` where there is none."""

    key: str
    used: int | None
    limit: int | None
    unit: str


class ResourceLimit(TypedDict):
    """Blocks of an SM that one resource alone would allow."""

    key: str
    blocks: int
    binds: bool


class ResourceKernel(TypedDict):
    """A kernel on one GPU. ``grid`` is 0 where only the launch knows; ``waves``: how often its blocks fill the GPU."""

    name: str
    uses: list[ResourceUse]
    blocks: int
    warps: int
    warps_most: int
    warps_of_block: int
    occupancy: float
    limits: list[ResourceLimit]
    registers_known: bool
    grid: int
    waves: float


class ResourcePoint(TypedDict):
    """A point on the roofline (a key of the word table): FLOP a byte, FLOP a second, seconds, and which roof it is under."""

    key: str
    intensity: float
    rate: float
    seconds: float
    bound: str
    label: str


class ResourceRoofline(TypedDict):
    """The roofs of a GPU for one dtype, and the points below them. ``ridge``: the intensity at which the roofs meet."""

    dtype: str
    peak: float
    bandwidth: float
    ridge: float
    points: list[ResourcePoint]


class ResourceGpu(TypedDict):
    """One GPU: its limits with their source, the kernels on it, and whether they run."""

    name: str
    target: str
    sms: int
    source: str
    kernels: list[ResourceKernel]
    roofline: ResourceRoofline | None
    runs: bool
    change: str
    tried: bool
    findings: list[dict[str, Any]]


class ResourceData(TypedDict):
    """The data of the resources view. ``matrix_share``: which part of the arithmetic tensor cores do; null where it is not known."""

    kernel: str
    target: str
    lowered: bool
    flops: float | None
    bytes_asked: float | None
    bytes_least: float | None
    dtype: str
    matrix_share: float | None
    gpus: list[ResourceGpu]
    selected: int


class ResourceViewRecord(TypedDict):
    """A resources view as JSON."""

    schema: str
    version: int
    kind: str
    title: str
    lang: str
    data: ResourceData

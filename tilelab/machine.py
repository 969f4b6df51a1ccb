"""What GPUs are and allow: targets in canonical form, and the limits and peak rates of GPUs, each with its source.

Every record is one device as a program sees it (an MI250 is two of them). Peak rates are dense (without structured
sparsity) and as published; what a kernel can really reach is lower, and measured elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tilelab.errors import InputError

_KIB, _MIB = 1 << 10, 1 << 20
_T = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """Limits and rates of one GPU.

    Attributes:
        name: As it is sold.
        target: The canonical target that is compiled for it.
        sms: Streaming multiprocessors (compute units on AMD).
        warp: Threads of a warp (wavefront).
        threads_per_block: Most threads of a block.
        threads_per_sm: Most resident threads of an SM.
        warps_per_sm: Most resident warps of an SM.
        blocks_per_sm: Most resident blocks of an SM.
        registers_per_sm: 32-bit registers of an SM; a block may use no more than 64 Ki of them on NVIDIA GPUs.
        registers_per_thread: Most registers that one thread can address.
        register_unit: Registers are given to a warp in multiples of this many.
        smem_static_bytes: Shared memory that a block may declare statically.
        smem_per_block_bytes: Shared memory that a block may have when it opts in.
        smem_per_sm_bytes: Shared memory of an SM.
        smem_reserved_bytes: What the system keeps of it for each resident block.
        smem_unit_bytes: Shared memory is given to a block in multiples of this.
        l2_bytes: Size of the L2 cache.
        memory_bytes: Size of the global memory.
        memory_bytes_per_s: Peak bandwidth of the global memory.
        clock_hz: Boost clock.
        vector_flops: dtype → FLOP/s of ordinary arithmetic (an FMA counts two).
        matrix_flops: dtype → FLOP/s of the tensor (matrix) cores, accumulating in float32 (int32 for int8).
        source: Where the numbers come from.
    """

    name: str
    target: str
    sms: int
    warp: int = 32
    threads_per_block: int = 1024
    threads_per_sm: int
    warps_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    register_unit: int = 256
    smem_static_bytes: int = 48 * _KIB
    smem_per_block_bytes: int
    smem_per_sm_bytes: int
    smem_reserved_bytes: int = 0
    smem_unit_bytes: int = 128
    l2_bytes: int
    memory_bytes: int
    memory_bytes_per_s: float
    clock_hz: float
    vector_flops: Mapping[str, float] = field(default_factory=dict)
    matrix_flops: Mapping[str, float] = field(default_factory=dict)
    source: str

    @property
    def peak_flops(self) -> Mapping[str, float]:
        """Dtype → the higher of the vector and the matrix rate."""
        return {k: max(self.vector_flops.get(k, 0), self.matrix_flops.get(k, 0)) for k in {**self.vector_flops, **self.matrix_flops}}


# ------------------------------------------------------------------------------------------------ targets
#: Spelled target → canonical form, where they differ. Architecture-specific instructions exist only in the "a" forms.
_CANONICAL = {"sm_90": "sm_90a", "sm_100": "sm_100a", "sm_103": "sm_103a", "sm_110": "sm_110a", "gfx940": "gfx942", "gfx941": "gfx942"}
_NVIDIA = (
    "sm_70",
    "sm_72",
    "sm_75",
    "sm_80",
    "sm_86",
    "sm_87",
    "sm_89",
    "sm_90a",
    "sm_100a",
    "sm_103a",
    "sm_110a",
    "sm_120",
    "sm_120a",
    "sm_121",
)
_AMD = ("gfx90a", "gfx942", "gfx950")
_OTHER = ("metal", "webgpu", "c", "ascend", "cutedsl")

#: Every target in canonical form.
TARGETS: tuple[str, ...] = _NVIDIA + _AMD + _OTHER


def canonical_target(target: str) -> str:
    """Return ``target`` in canonical form.

    Accepts ``sm_90``, ``sm90``, ``90``, ``9.0``, ``cuda -arch=sm_90`` (all ``sm_90a``), ``gfx942``, ``hip -mcpu=gfx942``,
    ``metal``, ``webgpu``, ``c``, ``ascend``, ``cutedsl`` (Python of CuTe DSL, for sm_90a), and the name of a GPU (``H100``, ``RTX 3090``).

    Raises:
        InputError: There is no such target.
    """
    text = target.strip().lower()
    arch = re.search(r"(?:-arch=|-mcpu=|\s)((?:sm_?|gfx)[0-9a-z]+)", text)
    name = arch.group(1) if arch else text
    match = re.fullmatch(r"(?:sm_?|compute_)?(\d+)(?:\.(\d))?([af]?)", name)
    if match:
        name = f"sm_{match.group(1)}{match.group(2) or ''}{match.group(3)}"
    name = _CANONICAL.get(name, name)
    if name in TARGETS:
        return name
    named = _BY_NAME.get(_key(text))
    if named is not None:
        return named.target
    raise InputError(f"'{target}' is not a target", fix=f"Known: {', '.join(TARGETS)}, or a GPU: {', '.join(g.name for g in GPUS)}")


def is_nvidia(target: str) -> bool:
    """Whether canonical ``target`` is an NVIDIA GPU."""
    return target.startswith("sm_")


def capability(target: str) -> tuple[int, int]:
    """Compute capability of a canonical NVIDIA target: ``"sm_90a"`` → (9, 0).

    Raises:
        InputError: ``target`` is not an NVIDIA GPU.
    """
    if not is_nvidia(target):
        raise InputError(f"'{target}' has no compute capability", fix="Choose a target such as sm_80")
    digits = re.sub(r"\D", "", target)
    return int(digits[:-1]), int(digits[-1])


def gpu(target: str) -> Gpu:
    """Return the GPU of a target (its best-known one) or of a name.

    Raises:
        InputError: There is no such target, or it is no GPU whose limits are known.
    """
    named = _BY_NAME.get(_key(target))
    if named is not None:
        return named
    canonical = canonical_target(target)
    record = _BY_TARGET.get(_LIKE.get(canonical, canonical))
    if record is None:
        raise InputError(f"The limits of '{target}' are not known", fix=f"GPUs with known limits: {', '.join(g.name for g in GPUS)}")
    return record


# ------------------------------------------------------------------------------------------------ the records
_GUIDE = "CUDA C++ Programming Guide, technical specifications per compute capability"


def _rates(**tflops: float) -> Mapping[str, float]:
    names = {"f64": ("float64",), "f32": ("float32",), "tf32": ("tfloat32",), "f16": ("float16", "bfloat16"), "half": ("float16",),
             "f8": ("float8_e4m3fn", "float8_e5m2"), "f4": ("float4_e2m1fn",), "i8": ("int8",)}  # fmt: skip
    return {name: rate * _T for key, rate in tflops.items() for name in names[key]}


def _sm(capability: str) -> dict[str, int]:
    """Limits that a compute capability fixes."""
    threads, blocks, smem_kib, block_kib, reserved_kib = {
        "7.0": (2048, 32, 96, 96, 0),
        "7.5": (1024, 16, 64, 64, 0),
        "8.0": (2048, 32, 164, 163, 1),
        "8.6": (1536, 16, 100, 99, 1),
        "8.9": (1536, 24, 100, 99, 1),
        "9.0": (2048, 32, 228, 227, 1),
        "10.0": (2048, 32, 228, 227, 1),
        "12.0": (1536, 24, 100, 99, 1),
    }[capability]
    return {
        "threads_per_sm": threads,
        "warps_per_sm": threads // 32,
        "blocks_per_sm": blocks,
        "smem_per_sm_bytes": smem_kib * _KIB,
        "smem_per_block_bytes": block_kib * _KIB,
        "smem_reserved_bytes": reserved_kib * _KIB,
        "smem_unit_bytes": 256 if capability.startswith("7") else 128,
    }


def _cdna(lds_kib: int) -> dict[str, int]:
    """Limits of AMD's CDNA 2 to 4: wavefronts of 64, eight on each of four SIMDs, 512 KiB of vector registers."""
    return {
        "warp": 64, "threads_per_sm": 2048, "warps_per_sm": 32, "blocks_per_sm": 32, "registers_per_sm": 131072,
        "registers_per_thread": 512, "register_unit": 512, "smem_static_bytes": lds_kib * _KIB, "smem_per_block_bytes": lds_kib * _KIB,
        "smem_per_sm_bytes": lds_kib * _KIB, "smem_unit_bytes": 512,
    }  # fmt: skip


#: Known GPUs; the first of each target is the one that :func:`gpu` answers for the target.
GPUS: tuple[Gpu, ...] = (
    Gpu(name="V100", target="sm_70", sms=80, **_sm("7.0"), l2_bytes=6 * _MIB, memory_bytes=32 << 30, memory_bytes_per_s=900e9,
        clock_hz=1.53e9, vector_flops=_rates(f64=7.8, f32=15.7, half=31.4), matrix_flops=_rates(half=125),
        source=f"{_GUIDE}, 7.0; NVIDIA Tesla V100 GPU architecture whitepaper (SXM2)"),
    Gpu(name="T4", target="sm_75", sms=40, **_sm("7.5"), l2_bytes=4 * _MIB, memory_bytes=16 << 30, memory_bytes_per_s=320e9,
        clock_hz=1.59e9, vector_flops=_rates(f32=8.1, half=16.2), matrix_flops=_rates(half=65, i8=130),
        source=f"{_GUIDE}, 7.5; NVIDIA T4 datasheet"),
    Gpu(name="A100", target="sm_80", sms=108, **_sm("8.0"), l2_bytes=40 * _MIB, memory_bytes=80 << 30, memory_bytes_per_s=2.039e12,
        clock_hz=1.41e9, vector_flops=_rates(f64=9.7, f32=19.5, half=78), matrix_flops=_rates(f64=19.5, tf32=156, f16=312, i8=624),
        source=f"{_GUIDE}, 8.0; NVIDIA A100 datasheet (SXM, 80 GB)"),
    Gpu(name="RTX 3090", target="sm_86", sms=82, **_sm("8.6"), l2_bytes=6 * _MIB, memory_bytes=24 << 30, memory_bytes_per_s=936e9,
        clock_hz=1.695e9, vector_flops=_rates(f32=35.6, half=35.6), matrix_flops=_rates(tf32=35.6, f16=71, i8=284),
        source=f"{_GUIDE}, 8.6; NVIDIA Ampere GA102 GPU architecture whitepaper"),
    Gpu(name="A6000", target="sm_86", sms=84, **_sm("8.6"), l2_bytes=6 * _MIB, memory_bytes=48 << 30, memory_bytes_per_s=768e9,
        clock_hz=1.8e9, vector_flops=_rates(f32=38.7, half=38.7), matrix_flops=_rates(tf32=77.4, f16=154.8, i8=309.7),
        source=f"{_GUIDE}, 8.6; NVIDIA Ampere GA102 GPU architecture whitepaper, RTX A6000"),
    Gpu(name="RTX 4090", target="sm_89", sms=128, **_sm("8.9"), l2_bytes=72 * _MIB, memory_bytes=24 << 30, memory_bytes_per_s=1.008e12,
        clock_hz=2.52e9, vector_flops=_rates(f32=82.6, half=82.6), matrix_flops=_rates(tf32=82.6, f16=165.2, f8=330.3, i8=660.6),
        source=f"{_GUIDE}, 8.9; NVIDIA Ada GPU architecture whitepaper"),
    Gpu(name="H100", target="sm_90a", sms=132, **_sm("9.0"), l2_bytes=50 * _MIB, memory_bytes=80 << 30, memory_bytes_per_s=3.35e12,
        clock_hz=1.98e9, vector_flops=_rates(f64=34, f32=67, half=134),
        matrix_flops=_rates(f64=67, tf32=494.7, f16=989.4, f8=1978.9, i8=1978.9),
        source=f"{_GUIDE}, 9.0; NVIDIA H100 datasheet (SXM5; half of its rates with sparsity)"),
    Gpu(name="H200", target="sm_90a", sms=132, **_sm("9.0"), l2_bytes=50 * _MIB, memory_bytes=141 * 10**9, memory_bytes_per_s=4.8e12,
        clock_hz=1.98e9, vector_flops=_rates(f64=34, f32=67, half=134),
        matrix_flops=_rates(f64=67, tf32=494.7, f16=989.4, f8=1978.9, i8=1978.9),
        source=f"{_GUIDE}, 9.0; NVIDIA H200 datasheet (SXM; half of its rates with sparsity)"),
    Gpu(name="B200", target="sm_100a", sms=148, **_sm("10.0"), l2_bytes=126 * _MIB, memory_bytes=180 * 10**9, memory_bytes_per_s=8e12,
        clock_hz=1.965e9, vector_flops=_rates(f64=40, f32=80), matrix_flops=_rates(f64=40, tf32=1100, f16=2250, f8=4500, f4=9000, i8=4500),
        source=f"{_GUIDE}, 10.0; NVIDIA Blackwell architecture brief and tuning guide (HGX, 1000 W)"),
    Gpu(name="RTX 5090", target="sm_120", sms=170, **_sm("12.0"), l2_bytes=96 * _MIB, memory_bytes=32 << 30, memory_bytes_per_s=1.792e12,
        clock_hz=2.407e9, vector_flops=_rates(f32=104.8, half=104.8), matrix_flops=_rates(tf32=104.8, f16=209.5, f8=419, f4=1676, i8=838),
        source=f"{_GUIDE}, 12.0; NVIDIA RTX Blackwell GPU architecture whitepaper"),
    Gpu(name="MI250", target="gfx90a", sms=104, **_cdna(64), l2_bytes=8 * _MIB, memory_bytes=64 << 30, memory_bytes_per_s=1.638e12,
        clock_hz=1.7e9, vector_flops=_rates(f64=22.6, f32=22.6), matrix_flops=_rates(f64=45.3, f32=45.3, f16=181, i8=181),
        source="AMD Instinct MI250 data sheet, one of its two dies; AMD CDNA 2 whitepaper"),
    Gpu(name="MI300X", target="gfx942", sms=304, **_cdna(64), l2_bytes=32 * _MIB, memory_bytes=192 << 30, memory_bytes_per_s=5.3e12,
        clock_hz=2.1e9, vector_flops=_rates(f64=81.7, f32=163.4),
        matrix_flops=_rates(f64=163.4, f32=163.4, tf32=653.7, f16=1307.4, f8=2614.9, i8=2614.9),
        source="AMD Instinct MI300X data sheet; AMD CDNA 3 whitepaper (its 256 MiB Infinity Cache is not counted as L2)"),
    Gpu(name="MI355X", target="gfx950", sms=256, **_cdna(160), l2_bytes=32 * _MIB, memory_bytes=288 << 30, memory_bytes_per_s=8e12,
        clock_hz=2.4e9, vector_flops=_rates(f64=78.6, f32=157.3),
        matrix_flops=_rates(f64=78.6, f32=157.3, f16=2516.6, f8=5033.2, f4=10066.3, i8=5033.2),
        source="AMD Instinct MI355X data sheet; AMD CDNA 4 whitepaper"),
)  # fmt: skip

#: Canonical targets without a record of their own → the target whose limits they share.
_LIKE = {
    "sm_72": "sm_70",
    "sm_87": "sm_80",
    "sm_103a": "sm_100a",
    "sm_110a": "sm_100a",
    "sm_120a": "sm_120",
    "sm_121": "sm_120",
    "cutedsl": "sm_90a",
}


def _key(name: str) -> str:
    return re.sub(r"^(?:nvidia|amd|geforce|instinct|tesla)+", "", re.sub(r"[\s_-]", "", name.lower()))


_BY_TARGET: Mapping[str, Gpu] = {g.target: g for g in reversed(GPUS)}
_BY_NAME: Mapping[str, Gpu] = {**{_key(g.name): g for g in GPUS}, **{_key(g.name).removeprefix("rtx"): g for g in GPUS}}

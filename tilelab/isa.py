"""Which GPU has which instruction: lowering alone proves nothing, since TileLang lowers some kernels for GPUs that lack what they use.

The minimum architectures are those of the PTX ISA manual, under each instruction's "Target ISA Notes".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tilelab.machine import canonical_target, capability, is_nvidia


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """A hardware instruction. ``only`` lists the targets that have it; if empty, all from ``minimum`` on have it."""

    name: str
    minimum: tuple[int, int]
    what: str
    only: tuple[str, ...] = ()


_SM100 = ("sm_100a", "sm_103a", "sm_110a")
_ALL = (
    Instruction(name="ldmatrix", minimum=(7, 5), what="loads 8×8 matrices from shared memory into the registers of a warp"),
    Instruction(name="stmatrix", minimum=(9, 0), what="stores 8×8 matrices from the registers of a warp"),
    Instruction(name="mma.f16", minimum=(7, 0), what="float16 matrix multiply of a warp"),
    Instruction(name="mma.int8", minimum=(7, 5), what="int8 matrix multiply of a warp"),
    Instruction(name="mma.bf16", minimum=(8, 0), what="bfloat16 matrix multiply of a warp"),
    Instruction(name="mma.tf32", minimum=(8, 0), what="TF32 matrix multiply of a warp"),
    Instruction(name="mma.f64", minimum=(8, 0), what="float64 matrix multiply of a warp"),
    Instruction(name="mma.sp", minimum=(8, 0), what="2:4 sparse matrix multiply of a warp"),
    Instruction(name="mma.f8", minimum=(8, 9), what="float8 matrix multiply of a warp"),
    Instruction(name="mma.block_scale", minimum=(12, 0), only=("sm_120a",), what="block-scaled matrix multiply of a warp"),
    Instruction(name="cp.async", minimum=(8, 0), what="asynchronous copy from global to shared memory"),
    Instruction(name="redux.sync", minimum=(8, 0), what="integer reduction over a warp"),
    Instruction(name="mbarrier", minimum=(8, 0), what="barrier object in shared memory"),
    Instruction(name="mbarrier.try_wait", minimum=(9, 0), what="suspending wait on an mbarrier"),
    Instruction(name="cp.async.bulk", minimum=(9, 0), what="bulk and tensor copies by the TMA unit"),
    Instruction(name="tma.gather4", minimum=(10, 0), only=_SM100, what="TMA gather of four rows"),
    Instruction(name="cluster", minimum=(9, 0), what="thread block clusters and distributed shared memory"),
    Instruction(name="griddepcontrol", minimum=(9, 0), what="programmatic dependent launch"),
    Instruction(name="fence.proxy.async", minimum=(9, 0), what="order between ordinary and asynchronous accesses"),
    Instruction(name="wgmma", minimum=(9, 0), only=("sm_90a",), what="matrix multiply of a warpgroup"),
    Instruction(name="setmaxnreg", minimum=(9, 0), only=("sm_90a", *_SM100, "sm_120a"), what="moves registers between warpgroups"),
    Instruction(name="tcgen05", minimum=(10, 0), only=_SM100, what="fifth-generation tensor cores with tensor memory"),
    Instruction(name="f32x2", minimum=(10, 0), what="packed arithmetic on two float32"),
    Instruction(name="clc", minimum=(10, 0), what="cluster launch control"),
    Instruction(name="cvt.rs", minimum=(10, 0), only=("sm_100a", "sm_103a"), what="stochastic rounding to float8 and float4"),
)

#: Instruction by name.
ISA: Mapping[str, Instruction] = {i.name: i for i in _ALL}

#: Prefix of TVM's operation name → the instruction it becomes. The longest prefix counts.
NEEDS: Mapping[str, str] = {
    "tl.ptx_ldmatrix": "ldmatrix", "tirx.ptx_ldmatrix": "ldmatrix", "tl.ptx_stmatrix": "stmatrix",
    "tl.ptx_cp_async": "cp.async", "tirx.ptx_cp_async": "cp.async", "tirx.ptx_cp_async_bulk": "cp.async.bulk",
    "tirx.ptx_mma_sp": "mma.sp", "tl.ptx_mma_block_scale": "mma.block_scale",
    "tl.mbarrier_wait_parity": "mbarrier.try_wait", "tl.mbarrier_expect_tx": "mbarrier.try_wait",
    "tl.tma_load": "cp.async.bulk", "tl.tma_store": "cp.async.bulk", "tl.create_tma_descriptor": "cp.async.bulk",
    "tl.create_tma_im2col_descriptor": "cp.async.bulk", "tl.tma_load_gather4": "tma.gather4", "tl.tma_store_scatter4": "tma.gather4",
    "tl.ptx_wgmma": "wgmma", "tl.warpgroup_": "wgmma", "tl.wait_wgmma": "wgmma", "tl.initialize_wgmma_descriptor": "wgmma",
    "tl.tileop.wgmma_gemm": "wgmma", "tl.set_max_nreg": "setmaxnreg", "tl.fence_proxy_async": "fence.proxy.async",
    "tl.cluster_": "cluster", "tl.block_rank_in_cluster": "cluster", "tl.ptx_cluster_store": "cluster",
    "tl.ptx_arrive_cluster_barrier": "cluster",
    "tl.pdl_": "griddepcontrol", "tl.ptx_tcgen05": "tcgen05", "tl.tcgen05": "tcgen05", "tl.tileop.tcgen05": "tcgen05",
    "tl.initialize_tcgen05": "tcgen05", "tl.ptx_init_tensor_memory": "tcgen05", "tl.ptx_deallocate_tensor_memory": "tcgen05",
    "tl.deallocate_tmem": "tcgen05", "tl.clc_": "clc",
}  # fmt: skip

#: Kind of the operands of a matrix multiply (their dtype) → the warp-level instruction.
MMA: Mapping[str, str] = {
    "float16": "mma.f16", "bfloat16": "mma.bf16", "float32": "mma.tf32", "tfloat32": "mma.tf32", "float64": "mma.f64", "int8": "mma.int8",
    "uint8": "mma.int8", "float8_e4m3fn": "mma.f8", "float8_e5m2": "mma.f8",
}  # fmt: skip


def supports(target: str, instruction: str) -> bool:
    """Whether an NVIDIA ``target`` has ``instruction`` (a key of :data:`ISA`); False for other targets.

    Raises:
        InputError: There is no such target.
    """
    target = canonical_target(target)
    if not is_nvidia(target):
        return False
    entry = ISA[instruction]
    return target in entry.only if entry.only else capability(target) >= entry.minimum


def needed(op: str) -> str | None:
    """The instruction that operation ``op`` (TVM's full name) needs, or None if any GPU does it."""
    matches = [prefix for prefix in NEEDS if op.startswith(prefix)]
    return NEEDS[max(matches, key=len)] if matches else None


def where(instruction: str) -> str:
    """Which GPUs have it, in words: ``"sm_90a only"``, ``"sm_80 and newer"``."""
    entry = ISA[instruction]
    if entry.only:
        return f"{', '.join(entry.only)} only"
    return f"sm_{entry.minimum[0]}{entry.minimum[1]} and newer"

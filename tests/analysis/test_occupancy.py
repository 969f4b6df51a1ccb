"""Occupancy and roofline against cases worked out by hand from the published limits."""

from __future__ import annotations

import pytest

from tilelab.analysis.occupancy import occupancy
from tilelab.analysis.roofline import roofline
from tilelab.errors import InputError


@pytest.mark.parametrize(
    ("target", "threads", "smem", "registers", "blocks", "fraction", "by"),
    [
        # A100: 8 warps; 64 registers → 2048 a warp → 32 warps → 4 blocks; 48 KiB + 1 KiB → 3 blocks of 164 KiB
        ("sm_80", 256, 48 * 1024, 64, 3, 24 / 64, ("shared memory",)),
        ("sm_80", 256, 0, 64, 4, 32 / 64, ("registers",)),
        # 255 registers → 8160 → 8192 a warp → 8 warps
        ("sm_80", 128, 0, 255, 2, 8 / 64, ("registers",)),
        ("sm_80", 32, 0, 16, 32, 32 / 64, ("blocks",)),
        ("sm_80", 64, 0, 32, 32, 64 / 64, ("warps", "blocks", "registers")),
        # RTX 3090 holds 48 warps: one block of 32, or three of 16
        ("sm_86", 1024, 0, 32, 1, 32 / 48, ("warps",)),
        ("sm_86", 512, 0, 40, 3, 1.0, ("warps", "registers")),
        # H100: 168 registers and 384 threads (three warpgroups): 5376 a warp → 12 warps → 1 block
        ("sm_90a", 384, 200 * 1024, 168, 1, 12 / 64, ("registers", "shared memory")),
        # 96 registers: 3072 a warp → 21 warps → 20 in groups of four → 5 blocks of 4 warps
        ("sm_80", 128, 0, 96, 5, 20 / 64, ("registers",)),
        # V100 reserves nothing: 96 KiB / 32 KiB
        ("sm_70", 128, 32 * 1024, 32, 3, 12 / 64, ("shared memory",)),
        # MI300X: wavefronts of 64, 32 a compute unit; 64 KiB of LDS
        ("gfx942", 256, 32 * 1024, 64, 2, 8 / 32, ("shared memory",)),
    ],
)
def test_by_hand(target, threads, smem, registers, blocks, fraction, by):
    o = occupancy(target, threads=threads, smem_bytes=smem, registers=registers)
    assert o.blocks_per_sm == blocks
    assert o.fraction == pytest.approx(fraction)
    assert o.limited_by == by


def test_too_much_of_anything_is_no_block():
    assert occupancy("sm_80", threads=2048).limited_by == ("warps",)
    assert occupancy("sm_80", threads=128, smem_bytes=200 * 1024).blocks_per_sm == 0
    assert occupancy("sm_80", threads=128, registers=256).limits["registers"] == 0
    assert occupancy("sm_80", threads=128, smem_bytes=200 * 1024).waves(10) == float("inf")


def test_waves_and_unknown_registers():
    o = occupancy("A100", threads=256, smem_bytes=48 * 1024)
    assert not o.registers_known
    assert "registers" not in o.limits
    assert o.waves(324) == 1.0
    with pytest.raises(InputError):
        occupancy("A100", threads=0)


def test_roofline_of_a_copy_and_a_gemm():
    copy = roofline("H200", flops=0, bytes=4.8e12)
    assert (copy.bound, copy.bound_s, copy.intensity) == ("memory", 1.0, 0.0)
    n = 8192
    gemm = roofline("H200", flops=2 * n**3, bytes=3 * n * n * 2, dtype="bfloat16", measured_s=2 * n**3 / 780e12)
    assert gemm.bound == "compute"
    assert gemm.intensity == pytest.approx(n / 3)
    assert gemm.ridge == pytest.approx(989.4e12 / 4.8e12)
    assert gemm.attained == pytest.approx(780 / 989.4)
    assert gemm.ceiling_flops == pytest.approx(989.4e12)
    thin = roofline("H200", flops=2 * 64 * n * n, bytes=2 * (n * n + 2 * 64 * n), dtype="bfloat16")
    assert thin.bound == "memory"


def test_roofline_knows_what_a_gpu_computes_in():
    assert roofline("A100", flops=1e12, bytes=1, dtype="float32", matrix=False).compute_s == pytest.approx(1 / 19.5)
    assert roofline("MI300X", flops=1e12, bytes=1, dtype="float8_e4m3fnuz").compute_s == pytest.approx(1 / 2614.9)
    with pytest.raises(InputError, match="float8"):
        roofline("A100", flops=1, bytes=1, dtype="float8_e4m3fn")
    with pytest.raises(InputError):
        roofline("A100", flops=-1, bytes=1)

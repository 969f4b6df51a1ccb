"""Targets, GPUs and the instruction table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tilelab import isa, machine
from tilelab.errors import InputError


@pytest.mark.parametrize(
    ("given", "want"),
    [("sm_80", "sm_80"), ("sm80", "sm_80"), ("80", "sm_80"), ("8.0", "sm_80"), ("cuda -arch=sm_80", "sm_80"), (" SM_90 ", "sm_90a"), ("9.0", "sm_90a"),
     ("sm_90a", "sm_90a"), ("sm_100", "sm_100a"), ("sm_120", "sm_120"), ("gfx942", "gfx942"), ("hip -mcpu=gfx90a", "gfx90a"), ("metal", "metal"),
     ("c", "c"), ("H100", "sm_90a"), ("RTX 3090", "sm_86"), ("rtx4090", "sm_89"), ("NVIDIA A100", "sm_80"), ("mi300x", "gfx942")],
)  # fmt: skip
def test_canonical(given: str, want: str) -> None:
    assert machine.canonical_target(given) == want
    assert machine.canonical_target(want) == want


@pytest.mark.parametrize("given", ["sm_50", "sm_999", "", "cuda", "gfx1100", "H1000", "sm_", "--"])
def test_unknown_targets_are_refused_with_what_is_known(given: str) -> None:
    with pytest.raises(InputError, match="sm_80"):
        machine.canonical_target(given)


def test_every_record_is_consistent() -> None:
    for g in machine.GPUS:
        assert machine.canonical_target(g.target) == g.target
        assert g.warps_per_sm * g.warp == g.threads_per_sm
        assert g.smem_static_bytes <= g.smem_per_block_bytes <= g.smem_per_sm_bytes - g.smem_reserved_bytes
        assert g.threads_per_block <= g.threads_per_sm
        assert g.source
        assert machine.gpu(g.name) is g
        assert g.peak_flops["float16"] > g.peak_flops["float32"] > 1e12
        if machine.is_nvidia(g.target):
            # ordinary float32 arithmetic is 64 or 128 FMAs an SM and cycle
            per_cycle = g.vector_flops["float32"] / g.sms / g.clock_hz
            assert min(abs(per_cycle / 128 - 1), abs(per_cycle / 256 - 1)) < 0.08


def test_limits_of_well_known_gpus() -> None:
    assert machine.gpu("sm_80").smem_per_block_bytes == 166_912  # 163 KiB
    assert machine.gpu("sm_90").smem_per_block_bytes == 232_448  # 227 KiB
    assert machine.gpu("sm_86").smem_per_block_bytes == 101_376  # 99 KiB
    assert machine.gpu("sm_90a").name == "H100"
    assert machine.gpu("H200").memory_bytes_per_s == 4.8e12
    assert machine.gpu("gfx942").warp == 64
    with pytest.raises(InputError, match="not known"):
        machine.gpu("c")


def test_compute_capability() -> None:
    assert [machine.capability(t) for t in ("sm_70", "sm_90a", "sm_100a", "sm_121")] == [(7, 0), (9, 0), (10, 0), (12, 1)]
    with pytest.raises(InputError):
        machine.capability("metal")


@pytest.mark.parametrize(
    ("instruction", "has", "lacks"),
    [("cp.async", "sm_80", "sm_75"), ("mma.f8", "sm_89", "sm_86"), ("wgmma", "sm_90a", "sm_100a"), ("tcgen05", "sm_100a", "sm_120"),
     ("cp.async.bulk", "sm_120", "sm_89"), ("ldmatrix", "sm_75", "sm_70"), ("setmaxnreg", "sm_90a", "sm_80")],
)  # fmt: skip
def test_instructions(instruction: str, has: str, lacks: str) -> None:
    assert isa.supports(has, instruction)
    assert not isa.supports(lacks, instruction)
    assert not isa.supports("gfx942", instruction)


def test_operations_need_instructions() -> None:
    assert isa.needed("tl.ptx_wgmma_ss") == "wgmma"
    assert isa.needed("tl.tma_load_gather4") == "tma.gather4"
    assert isa.needed("tl.tma_load") == "cp.async.bulk"
    assert isa.needed("tirx.exp") is None
    assert set(isa.NEEDS.values()) <= set(isa.ISA)
    assert isa.where("wgmma") == "sm_90a only"
    assert isa.where("mma.f8") == "sm_89 and newer"


def test_no_heavy_import() -> None:
    code = "import sys, tilelab.machine, tilelab.isa; print([m for m in ('numpy', 'torch', 'tvm') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"

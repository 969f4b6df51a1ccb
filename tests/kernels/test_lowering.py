"""The portable kernels lower for AMD's gfx942 and for sm_80; the fast ones for sm_90a, with the instructions that they are there for."""

import pytest

import tilelab
from tilelab.kernels import attention, attention_backward, decode, fp8_gemm, gemm, grouped_gemm, mla, sparse_mla

PORTABLE = {
    "gemm": lambda: gemm.portable.get_tir(72, 136, 104, "NT", "bfloat16", True, "gelu", True, bm=64, bn=64),
    "combine": lambda: gemm.combine.get_tir(40, 72, 3),
    "attention": lambda: attention.portable.get_tir(2, 4, 2, 140, 200, 70, 100, 64, 64, True, 0, False),
    "mla": lambda: mla.portable.get_tir(16, 16),
    "decode": lambda: decode.portable.get_tir(8, 2, 64, 16),
    "decode 8-bit": lambda: decode.portable.get_tir(8, 2, 64, 16, kv_dtype="float8_e4m3fn"),
    "backward": lambda: attention_backward.portable.get_tir(1, 4, 2, 140, 200, 256, 140, 200, 64, 64),
    "sparse backward": lambda: sparse_mla.gradient.get_tir(16),
    "grouped": lambda: grouped_gemm.portable.get_tir(134, 3, 72, 104),
    "fp8": lambda: fp8_gemm.portable.get_tir(72, 136, 272),
}
FAST = {
    "gemm": lambda: gemm.hopper.get_tir(512, 512, 256),
    "fp8": lambda: fp8_gemm.hopper.get_tir(512, 512, 256),
    "decode": lambda: decode.hopper.get_tir(32, 8, 128, 64, 1),
    "backward": lambda: attention_backward.hopper.get_tir(1, 4, 4, 512, 512, 512, 512, 512),
    "mla": lambda: mla.hopper.get_tir(128),
}

SLOW = {"backward", "sparse backward", "mla", "decode 8-bit"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PORTABLE])
def test_lowers_for_amd(name):
    source = tilelab.lower(PORTABLE[name](), target="gfx942").source
    assert "__global__" in source
    if name != "combine":
        assert "mfma" in source.lower()


def test_lowers_for_ampere():
    assert "mma_sync" in tilelab.lower(PORTABLE["gemm"](), target="sm_80").source


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in FAST])
def test_the_fast_kernels_use_hopper(name):
    source = tilelab.lower(FAST[name](), target="sm_90").source
    for instruction in ("tma_load", "wgmma_", "warpgroup_reg" if name != "decode" else "arrive_and_expect_tx"):
        assert instruction in source

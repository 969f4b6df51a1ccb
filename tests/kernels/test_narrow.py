"""GEMV and the GEMM of four-bit weights: the kernels in the simulator at small ragged sizes, against float64."""

import pytest
import torch

import tilelab
from tests.kernels.test_operators import close, randn, simulate
from tilelab.errors import InputError
from tilelab.kernels import gemv, w4a16


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("N", "K"), [(40, 136), (7, 1001), (1, 1)])
def test_gemv(N, K, bias):
    w, x, b = randn(N, K), randn(K, seed=1), randn(N, seed=2)
    kernel = gemv.portable.get_tir(N, K, "bfloat16", bias, bn=8, bk=256)
    out = simulate(kernel, w, x, b if bias else torch.zeros(1).bfloat16(), torch.zeros(N).bfloat16())["y"]
    close(out, gemv.reference(w, x, bias=b if bias else None))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
@pytest.mark.parametrize(("M", "N", "K", "split"), [(40, 72, 256, 1), (3, 64, 384, 3)])
def test_four_bit_weights(M, N, K, split, dtype):
    a, (codes, scales) = randn(M, K, dtype=dtype), w4a16.quantize(randn(N, K, dtype=dtype, seed=1))
    shape, kind = ((M, N), dtype) if split == 1 else ((split, M, N), torch.float32)
    kernel = w4a16.portable.get_tir(M, N, K, str(dtype).removeprefix("torch."), bm=32, bn=64, split_k=split)
    out = simulate(kernel, a, codes.view(torch.int32), scales, torch.zeros(shape, dtype=kind))["C"]
    close((out if split == 1 else out.sum(0)).to(dtype), w4a16.reference(a, codes, scales))


def test_weights_are_made_once_for_many_rows():
    codes, scales = w4a16.quantize(randn(21, 256))
    out = simulate(w4a16.unpack.get_tir(21, 256), codes.view(torch.int32), scales, torch.zeros(21, 256).bfloat16())["W"]
    assert torch.equal(torch.as_tensor(out), w4a16.dequantize(codes, scales).bfloat16())


def test_a_lane_finds_its_weights_in_words_that_follow_each_other():
    for lane in range(4):
        mine = [c for c in range(128) if c % 8 // 2 == lane]  # what the operand's layout gives it
        assert sorted({w4a16.spot(c)[0] for c in mine}) == list(range(4 * lane, 4 * lane + 4))
    places = {w4a16.spot(c) for c in range(128)}
    assert len(places) == 128
    assert all(w4a16.spot(c + 1) == (w4a16.spot(c)[0], w4a16.spot(c)[1] + 16) for c in range(0, 128, 2))


def test_four_bits_hold_what_they_should():
    w = randn(8, 256, dtype=torch.float32)
    codes, scales = w4a16.quantize(w)
    exact = w4a16.dequantize(codes, scales)
    assert float((exact - w).abs().max()) <= float(scales.max()) / 2 + 1e-6
    again = w4a16.quantize(exact.float())
    assert torch.equal(again[0], codes)


def test_what_does_not_fit_is_said():
    with pytest.raises(InputError, match="K must be a multiple of 128"):
        w4a16.w4a16_gemm(randn(2, 64), torch.zeros(4, 32, dtype=torch.uint8), randn(4, 1))
    with pytest.raises(InputError, match="x must have 8 elements"):
        gemv.gemv(randn(4, 8), randn(9))


@pytest.mark.parametrize("target", ["gfx942", "sm_80", "sm_90"])
def test_lowers(target):
    assert "__global__" in tilelab.lower(gemv.portable.get_tir(40, 136), target=target).source
    assert "__global__" in tilelab.lower(w4a16.portable.get_tir(40, 72, 256), target=target).source

"""2:4 sparse GEMM: the compressor, its torch twin, the portable kernel in the simulator, and the order of codes that Hopper wants."""

import numpy as np
import pytest
import torch

import tilelab
from tests.kernels.test_operators import close, randn, simulate
from tilelab.errors import InputError
from tilelab.kernels import sparse_gemm as op


def ties():
    """Values with many equal magnitudes, zeros and signs."""
    return torch.randint(-2, 3, (40, 64), generator=torch.Generator().manual_seed(3)).half()


@pytest.mark.parametrize("a", [randn(24, 80, dtype=torch.float16), randn(5, 16), ties()], ids=["random", "small", "ties"])
def test_the_compressor_keeps_the_two_largest_of_four(a):
    M, K = a.shape
    dtype = str(a.dtype).removeprefix("torch.")
    empty = torch.zeros(M, K // 2, dtype=a.dtype), torch.zeros(M, K // 16, dtype=torch.int16)
    out = simulate(op.squeeze.get_tir(M, K, dtype), a, *empty)
    values, codes = op.squeezed(a)
    assert torch.equal(torch.as_tensor(out["values"]).view(torch.int16), values.view(torch.int16))
    assert np.array_equal(np.asarray(out["codes"]), codes.numpy())
    dense = op.compress(a).dense().view(M, -1, 4)
    groups = a.view(M, -1, 4)
    assert torch.equal(dense[dense != 0], groups[dense != 0])
    assert torch.equal(dense.abs().float().sum(-1), groups.abs().float().sort(-1).values[..., 2:].sum(-1))


@pytest.mark.parametrize("layout", ["NT", "NN"])
@pytest.mark.parametrize(("M", "N", "K"), [(72, 136, 112), (64, 64, 64)])
def test_sparse_gemm(layout, M, N, K):
    a = op.compress(randn(M, K, dtype=torch.float16))
    b = randn(*((N, K) if layout == "NT" else (K, N)), dtype=torch.float16, seed=1)
    out = simulate(op.portable.get_tir(M, N, K, layout), a.values, a.codes, b, torch.zeros(M, N).half())["C"]
    close(out, op.reference(a, b, layout=layout))


def test_the_order_of_codes_is_a_permutation_that_a_warp_reads_in_words():
    codes = torch.arange(64 * 8, dtype=torch.int16).view(64, 8)
    got = op.ordered(codes)
    assert got.shape == (2, 4, 256)
    assert sorted(got[:, 0].flatten().tolist()) == list(range(512))
    for warp, lane, step in [(0, 0, 0), (1, 5, 0), (3, 31, 1), (2, 18, 1)]:
        slot = (warp * 8 + lane // 4) * 2 + lane % 2
        for instruction in range(2):
            for half in range(2):
                row, word = warp * 16 + lane // 4 + 8 * half, step * 4 + instruction * 2 + lane % 2
                assert got[step, 0, slot * 4 + instruction * 2 + half] == codes[row, word]


def test_what_does_not_fit_is_said():
    with pytest.raises(InputError, match="multiple of 16"):
        op.compress(torch.zeros(4, 24).half())
    a = op.compress(torch.zeros(4, 32).half())
    with pytest.raises(InputError, match="disagree on K"):
        op.sparse_gemm(a, torch.zeros(8, 48).half())
    with pytest.raises(InputError, match="layout"):
        op.sparse_gemm(a, torch.zeros(8, 32).half(), layout="TT")


def test_lowers_for_ampere_and_hopper():
    assert "mma_sp" in tilelab.lower(op.portable.get_tir(72, 136, 112), target="sm_80").source
    source = tilelab.lower(op.hopper.get_tir(512, 512, 256), target="sm_90").source
    for instruction in ("tma_load", "wgmma_sp", "warpgroup_reg"):
        assert instruction in source

"""The lightning indexer in the simulator against float64: ragged queries and keys, each query with its own range."""

import pytest
import torch

import tilelab
from tests.kernels.test_operators import randn, simulate
from tilelab.errors import InputError
from tilelab.kernels import indexer as op


@pytest.mark.parametrize(("Q", "S", "H", "bq"), [(5, 150, 64, 1), (3, 64, 32, 2), (4, 100, 128, 1)])
def test_indexer(Q, S, H, bq):
    q, k = randn(Q, H, 128, dtype=torch.float32).to(torch.float8_e4m3fn), randn(S, 128, dtype=torch.float32, seed=1).to(torch.float8_e4m3fn)
    weights, scale = randn(Q, H, dtype=torch.float32, seed=2), randn(S, dtype=torch.float32, seed=3).abs()
    starts, ends = torch.tensor([0, 10, 20, 7, 0][:Q], dtype=torch.int32), torch.tensor([S, 60, 20, S, 1][:Q], dtype=torch.int32)
    kernel = op.portable.get_tir(Q, S, H, bq)
    logits = torch.full((Q, S), -float("inf"))
    out = torch.as_tensor(simulate(kernel, q.view(-1, 128), k, scale, weights, starts, ends, logits)["logits"]).double()
    want = op.reference(q, k, scale, weights, starts, ends)
    seen = torch.isfinite(want)
    assert torch.equal(torch.isfinite(out), seen)
    assert float((out - want)[seen].norm() / want[seen].norm()) < 1e-5


def test_what_does_not_fit_is_said():
    q, k = torch.zeros(2, 48, 128).to(torch.float8_e4m3fn), torch.zeros(4, 128).to(torch.float8_e4m3fn)
    with pytest.raises(InputError, match="32, 64 or 128 heads"):
        op.indexer(q, k, torch.zeros(4), torch.zeros(2, 48))


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_lowers(target):
    assert "__global__" in tilelab.lower(op.portable.get_tir(5, 150), target=target).source


def test_the_fast_kernel_uses_hopper():
    source = tilelab.lower(op.hopper.get_tir(8, 512), target="sm_90").source
    for instruction in ("tma_load", "wgmma_", "warpgroup_reg"):
        assert instruction in source

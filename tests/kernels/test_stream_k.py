"""Stream-K in the simulator: even shares of uneven tiles, joined in the order of the workers."""

import pytest
import torch

import tilelab
from tests.kernels.test_operators import close, randn, simulate
from tilelab.kernels import stream_k as op


@pytest.mark.parametrize(
    ("M", "N", "K", "workers"), [(72, 136, 104, 4), (64, 64, 256, 5), (130, 200, 96, 3), (128, 128, 64, 4), (64, 64, 32, 3), (64, 64, 128, 7)]
)
def test_stream_k(M, N, K, workers):
    a, b = randn(M, K), randn(N, K, seed=1)
    kernel = op.portable.get_tir(M, N, K, workers=workers)
    parts = torch.full((workers, 2, 64, 64), float("nan"))
    done = simulate(kernel, a, b, parts, torch.full((M, N), float("nan")).bfloat16())
    c = torch.as_tensor(done.get("C", torch.full((M, N), float("nan")).bfloat16()))
    if op.shares(M, N, K, workers, 64, 64, 32)[2]:
        join = op.fix.get_tir(M, N, K, "bfloat16", workers, 64, 64, 32)
        written = torch.as_tensor(done["parts"]) if "parts" in done else parts
        c = torch.as_tensor(simulate(join, written, c).get("C", c))
    close(c, op.reference(a, b))


@pytest.mark.parametrize("shape", [(2560, 1792, 8192), (64, 7168, 7168), (8192, 8192, 8192), (128, 256, 64)])
def test_shares_are_even_and_whole(shape):
    steps, rounds, units = op.shares(*shape, 132, 128, 256, 64)
    tiles = -(-shape[0] // 128) * -(-shape[1] // 256)
    assert rounds * 132 * steps + units == tiles * steps
    runs = [(w + 1) * units // 132 - w * units // 132 for w in range(132)]
    assert sum(runs) == units
    assert max(runs) - min(runs) <= 1
    assert units < 132 * steps


@pytest.mark.parametrize("target", ["gfx942", "sm_80"])
def test_lowers(target):
    assert "__global__" in tilelab.lower(op.portable.get_tir(72, 136, 104, workers=4), target=target).source
    assert "__global__" in tilelab.lower(op.fix.get_tir(72, 136, 104, "bfloat16", 4, 64, 64, 32), target=target).source


def test_the_fast_kernel_uses_hopper():
    source = tilelab.lower(op.hopper.get_tir(2560, 1792, 8192), target="sm_90").source
    for instruction in ("tma_load", "wgmma_", "warpgroup_reg"):
        assert instruction in source

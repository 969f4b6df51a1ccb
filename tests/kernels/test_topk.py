"""The top-k selector in the simulator: exact, stable among equals, rows of any length."""

import pytest
import torch

import tilelab
from tests.kernels.test_operators import simulate
from tilelab.errors import InputError
from tilelab.kernels import topk as op


def scores(kind, R, L):
    g = torch.Generator().manual_seed(L)
    if kind == "few values":
        return torch.randint(-2, 3, (R, L), generator=g).float()
    if kind == "zeros of both signs":
        return torch.where(torch.rand(R, L, generator=g) < 0.5, 0.0, -0.0)
    if kind == "extremes":
        pool = torch.tensor([float("inf"), -float("inf"), 1e-45, -1e-45, 3.4e38, -3.4e38, 1.0, float("nan")])
        return pool[torch.randint(0, 8, (R, L), generator=g)]
    if kind == "one bin":  # all in one bin of the first passes
        return 1 + torch.rand(R, L, generator=g) * 1e-5
    return torch.randn(R, L, generator=g)


@pytest.mark.parametrize("kind", ["random", "few values", "zeros of both signs", "extremes", "one bin"])
@pytest.mark.parametrize(("L", "k"), [(300, 17), (129, 200), (64, 64), (1, 1)])
def test_it_takes_what_a_stable_sort_takes(kind, L, k):
    R = 6
    x = scores(kind, R, L)
    starts = torch.tensor([0, L // 3, 0, L // 2, 0, 5], dtype=torch.int32).clamp(max=L)
    ends = torch.tensor([L, L, 2 * L // 3, L // 2 + 3, 0, 2], dtype=torch.int32).clamp(max=L)
    got = simulate(op.portable.get_tir(R, L, k, 128), x, starts, ends, torch.zeros(R, k, dtype=torch.int32))["indices"]
    assert torch.equal(torch.as_tensor(got), op.reference(x, k, starts, ends))


def test_more_threads_than_bins():
    x = scores("few values", 2, 1030)
    starts, ends = torch.zeros(2, dtype=torch.int32), torch.tensor([1030, 700], dtype=torch.int32)
    got = simulate(op.portable.get_tir(2, 1030, 40, 512), x, starts, ends, torch.zeros(2, 40, dtype=torch.int32))["indices"]
    assert torch.equal(torch.as_tensor(got), op.reference(x, 40, starts, ends))


def test_what_does_not_fit_is_said():
    with pytest.raises(InputError, match="k must be at least 1"):
        op.topk(torch.zeros(2, 8), 0)
    with pytest.raises(InputError, match="one entry for each of the 2 rows"):
        op.topk(torch.zeros(2, 8), 1, ends=torch.zeros(3, dtype=torch.int32))


@pytest.mark.parametrize("target", ["gfx942", "sm_80", "sm_90"])
def test_lowers(target):
    assert "__global__" in tilelab.lower(op.portable.get_tir(2, 1024, 64), target=target).source

"""The warp-specialised kernels of the newer operators, at tile level in the simulator: roles, rings and run-time loops, against float64."""

import pytest
import torch

import tilelab
from tests.kernels.test_operators import close, randn
from tilelab.kernels import fp8_gemm, indexer, stream_k
from tilelab.trace import SimParams

SM90 = SimParams(target="sm_90a")


def simulate(kernel, *tensors):
    trace = tilelab.simulate(kernel, *tensors, params=SM90)
    assert [str(f) for f in trace.findings if f.severity == "error"] == []
    return trace.outputs


def test_stream_k_walks_over_pieces_of_tiles():
    M, N, K, workers = 264, 520, 320, 4
    a, b = randn(M, K), randn(N, K, seed=1)
    sizes = {"bm": 128, "bn": 256, "bk": 64}
    assert stream_k.shares(M, N, K, workers, **sizes) == (5, 2, 5)
    parts, c = torch.full((workers, 2, 128, 256), float("nan")), torch.full((M, N), float("nan")).bfloat16()
    done = simulate(stream_k.hopper.get_tir(M, N, K, workers=workers), a, b, parts, c)
    fixed = simulate(stream_k.fix.get_tir(M, N, K, "bfloat16", workers), torch.as_tensor(done["parts"]), torch.as_tensor(done["C"]))
    close(torch.as_tensor(fixed["C"]), stream_k.reference(a, b))


def test_two_fp8_products_a_step():
    M, N, K = 256, 384, 256
    (a, sa), (b, sb) = (fp8_gemm.quantize(randn(r, K, dtype=torch.float32, seed=s), square=s > 0) for s, r in enumerate((M, N)))
    kernel = fp8_gemm.hopper.get_tir(M, N, K, True, "bfloat16", 2, bn=192, stages=2, cn=32, split=2)
    close(torch.as_tensor(simulate(kernel, a, b, sa, sb, torch.zeros(M, N).bfloat16())["C"]), fp8_gemm.reference(a, b, sa, sb))


@pytest.mark.parametrize("split", [1, 2])
def test_fp8_with_a_scale_a_tensor(split):
    M, N, K = 136, 200, 272
    a, b = ((randn(r, K, dtype=torch.float32) / scale).to(torch.float8_e4m3fn) for r, scale in ((M, 0.01), (N, 0.02)))
    kernel = fp8_gemm.hopper.get_tir(M, N, K, False, "bfloat16", 2, bn=192, stages=2, cn=32, split=split)
    scales = torch.full((1, 1), 0.01), torch.full((1, 1), 0.02)
    close(torch.as_tensor(simulate(kernel, a, b, *scales, torch.zeros(M, N).bfloat16())["C"]), fp8_gemm.reference(a, b, *scales))


def test_indexer_streams_the_keys_that_its_queries_see():
    Q, S, H = 7, 600, 64
    q, k = (randn(*s, dtype=torch.float32, seed=1).to(torch.float8_e4m3fn) for s in ((Q, H, 128), (S, 128)))
    weights, scale = randn(Q, H, dtype=torch.float32, seed=2), randn(S, dtype=torch.float32, seed=3).abs()
    starts, ends = (torch.tensor(v, dtype=torch.int32) for v in ([0, 10, 300, 7, 0, 260, 599], [600, 60, 520, 7, 0, 300, 600]))
    kernel = indexer.hopper.get_tir(Q, S, H, sms=2)
    out = simulate(kernel, q.view(-1, 128), k, scale, weights, starts, ends, torch.full((Q, S), -float("inf")))["logits"]
    want = indexer.reference(q, k, scale, weights, starts, ends)
    seen = torch.isfinite(want)
    got = torch.as_tensor(out).double()
    assert torch.equal(torch.isfinite(got), seen)
    assert float((got - want)[seen].norm() / want[seen].norm()) < 1e-5

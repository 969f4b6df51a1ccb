"""Every operator's portable kernel, in the simulator at small ragged sizes, agrees with its torch reference, with no finding of error level."""

import numpy as np
import pytest
import torch

import tilelab
from tilelab.kernels import attention, decode, fp8_gemm, gemm, grouped_gemm, mla

BOUND = {torch.bfloat16: 5e-3, torch.float16: 8e-4, torch.float32: 1e-5}


def simulate(kernel, *tensors):
    """The written tensors by name."""
    trace = tilelab.simulate(kernel, *tensors)
    assert [str(f) for f in trace.findings if f.severity == "error"] == []
    return trace.outputs


def close(out, want):
    out, want = torch.as_tensor(np.asarray(out, np.float64) if isinstance(out, np.ndarray) else out), want
    assert torch.isfinite(out.double()).all()
    error = float((out.double() - want).norm() / want.norm())
    assert error < BOUND[out.dtype], error


def randn(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


@pytest.mark.parametrize("layout", ["NT", "NN", "TN"])
@pytest.mark.parametrize(("activation", "more"), [(None, False), ("relu", True), ("gelu", True)])
def test_gemm(layout, activation, more):
    M, N, K = 72, 136, 104
    a, b = randn(*((K, M) if layout == "TN" else (M, K))), randn(*((N, K) if layout == "NT" else (K, N)), seed=1)
    bias, residual = randn(N, seed=2), randn(M, N, seed=3)
    kernel = gemm.portable.get_tir(M, N, K, layout, "bfloat16", more, activation, more, bm=64, bn=64)
    none = torch.zeros(1).bfloat16()
    out = simulate(kernel, a, b, bias if more else none, residual if more else none[None], torch.zeros(M, N).bfloat16())["C"]
    extra = {"bias": bias, "residual": residual} if more else {}
    close(out, gemm.reference(a, b, layout=layout, activation=activation, **extra))


def test_split_k_is_joined_with_the_epilogue():
    parts, bias, none = randn(3, 40, 72, dtype=torch.float32), randn(72), torch.zeros(1, 1).bfloat16()
    kernel = gemm.combine.get_tir(40, 72, 3, "bfloat16", True, "relu", False)
    out = simulate(kernel, parts, bias, none, torch.zeros(40, 72).bfloat16())["C"]
    close(out, torch.relu(parts.double().sum(0) + bias.double()))


@pytest.mark.parametrize(
    ("sq", "sk", "causal", "window"), [(70, 100, False, 0), (70, 100, True, 0), (100, 70, True, 0), (90, 90, True, 20), (1, 130, True, 0)]
)
def test_attention(sq, sk, causal, window):
    batch, heads, kv, dim = 2, 4, 2, 64
    q, k, v = randn(batch, sq, heads, dim), randn(batch, sk, kv, dim, seed=1), randn(batch, sk, kv, dim, seed=2)
    problem = (batch, heads, kv, batch * sq, batch * sk, sq, sk, dim, dim, causal, window, False, "bfloat16", dim**-0.5)
    starts = torch.zeros(batch + 1, dtype=torch.int32)
    flat = [t.reshape(-1, *t.shape[2:]) for t in (q, k, v)]
    out = simulate(attention.portable.get_tir(*problem), *flat, starts, starts, torch.zeros_like(flat[0]), torch.zeros(heads, batch * sq))
    want, lse = attention.reference(q, k, v, causal=causal, window=window)
    close(out["O"], want.reshape(-1, heads, dim))
    seen = torch.isfinite(lse)
    assert torch.equal(torch.isfinite(out["LSE"]), seen)
    torch.testing.assert_close(out["LSE"].double()[seen], lse[seen], rtol=1e-4, atol=1e-3)


def test_attention_of_packed_sequences_some_empty():
    heads, dim, lengths_q, lengths_k = 2, 64, [5, 0, 1, 70], [9, 3, 1, 66]
    q, k, v = randn(sum(lengths_q), heads, dim), randn(sum(lengths_k), heads, dim, seed=1), randn(sum(lengths_k), heads, dim, seed=2)
    cu_q, cu_k = (torch.tensor([0, *np.cumsum(n)], dtype=torch.int32) for n in (lengths_q, lengths_k))
    problem = (4, heads, heads, len(q), len(k), max(lengths_q), max(lengths_k), dim, dim, True, 0, True, "bfloat16", dim**-0.5)
    out = simulate(attention.portable.get_tir(*problem), q, k, v, cu_q, cu_k, torch.zeros_like(q), torch.zeros(heads, len(q)))["O"]
    for b in range(4):
        at, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        if lengths_q[b]:
            close(out[at][None], attention.reference(q[at][None], k[keys][None], v[keys][None], causal=True)[0])


@pytest.mark.parametrize(("page", "heads"), [(16, 16), (64, 40), (7, 8)])
def test_mla_decode(page, heads):
    lengths = torch.tensor([50, 0, 33], dtype=torch.int32)
    per = -(-50 // page)
    cache, q = randn(3 * per, page, 576), randn(3, heads, 576, seed=1)
    table = torch.randperm(3 * per, generator=torch.Generator().manual_seed(1)).to(torch.int32).view(3, per)
    kernel = mla.portable.get_tir(heads, page)
    out = simulate(kernel, q, cache.view(-1, 576), table, lengths, torch.zeros(1, 3, heads, 512).bfloat16(), torch.zeros(1, 3, heads))
    want, lse = mla.reference(q, cache, table, lengths)
    close(out["O"][0], want)
    torch.testing.assert_close(out["LSE"][0].double(), lse, rtol=1e-3, atol=1e-3)


def test_split_decode_is_joined_by_lse():
    parts, lse = randn(3, 2, 4, 512, dtype=torch.float32), randn(3, 2, 4, dtype=torch.float32)
    lse[1, 0, 0] = lse[:, 1, 3] = -torch.inf
    kernel = mla.combine.get_tir(4, 3)
    out = simulate(kernel, parts, lse, torch.zeros(2, 4, 512).bfloat16(), torch.zeros(2, 4))
    weights = torch.softmax(lse.double(), 0).nan_to_num(0)
    close(out["O"], (parts.double() * weights[..., None]).sum(0))
    torch.testing.assert_close(out["LSE"].double(), torch.logsumexp(lse.double(), 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("page", "heads", "kv", "dtype"), [(16, 8, 2, torch.bfloat16), (64, 4, 4, torch.float16), (5, 20, 1, torch.bfloat16)])
def test_decode(page, heads, kv, dtype):
    lengths = torch.tensor([70, 0, 17], dtype=torch.int32)
    per = -(-70 // page)
    caches = [randn(3 * per, page, kv, 64, dtype=dtype, seed=s) for s in (1, 2)]
    table = torch.randperm(3 * per, generator=torch.Generator().manual_seed(1)).to(torch.int32).view(3, per)
    q = randn(3, heads, 64, dtype=dtype)
    kernel = decode.portable.get_tir(heads, kv, 64, page, str(dtype).removeprefix("torch."), 0.125, str(dtype).removeprefix("torch."))
    out = simulate(kernel, q, *caches, torch.ones(2), table, lengths, torch.zeros(1, 3, heads, 64, dtype=dtype), torch.zeros(1, 3, heads))
    want, lse = decode.reference(q, *caches, table, lengths)
    close(out["O"][0], want)
    torch.testing.assert_close(out["LSE"][0].double(), lse, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("blocks", [True, False])
def test_fp8_gemm(blocks):
    M, N, K = 72, 136, 272
    x, y = randn(M, K, dtype=torch.float32), randn(N, K, dtype=torch.float32, seed=1)
    if blocks:
        (a, sa), (b, sb) = fp8_gemm.quantize(x, square=False), fp8_gemm.quantize(y, square=True)
    else:
        a, b = (x / 0.01).to(torch.float8_e4m3fn), (y / 0.02).to(torch.float8_e4m3fn)
        sa, sb = torch.full((1, 1), 0.01), torch.full((1, 1), 0.02)
    out = simulate(fp8_gemm.portable.get_tir(M, N, K, blocks), a, b, sa, sb, torch.zeros(M, N).bfloat16())["C"]
    close(out, fp8_gemm.reference(a, b, sa, sb))
    assert float((out.double() - x.double() @ y.double().T).norm() / (x.double() @ y.double().T).norm()) < 0.06


@pytest.mark.parametrize("lengths", [[64, 64], [0, 1, 70, 0, 33, 5], [3]])
def test_grouped_gemm(lengths):
    N, K = 72, 104
    a, b = randn(sum(lengths), K), randn(len(lengths), N, K, seed=1)
    ends = torch.tensor(np.cumsum(lengths), dtype=torch.int32)
    kernel = grouped_gemm.portable.get_tir(len(a), len(lengths), N, K)
    out = simulate(kernel, a, b, ends, torch.full((len(a), N), float("nan")).bfloat16())["C"]
    close(out, grouped_gemm.reference(a, b, ends))

"""Attention's gradients, sparse MLA and decode over 8-bit caches: the portable kernels in the simulator against torch in float64."""

import numpy as np
import pytest
import torch

import tilelab
from tilelab.errors import InputError
from tilelab.kernels import attention, attention_backward, decode, mla, sparse_mla

BOUND = 8e-3


def randn(*shape, dtype=torch.bfloat16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).to(dtype)


def simulate(kernel, *tensors):
    trace = tilelab.simulate(kernel, *tensors)
    assert [str(f) for f in trace.findings if f.severity == "error"] == []
    return trace.outputs


def error(out, want):
    out = torch.as_tensor(np.asarray(out, np.float64)) if isinstance(out, np.ndarray) else out.double()
    assert torch.isfinite(out).all()
    return float((out - want).norm() / want.norm())


def flat(t):
    return t.reshape(-1, *t.shape[-2:])


def gradients(q, k, v, dout, out, lse, p, cu_q, cu_k):
    """The three kernels of the backward, one after the other."""
    rows = attention_backward.padded_rows(p)
    kernel = attention_backward.prepare.get_tir(p.batch, p.heads, p.tokens_q, rows, p.longest_q, p.dim, p.dim_v, p.varlen, p.dtype)
    spaces = torch.full((p.heads, rows), torch.nan), torch.full((p.heads, rows), torch.nan), torch.full((p.heads, rows, p.dim), torch.nan)
    before = simulate(kernel, out, dout, lse, cu_q, *spaces)
    sizes = (p.batch, p.heads, p.kv_heads, p.tokens_q, p.tokens_k, rows, p.longest_q, p.longest_k, p.dim, p.dim_v)
    kernel = attention_backward.portable.get_tir(*sizes, p.causal, p.window, p.varlen, p.dtype, p.scale)
    main = simulate(
        kernel,
        q,
        k,
        v,
        dout,
        before["LSE"],
        before["Delta"],
        cu_q,
        cu_k,
        before["dQ"].nan_to_num(0),
        torch.zeros_like(k),
        torch.zeros_like(v),
    )
    kernel = attention_backward.finish.get_tir(p.batch, p.heads, p.tokens_q, rows, p.longest_q, p.dim, p.varlen, p.dtype, p.scale)
    return simulate(kernel, main["dQ"], cu_q, torch.zeros_like(q))["dQ"], main["dK"], main["dV"]


@pytest.mark.parametrize(
    ("sq", "sk", "causal", "window", "dims"),
    [
        (70, 100, False, 0, (64, 64)),
        (100, 70, True, 0, (64, 64)),
        (90, 90, True, 20, (64, 64)),
        (40, 33, True, 0, (192, 128)),
        (1, 65, True, 0, (64, 64)),
    ],
)
def test_attention_backward(sq, sk, causal, window, dims):
    q, dout = randn(1, sq, 2, dims[0]), randn(1, sq, 2, dims[1], seed=3)
    k, v = randn(1, sk, 1, dims[0], seed=1), randn(1, sk, 1, dims[1], seed=2)
    out, lse = attention.reference(q, k, v, causal=causal, window=window)
    p, cu_q, cu_k = attention.describe(q, k, v, causal, window, None, None, None, None, None)
    got = gradients(*map(flat, (q, k, v, dout, out.bfloat16())), lse.float(), p, cu_q, cu_k)
    for own, want in zip(got, attention_backward.reference(dout, q, k, v, causal=causal, window=window), strict=True):
        assert error(own, flat(want)) < BOUND


def test_attention_backward_of_packed_sequences_some_empty():
    lengths_q, lengths_k = [5, 0, 1, 40], [9, 3, 1, 36]
    cu_q, cu_k = (torch.tensor([0, *np.cumsum(n)], dtype=torch.int32) for n in (lengths_q, lengths_k))
    q, dout = randn(sum(lengths_q), 2, 64), randn(sum(lengths_q), 2, 64, seed=3)
    k, v = randn(sum(lengths_k), 2, 64, seed=1), randn(sum(lengths_k), 2, 64, seed=2)
    out, lse, want = torch.zeros_like(q), torch.zeros(2, len(q)), [torch.zeros(t.shape, dtype=torch.float64) for t in (q, k, v)]
    for b in range(4):
        at, keys = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        if lengths_q[b]:
            part, sums = attention.reference(q[at][None], k[keys][None], v[keys][None], causal=True)
            out[at], lse[:, at] = part[0].bfloat16(), sums.float()
            parts = attention_backward.reference(dout[at][None], q[at][None], k[keys][None], v[keys][None], causal=True)
            for whole, piece, where in zip(want, parts, (at, keys, keys), strict=True):
                whole[where] = piece[0]
    p, cu_q, cu_k = attention.describe(q, k, v, True, 0, None, cu_q, cu_k, max(lengths_q), max(lengths_k))
    for own, exact in zip(gradients(q, k, v, dout, out, lse, p, cu_q, cu_k), want, strict=True):
        assert error(own, exact) < BOUND


def picks(queries, keys, tokens):
    """Indices with gaps, repetitions, one past the end, and a query without a key."""
    indices = torch.randint(0, tokens, (queries, keys), generator=torch.Generator().manual_seed(5)).to(torch.int32)
    indices[0, ::3] = -1
    indices[1] = -1
    indices[2, 5:9] = 7
    indices[2, 0] = tokens + 5
    return indices


def test_sparse_mla_both_ways():
    heads, tokens, indices = 8, 60, picks(3, 40, 60)
    q, kv, dout = randn(3, heads, 576), randn(tokens, 576), randn(3, heads, 512)
    lengths = torch.full((3,), 40, dtype=torch.int32)
    o = simulate(
        mla.portable.get_tir(heads, 1), q, kv, indices, lengths, torch.zeros(1, 3, heads, 512).bfloat16(), torch.zeros(1, 3, heads)
    )
    exact_q, exact_kv = q.double().requires_grad_(), kv.double().requires_grad_()
    want, lse = sparse_mla.reference(exact_q, exact_kv, indices)
    assert error(o["O"][0], want.detach()) < BOUND
    assert torch.equal(torch.isfinite(o["LSE"][0]), torch.isfinite(lse))
    assert float(o["O"][0, 1].abs().max()) == 0
    want[[0, 2]].backward(dout[[0, 2]].double())
    delta = torch.linalg.vecdot(dout.float(), o["O"][0].float())
    got = simulate(
        sparse_mla.gradient.get_tir(heads), q, kv, indices, dout, o["LSE"][0], delta, torch.zeros_like(q), torch.zeros(tokens, 576)
    )
    assert error(got["dQ"], exact_q.grad) < BOUND
    assert error(got["dKV"], exact_kv.grad) < BOUND
    assert float(got["dQ"][1].abs().max()) == 0


@pytest.mark.parametrize("page", [16, 5])
def test_decode_over_an_8_bit_cache(page):
    lengths, per = torch.tensor([70, 0, 17], dtype=torch.int32), -(-70 // page)
    caches = [randn(3 * per, page, 2, 64, seed=s).to(torch.float8_e4m3fn) for s in (1, 2)]
    table = torch.randperm(3 * per, generator=torch.Generator().manual_seed(1)).to(torch.int32).view(3, per)
    q, scales = randn(3, 8, 64), torch.tensor([0.5, 2.0])
    kernel = decode.portable.get_tir(8, 2, 64, page, "bfloat16", 0.125, "float8_e4m3fn")
    out = simulate(kernel, q, *caches, scales, table, lengths, torch.zeros(1, 3, 8, 64).bfloat16(), torch.zeros(1, 3, 8))
    want, lse = decode.reference(q, *caches, table, lengths, kv_scales=scales)
    assert error(out["O"][0], want) < BOUND
    torch.testing.assert_close(out["LSE"][0].double(), lse, rtol=1e-3, atol=1e-3)


def test_wrong_arguments_are_one_clear_sentence():
    q, kv = randn(2, 4, 576), randn(9, 576)
    with pytest.raises(InputError, match="indices must be int32"):
        sparse_mla.sparse_mla(q, kv, torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(InputError, match="a row for each of q's 2 queries"):
        sparse_mla.sparse_mla(q, kv, torch.zeros(3, 3, dtype=torch.int32))
    a = randn(1, 8, 2, 64)
    with pytest.raises(InputError, match="dout must be"):
        attention_backward.attention_backward(randn(1, 9, 2, 64), a, a, a, a, torch.zeros(2, 8))


def test_an_operator_is_called_by_its_name_however_often():
    import tilelab.kernels as kernels

    for name in ("gemm", "attention", "attention_backward", "decode", "sparse_mla"):
        first, second = getattr(kernels, name), getattr(kernels, name)
        assert first is second
        assert callable(first)
        assert callable(first.reference)
    for name in kernels.__all__:
        assert callable(getattr(kernels, name)), name
    with pytest.raises(InputError, match="q must have 3 axes"):
        kernels.decode(torch.zeros(2, 2), *[None] * 4)

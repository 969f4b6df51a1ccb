"""The library's production kernels for Hopper (roles, bulk copies, clusters, persistent schedules) against numpy, without a GPU."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.sim.conftest import codes
from tilelab.trace import SimParams

BF = ml_dtypes.bfloat16
SM90 = SimParams(target="sm_90a")


def bf(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32).astype(BF)


def softmax(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def close(got, want):
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("cluster", [1, 2])
def test_persistent_gemm(run, rng, cluster):
    from tilelab.kernels import gemm

    m, n, k = 512, 256, 192
    a, b = bf(rng, m, k), bf(rng, n, k)
    none = np.zeros(1, BF)
    trace = run(
        gemm.hopper,
        consts={"M": m, "N": n, "K": k, "sms": 4, "cluster": cluster, "group": 2},
        params=SM90,
        A=a,
        B=b,
        bias_v=none,
        res=none.reshape(1, 1),
    )
    close(trace.outputs["C"], a.astype(np.float64) @ b.astype(np.float64).T)
    assert codes(trace) == []


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(run, rng, causal):
    from tilelab.kernels import attention

    heads, s, d = 2, 256, 64
    q, k, v = bf(rng, s, heads, d), bf(rng, s, 1, d), bf(rng, s, 1, d)
    ends = np.array([0, s], np.int32)
    consts = {"batch": 1, "heads": heads, "kv_heads": 1, "tokens_q": s, "tokens_k": s, "longest_q": s, "longest_k": s, "dim": d, "dim_v": d}
    trace = run(attention.hopper, consts={**consts, "causal": causal, "scale": d**-0.5}, params=SM90, Q=q, K=k, V=v, cu_q=ends, cu_k=ends)
    scores = np.einsum("ihd,jd->hij", q.astype(np.float64), k[:, 0].astype(np.float64)) * d**-0.5
    if causal:
        scores = np.where(np.tril(np.ones((s, s), bool)), scores, -np.inf)
    close(trace.outputs["O"], np.einsum("hij,jd->ihd", softmax(scores), v[:, 0].astype(np.float64)))
    assert codes(trace) == []


def test_flash_mla_and_its_portable_form_agree(run, rng):
    from tilelab.kernels import mla

    heads, page, lengths = 64, 64, np.array([200, 130], np.int32)
    q, cache = bf(rng, 2, heads, 576), bf(rng, 64 * 8, 576)
    table = rng.permutation(8).reshape(2, 4).astype(np.int32)
    want = np.zeros((1, 2, heads, 512))
    for b in range(2):
        rows = np.concatenate([cache[t * page : (t + 1) * page] for t in table[b]])[: lengths[b]].astype(np.float64)
        want[0, b] = softmax(q[b].astype(np.float64) @ rows.T * 576**-0.5) @ rows[:, :512]
    for kernel in (mla.hopper, mla.portable):
        trace = run(kernel, consts={"heads": heads, "page": page}, params=SM90, Q=q, KV=cache, table=table, lengths=lengths)
        close(trace.outputs["O"], want)
        assert codes(trace) == []


def test_grouped_gemm_with_an_empty_group(run, rng):
    from tilelab.kernels import grouped_gemm

    ends, n, k = np.array([100, 100, 300], np.int32), 256, 128
    a, w = bf(rng, 300, k), bf(rng, 3, n, k)
    trace = run(grouped_gemm.hopper, consts={"total": 300, "groups": 3, "N": n, "K": k, "sms": 4}, params=SM90, A=a, B=w, ends=ends)
    parts = [a[lo:hi].astype(np.float64) @ w[g].astype(np.float64).T for g, (lo, hi) in enumerate(zip([0, 100, 100], ends, strict=True))]
    close(trace.outputs["C"], np.concatenate(parts))
    assert codes(trace) == []

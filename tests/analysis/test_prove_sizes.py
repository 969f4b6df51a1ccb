"""Proofs over all sizes of kernels as people write them: nothing open where integers decide, and no false alarm."""

import pytest

from tests.analysis.kernels import sized
from tilelab.analysis.prove import prove
from tilelab.compiler import capture

#: Kernel → what is refuted beyond accesses that TileLang masks, and how many questions stay open.
EXPECTED = {
    "vadd": ([], 0), "vadd_guard": ([], 0), "gemm": ([], 0), "softmax": ([], 0), "transpose": ([], 0), "rowsum": ([], 0), "rope": ([], 0),
    "histogram": (["s[A[bx * 1024 + i]] is out of bounds"], 0), "histogram_safe": ([], 0), "conv1d": ([], 0),
    "conv_wrong": (["s[i + 3] is out of bounds when n = 1, i = 127"], 0), "stencil2d": ([], 0), "batched_gemv": ([], 0),
    "persistent_gemm": ([], 0), "overlap_bug": (["blocks bx = 0 and bx = 1 both write O[100] when n = 101"], 0), "scatter": ([], 2),
    "paged": ([], 0),
}  # fmt: skip
#: Those whose every access is guarded: nothing at all is refuted.
GUARDED = ("vadd_guard", "transpose", "histogram_safe", "conv1d", "stencil2d", "batched_gemv", "rope")


@pytest.mark.parametrize("name", EXPECTED)
def test_a_kernel_of_any_size(name):
    refuted, left = EXPECTED[name]
    proof = prove(capture(getattr(sized, name)()))
    masked = [c for c in proof.refuted if c.kind == "bounds" and c.scope == "global"]
    wrong = [c for c in proof.refuted if c not in masked]
    assert len(wrong) == len(refuted)
    for claim, text in zip(wrong, refuted, strict=True):
        assert text in claim.message
    assert len([c for c in proof.claims if c.holds is None]) == left
    if name in GUARDED:
        assert not masked
    assert all(f.severity in ("info", "warning") for f in proof.findings() if f.code == "TL102")

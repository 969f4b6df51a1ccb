"""The pytest plugin: a suite written for a GPU runs, and TileLang's own markers do not skip it."""

import pytest

SUITE = """
import tilelang.testing
import tilelang
import tilelang.language as T
import torch

@tilelang.jit(out_idx=[-1])
def negate(n):
    @T.prim_func
    def kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(n):
                B[i] = -A[i]
    return kernel

def check():
    x = torch.randn(64, device="cuda")
    torch.testing.assert_close(negate(64)(x), -x)

@tilelang.testing.requires_cuda
def test_cuda():
    check()

@tilelang.testing.requires_cuda_compute_version_ge(9, 0)
def test_hopper():
    check()

@tilelang.testing.requires_cuda_compute_version_ge(10, 0)
def test_blackwell():
    check()
"""


@pytest.mark.slow
def test_requires_cuda_is_satisfied_for_the_chosen_gpu(shell, tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    common = ("-m", "pytest", "-p", "tilelab.pytest_plugin", "-p", "no:cacheprovider", "-q", "test_suite.py")
    done = shell(*common, "--tilelab-sim", python=True)
    assert "2 passed, 1 skipped" in done.out, done.out + done.err
    newer = shell(*common, "--tilelab-sim", "--tilelab-target", "sm_100", python=True)
    assert "3 passed" in newer.out, newer.out + newer.err

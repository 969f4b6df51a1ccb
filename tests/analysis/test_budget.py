"""Budgets of captured kernels; the expected bytes are what TileLang's own lowering allocates (checked beside them)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelab.analysis.budget import budget_findings
from tilelab.analysis.shared import shared_use
from tilelab.compiler import capture
from tilelab.errors import InputError


@pytest.fixture
def kernels(budget_kernels):
    return budget_kernels


@pytest.fixture
def lines(kernels):
    return Path(kernels.__file__).read_text(encoding="utf-8").splitlines()


def needed(kernel, **consts):
    (use,) = shared_use(capture(kernel(**consts)))
    return use.bytes


def lowered_bytes(kernel, target="sm_80"):
    """The size of the merged shared allocation in TileLang's lowered device program."""
    import tilelang
    import tvm
    from tilelang.engine.lower import lower

    assert tilelang.__version__
    chosen = tvm.target.Target({"kind": "cuda", "arch": target})
    with chosen:
        text = lower(kernel, target=chosen).device_mod.script()
    return int(re.search(r"buf_dyn_shmem = T\.alloc_buffer\(\((\d+),\)", text).group(1))


@pytest.mark.parametrize(
    ("kernel", "consts", "want"),
    [
        ("gemm", {"stages": 2}, 32768),  # s takes the space of a and b
        ("gemm", {"stages": 3}, 49152),
        ("computed_in_the_loop", {"stages": 3}, 65536),  # three copies of a, one of b
        ("one_after_the_other", {}, 98304),
    ],
)
def test_bytes_are_those_of_the_lowering(kernels, kernel, consts, want):
    kernel = getattr(kernels, kernel)
    assert needed(kernel, **consts) == want == lowered_bytes(kernel(**consts))


def test_no_gpu_has_a_mebibyte(kernels, lines):
    (f,) = budget_findings(capture(kernels.big()), "sm_80")
    assert (f.code, f.severity) == ("TL501", "error")
    assert "1 MiB" in f.message
    assert "163 KiB" in f.message
    assert "A100" in f.message
    assert "no GPU has that much" in f.message
    assert "S " in f.message
    assert "S" in f.fix
    assert lines[f.line - 1].strip().startswith("S = T.alloc_shared")
    assert f.evidence["buffers"][0] == {
        "name": "S",
        "dtype": "float32",
        "shape": [1024, 256],
        "bytes": 1 << 20,
        "copies": 1,
        "line": f.line,
    }


def test_another_gpu_would_have_enough(kernels):
    program = capture(kernels.big(rows=160))  # 160 KiB
    assert budget_findings(program, "sm_80") == ()
    (f,) = budget_findings(program, "sm_86")
    assert "A100" in f.message
    assert f.evidence["limit_bytes"] == 99 * 1024
    assert "160×128" in f.fix
    assert budget_findings(capture(kernels.big(rows=228)), "H100") != ()
    assert budget_findings(capture(kernels.big(rows=227)), "H100") == ()


def test_stages_are_named_and_a_fitting_number_offered(kernels):
    program = capture(kernels.gemm(stages=20))
    (f,) = budget_findings(program, "sm_80")
    assert f.code == "TL501"
    assert "20 stages" in f.message
    assert "num_stages=10 fits" in f.fix  # 10 × 16 KiB = 160 KiB ≤ 163 KiB
    assert budget_findings(capture(kernels.gemm(stages=10)), "sm_80") == ()
    assert len(budget_findings(capture(kernels.gemm(stages=11)), "sm_80")) == 1


def test_static_shared_memory_is_limited_to_48_kib(kernels):
    assert budget_findings(capture(kernels.static(rows=48)), "sm_80") == ()
    (f,) = budget_findings(capture(kernels.static(rows=49)), "sm_80")
    assert f.code == "TL501"
    assert "shared.dyn" in f.fix


def test_threads(kernels, lines):
    (f,) = budget_findings(capture(kernels.threads()), "sm_80")
    assert (f.code, f.severity) == ("TL502", "error")
    assert "2,048" in f.message
    assert "1,024" in f.message
    assert "threads=1024" in f.fix
    assert "T.Kernel" in lines[f.line - 1]
    assert budget_findings(capture(kernels.threads(n=1024)), "sm_80") == ()
    assert len(budget_findings(capture(kernels.threads(n=1056)), "gfx942")) == 1


def test_targets_without_known_limits_say_nothing_and_unknown_ones_are_refused(kernels):
    program = capture(kernels.threads())
    assert budget_findings(program, "c") == ()
    with pytest.raises(InputError):
        budget_findings(program, "sm_1")

"""Native builds: what can be known with no GPU. The rest runs on one, by tests/gpu."""

import pytest
from cases import cases

import tilelab
from tilelab import build, ir
from tilelab.errors import EnvironmentLacks

WRITTEN = {
    "copy1d_1": {"B"},
    "vector_add_dynamic": {"B"},
    "gemm_split_k": {"C"},
    "histogram": {"H"},
    "atomics_min_max": {"O"},
    "look_back": {"flags", "sums", "O"},
    "scatter_add": {"O"},
    "conv_im2col": {"O"},
    "strided_view": {"Y"},
    "printed": set(),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written_parameters(name):
    case = next(c for c in cases() if c.name == name)
    assert build.written_params(tilelab.capture(case.load(), consts=case.consts)) == WRITTEN[name]


def test_without_a_device_it_says_what_is_lacking(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(EnvironmentLacks, match=r"without CUDA.*--device sim") as caught:
        build.device_target()
    assert caught.value.exit_code == 3
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentLacks, match="no CUDA device"):
        build.build(ir.Program(name="k", level="tile", params=(), body=()))


def test_the_device_names_the_target(monkeypatch):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert build.device_target() == "sm_90a"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (8, 6))
    assert build.device_target() == "sm_86"

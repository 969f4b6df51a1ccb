"""The resources view: numbers against the occupancy rules and plain arithmetic, its lowerings, and the golden."""

import json

import pytest
from schedule_programs import gemm_program

from tilelab.errors import InputError
from tilelab.views import View, resources

GPUS = ("A100", "RTX 4090", "H200")


def test_golden(golden):
    view = resources(gemm_program(tile=(128, 128, 64), stages=4), "A100", gpus=GPUS, measured_s=2e-6)
    golden("views/resources_gemm", {"view": view.to_json(), "table": view.table()[1]})


def test_points_by_arithmetic():
    view = resources(gemm_program(m=256, n=128, k=512), "A100", gpus=("A100",), measured_s=1e-5)
    asked, least, measured = view.data["gpus"][0]["roofline"]["points"]
    flops, moved = 2 * 256 * 128 * 512, 2 * (256 * 512 + 512 * 128) + 4 * 256 * 128
    assert least["intensity"] == pytest.approx(flops / moved)
    assert least["seconds"] == pytest.approx(max(flops / 312e12, moved / 2.039e12))
    assert asked["intensity"] < least["intensity"]
    assert measured["rate"] == pytest.approx(flops / 1e-5)


def test_where_it_runs():
    gpus = {g["name"]: g for g in resources(gemm_program(tile=(128, 128, 128), stages=3), gpus=GPUS).data["gpus"]}
    assert [gpus[n]["runs"] for n in GPUS] == [False, False, True]
    assert gpus["A100"]["change"] == "num_stages=2"
    assert gpus["A100"]["kernels"][0]["blocks"] == 0


def test_round_trip_and_lowerings():
    view = resources(gemm_program(), "H200")
    assert View.from_json(json.loads(view.render("json"))).to_json() == view.to_json()
    assert "H200 (sm_90a)" in view.to_text()
    assert "<svg" in view.to_svg()
    assert view.to_matplotlib().axes
    assert "占用率" in resources(gemm_program(), lang="zh").to_text()
    with pytest.raises(InputError):
        resources(gemm_program(), "RTX 1")

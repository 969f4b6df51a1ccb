"""The pipeline view: its record against plain counting, its lowerings, and the golden that the TypeScript tests read."""

import json

import pytest
from schedule_programs import gemm_program

from tilelab.errors import InputError
from tilelab.views import View, pipeline


@pytest.mark.parametrize("stages", [1, 3])
def test_golden(golden, stages):
    view = pipeline(gemm_program(stages=stages))
    plan = view.data["loops"][0]["plans"][0]
    at = {}
    for h in plan["held"]:
        for step in range(h["written"], h["last"] + 1):
            at[f"{h['buffer']},{h['version']},{step}"] = [h["iteration"], step < h["read"]]
    golden(f"views/pipeline_gemm_{stages}", {"view": view.to_json(), "held": at, "table": view.table(12)[1]})


def test_round_trip_and_lowerings():
    view = pipeline(gemm_program())
    assert View.from_json(json.loads(view.render("json"))).to_json() == view.to_json()
    assert "copy A → a" in view.to_text()
    assert view.to_svg().count("<rect") > 60
    assert "拷贝领先" in pipeline(gemm_program(), lang="zh").to_text()
    assert view.to_matplotlib().axes


def test_what_does_not_fit_is_said():
    plans = pipeline(gemm_program(tile=(128, 128, 128), stages=2)).data["loops"][0]["plans"]
    assert [p["fits"] for p in plans[1:]] == [True, True, False, False, False]


def test_a_schedule_by_hand_says_what_it_breaks():
    view = pipeline(gemm_program(), order=[0, 1, 2], stage=[1, 0, 0])
    assert [f["code"] for f in view.data["loops"][0]["plans"][0]["findings"]] == ["TL209"]
    assert "TL209" in view.to_svg()


def test_wrong_calls():
    with pytest.raises(InputError, match="together"):
        pipeline(gemm_program(), order=[0, 1, 2])
    with pytest.raises(InputError, match="no pipelined loop is called"):
        pipeline(gemm_program(), "z")

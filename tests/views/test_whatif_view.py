"""The what-if and conflict views made by hand, with no compiler: columns, order, lowerings, goldens that the TypeScript tests read."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from tilelab.errors import InputError
from tilelab.finding import finding
from tilelab.views import View, conflict
from tilelab.views.whatif_view import whatif_view

ROOT = Path(__file__).resolve().parents[2]


def variant(edits, target="sm_80", smem=16384, limit=166912, **more):
    plain = {"threads": 128, "smem_bytes": smem, "smem_limit_bytes": limit, "source_lines": 54, "statements": 60, "registers": None}
    known = {"spill_bytes": None, "blocks_per_sm": 9, "occupancy": 0.5625, "bytes_asked": 8192, "least_s": 1e-7, "seconds": 0.25, "runs": True}
    rest = {"banks": {"row": 1, "column": 4}, "layouts": [], "findings": [], "refusal": None}
    return {"edits": edits, "target": target, **plain, **known, **rest, **more}


def record():
    too_much = finding("TL501", "A block takes 196,608 bytes.", fix="Use fewer stages.").to_json()
    refused = finding("TL402", "s and p need different layouts.", fix="use threads=32.").to_json()
    nothing = {"smem_bytes": None, "blocks_per_sm": None, "occupancy": None, "source_lines": None, "statements": None, "seconds": None, "banks": {}}
    rows = [
        variant({}),
        variant({"num_stages": 3, "target": "sm_80"}, smem=24576, layouts=["a", "b", "c"]),
        variant({"num_stages": 24, "target": "sm_80"}, smem=196608, runs=False, findings=[too_much], blocks_per_sm=0, occupancy=0.0),
        variant({"num_stages": 3, "target": "sm_70"}, target="sm_70", limit=98304, runs=False, refusal=refused, **nothing),
    ]
    axes = {"num_stages": [3, 24], "target": ["sm_80", "sm_70"]}
    return {"schema": "tilelab.whatif", "version": 1, "kernel": "gemm", "axes": axes, "variants": rows}


def clash():
    owners = [[[0, 1], [2, 3], [0, 1]], [[0, 2], [1, 3], [0, 1]]]
    maps = [{"buffer": name, "shape": [3, 2], "threads": 4, "owners": o} for name, o in zip("sp", owners, strict=True)]
    evidence = {"maps": maps, "lines": {"s": 7, "p": 9}, "texts": {"s": "T.gemm(a, b, s)"}, "text": "for i in T.Parallel(3):",
                "parts_at": {"index": [0, 1], "threads": [[1], [2, 3]]}, "remedies": ["use threads=32"]}  # fmt: skip
    return finding("TL402", "s and p need different layouts.", fix="use threads=32.", file="k.py", line=8, evidence=evidence)


def test_goldens(golden):
    view = whatif_view(record())
    golden("views/whatif_small", {"view": view.to_json(), "table": view.table(9)[1]})
    view = conflict(clash())
    differ = [k for k, (a, b) in enumerate(zip([0, 1, 2, 3, 0, 1], [0, 2, 1, 3, 0, 1], strict=True)) if a != b]
    golden("views/conflict_small", {"view": view.to_json(), "differ": differ, "table": view.table(9)[1]})


@pytest.mark.parametrize("kind", ["whatif", "conflict"])
def test_the_examples_are_views_of_today(kind):
    example = json.loads((ROOT / "visualizers" / kind / "example.json").read_text())
    assert View.from_json(example).to_json() == example
    assert example["kind"] == kind


def test_a_column_shows_where_somebody_knows_something():
    header, rows = whatif_view(record()).table()
    assert header == ["stages", "target", "shared memory (bytes)", "threads", "blocks on an SM", "worst passes over the banks", "least time",
                      "code lines", "layouts changed", "verdict"]  # fmt: skip
    assert [row[0] for row in rows] == ["—", "3", "24", "3"]
    assert [row[2] for row in rows] == ["16,384 / 166,912", "24,576 / 166,912", "196,608 / 166,912", "—"]
    assert rows[1][8] == "a, b + 1"
    assert rows[3][-1].startswith("refused: TL402")
    one = record()
    one["axes"].pop("target")
    assert "target" not in whatif_view(one).table()[0]


@pytest.mark.parametrize("make", [lambda: whatif_view(record()), lambda: conflict(clash()), lambda: whatif_view(record(), "zh")])
def test_lowerings(make):
    view = make()
    assert View.from_json(json.loads(view.render("json"))).to_json() == view.to_json()
    svg = ET.fromstring(view.to_svg())
    width = float(svg.get("width"))
    for text in svg.iter("{http://www.w3.org/2000/svg}text"):
        assert float(text.get("x")) < width
    assert "tl-code" in view.to_html()
    assert view.to_matplotlib().axes
    assert view.title in view.to_text() or view.kind == "conflict"


def test_owners_that_differ_in_all_but_the_diagonal():
    one = clash()
    view = conflict(one)
    assert np.array_equal(view.data["apart"], [[0, 1], [1, 0], [0, 0]])
    text = view.to_text()
    assert "wanted by line 7  T.gemm(a, b, s)" in text
    assert "used together on line 8  for i in T.Parallel(3):" in text
    assert "first at (0, 1): thread 1 against thread 2, 3" in text


def test_another_version_is_refused():
    with pytest.raises(InputError, match="no what-if table"):
        whatif_view({**record(), "version": 2})

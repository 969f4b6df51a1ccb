"""The tuner's landscape: its picture, and the configuration that a class of shapes remembers."""

import json
from pathlib import Path
from xml.etree import ElementTree

import tilelab
from tilelab.bench import landscape
from tilelab.kernels import gemm

ROWS = [
    {"shape": [64, 8, 8], "config": {"bn": 64}, "burst_us": 10.0},
    {"shape": [64, 8, 8], "config": {"bn": 128}, "burst_us": 12.0},
    {"shape": [32, 8, 8], "config": {"bn": 64}, "burst_us": 9.0},
    {"shape": [32, 8, 8], "config": {"bn": 128}, "burst_us": 6.0},
    {"shape": [32, 8, 8], "config": {"bn": 256}, "why": "too much shared memory"},
    {"shape": [4096, 4096, 8], "config": {"bn": 256}, "burst_us": 50.0},
]


def test_a_class_remembers_what_loses_least_over_its_shapes():
    best = landscape.best_of_classes(ROWS, gemm.shape_class)
    assert best == {"few rows": {"bn": 128}, "large": {"bn": 256}}  # 1.2 and 1.0 against 1.0 and 1.5


def test_the_picture_has_a_bar_for_each_configuration_that_ran():
    root = ElementTree.fromstring(landscape.picture(ROWS))
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [t for t in texts if t.startswith("bn ")] == ["bn 64", "bn 128", "bn 128", "bn 64", "bn 256"]
    assert any("2 of 3 ran" in t for t in texts)
    widths = [float(r.get("width")) for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") in ("ran", "wrote")]
    assert [round(w / landscape.BAR, 2) for w in widths] == [1.0, 0.83, 1.0, 0.67, 1.0]


def test_the_shipped_picture_is_its_record_drawn():
    records = Path(tilelab.__file__).parent / "bench" / "records"
    rows = json.loads((records / "h200-gemm-landscape.json").read_text())["rows"]
    assert (records / "h200-gemm-landscape.svg").read_text() == landscape.picture(rows)


def test_every_class_of_shapes_has_a_configuration():
    assert gemm.choose(3, 7168, 7168) == gemm.tuned()["few rows"]
    assert gemm.choose(1000, 512, 64) == gemm.tuned()["small"]
    assert gemm.choose(5000, 5000, 5000) == gemm.tuned()["large"]
    assert gemm.choose(8192, 8192, 8192) == gemm.tuned()[8192, 8192, 8192]

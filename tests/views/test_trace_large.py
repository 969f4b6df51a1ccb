"""Tensors too large to be shown whole: the part that the block writes or reads, another where asked, page by page in a live widget."""

import numpy as np
import pytest

from tests.views.large import gemm
from tilelab.debugger import Session, debug
from tilelab.views import html, trace
from tilelab.views.encode import decode
from tilelab.views.trace_model import Model
from tilelab.views.trace_values import PAGE, moved


@pytest.fixture(scope="module")
def session() -> Session:
    rng = np.random.default_rng(0)
    a, b, extra = (rng.standard_normal((512, 512)).astype(np.float16) for _ in range(3))
    return debug(gemm, a, b, extra, block=(1, 2))


def windows(view):
    return {b["name"]: [(o, o + n) for o, n in zip(b["origin"], b["extent"], strict=True)] for b in view.data["buffers"] if b["extent"]}


def test_what_the_block_reads_is_found(session):
    view = trace(session)
    shown = windows(view)
    assert shown["A"] == [(128, 192), (0, 512)]
    assert shown["B"] == [(0, 512), (64, 128)]
    assert shown["C"] == [(128, 192), (64, 128)]
    model = Model(view.data)
    np.testing.assert_array_equal(model.value("B", 5).array, session.values()["B"][0:512, 64:128])


def test_a_tensor_that_nobody_touches_begins_at_its_beginning(session):
    (rows, columns) = windows(trace(session))["unused"]
    assert (rows[0], columns[0]) == (0, 0)
    assert (rows[1] - rows[0]) * (columns[1] - columns[0]) == PAGE


def test_another_part_may_be_asked_for(session):
    view = trace(session, buffer="A", origins={"A": (300, 500), "unused": (0, 128)})
    shown = windows(view)
    assert shown["A"] == [(300, 428), (384, 512)], "a page is whole: it ends at the edge"
    assert shown["unused"] == [(0, 128), (128, 256)]
    np.testing.assert_array_equal(Model(view.data).value("A", 0).array, session.values()["A"][300:428, 384:512])
    assert "[300:428, 384:512]" in view.to_text()


def test_pages_of_any_rank_stay_inside():
    assert moved((100_000,), (99_990,)) == (slice(87_500, 100_000),)
    assert moved((4, 4, 4096), (9, -3, 10)) == (slice(0, 4), slice(0, 4), slice(10, 1034))


def test_the_widget_sends_the_page_that_is_asked_for(session, monkeypatch, tmp_path):
    monkeypatch.setattr(html, "STATIC", tmp_path)
    (tmp_path / "trace.js").write_text("export default { render() {} };")
    widget = session.widget()
    for asked, origin in (([64, 0], [64, 0]), ([500, 0], [448, 0]), ([-5, 99], [0, 0]), ([1], [128, 0]), ([], [128, 0])):
        widget.receive({"fetch": "A", "step": 0, "origin": asked})
        assert widget.fetched["origin"] == origin
        rows = slice(origin[0], origin[0] + 64)
        np.testing.assert_array_equal(decode(widget.fetched["value"]["array"]), session.values()["A"][rows])
    widget.close()

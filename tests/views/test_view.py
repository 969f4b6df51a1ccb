"""The lowerings of the layout view: each shows the same layout, stands alone and asks for nothing."""

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tilelab.errors import EnvironmentLacks, InputError
from tilelab.layout_make import atom, make_fragment, make_shared, row_major, swizzled
from tilelab.views import View, html, layout
from tilelab.views.words import WORDS


def gemm_accumulator():
    """128×128 over four warps, 2×2, each warp in tiles of 16×8."""

    def place(i, j):
        return (i // 64 + j // 64 * 2) * 32 + i % 8 * 4 + j % 8 // 2, j % 2 + i % 16 // 8 * 2 + j % 64 // 8 * 4 + i % 64 // 16 * 32

    return make_fragment((128, 128), place, threads=128, name="C_local")


VIEWS = {
    "fragment": lambda: layout("mma.m16n8k16.D"),
    "large": lambda: layout(gemm_accumulator()),
    "swizzled": lambda: layout(swizzled((64, 64), name="A_shared")),
    "wrong": lambda: layout(lambda i, j: i * 7 + j, shape=(8, 8)),
    "vector": lambda: layout(lambda i: (i % 32, i // 32), shape=(256,), kind="fragment"),
    "scalars": lambda: layout(lambda i: i, shape=(5,)),
    "cube": lambda: layout(row_major((3, 16, 8)), axes=(0, 2), at=(0, 5, 0)),
    "copies": lambda: layout(lambda i, j, rep: (i + 8 * rep, j), shape=(8, 4), kind="fragment", replicate=4),
    "wide": lambda: layout(row_major((32, 8), dtype="float64")),
    "narrow": lambda: layout(row_major((32, 32), dtype="int8")),
}


@pytest.fixture(params=VIEWS)
def view(request):
    return VIEWS[request.param]()


def test_json_round_trip(view):
    record = json.loads(json.dumps(view.to_json()))
    assert record["schema"] == "tilelab.view.layout"
    assert record["version"] == 1
    assert View.from_json(record).to_json() == view.to_json()


def test_svg_is_well_formed_and_says_what_it_shows(view):
    root = ET.fromstring(view.to_svg())
    names = {child.tag.rpartition("}")[2] for child in root}
    assert {"title", "desc"} <= names
    assert root.get("role") == "img"
    assert view.title in root[0].text


def test_nothing_is_fetched(view):
    for text in (view.to_svg(), view.to_html()):
        addresses = set(re.findall(r"https?://[^\s\"'<)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert addresses == set()
        assert "@import" not in text
        assert not re.search(r"<(link|img|iframe)\b", text)
    assert "default-src 'none'" in view.to_html()


def test_text_table_and_matplotlib(view):
    assert view.to_text().startswith(view.title)
    header, rows = view.table()
    assert rows
    assert all(len(row) == len(header) for row in rows)
    figure = view.to_matplotlib()
    assert figure.axes
    assert figure.axes[0].images


def test_chinese_words_replace_the_english_ones():
    view = layout("mma.m16n8k16.D", lang="zh")
    assert "寄存器片段" in view.to_text()
    assert "线程" in view.to_svg()
    assert 'lang="zh-CN"' in view.to_html()
    assert all(re.search("[\u4e00-\u9fff]", zh) or en == zh for key, (en, zh) in WORDS.items() if key not in ("language",))
    fills = [(set(re.findall(r"{\w+}", en)), set(re.findall(r"{\w+}", zh))) for en, zh in WORDS.values()]
    assert all(a == b for a, b in fills)


def test_the_text_of_a_small_fragment_is_the_ptx_figure():
    lines = layout("mma.m16n8k16.D").to_text().splitlines()
    assert "   0 T0r0  T0r1  T1r0  T1r1  T2r0  T2r1  T3r0  T3r1" in lines
    assert "  15 T28r2 T28r3 T29r2 T29r3 T30r2 T30r3 T31r2 T31r3" in lines
    assert "  thread = i % 8 * 4 + j // 2" in lines


def test_table_lists_what_each_thread_holds():
    header, rows = layout("mma.m16n8k16.D").table()
    assert header[0] == "thread"
    assert rows[5] == ["5", "0", "5", "(1, 2–3) (9, 2–3)"]
    many = layout(gemm_accumulator()).table()[1]
    assert many[0][3].endswith("… and 116 more")


def test_a_128x128_fragment_is_small_and_quick():
    import time

    one = gemm_accumulator()
    began = time.perf_counter()
    view = layout(one)
    page = view.to_html()
    assert time.perf_counter() - began < 1.0
    assert len(page.encode()) < 300_000


def test_values_ride_on_the_elements():
    values = np.arange(128, dtype=np.float32).reshape(16, 8) / 4
    record = View.from_json(layout("mma.m16n8k16.D", values=values).to_json()).data["layouts"][0]
    assert (record["arrays"]["value"] == values).all()
    with pytest.raises(InputError, match=r"values are 8×8, but mma.m16n8k16.D is 16×8"):
        layout("mma.m16n8k16.D", values=values[:8])


def test_any_rank_by_choosing_axes():
    from tilelab.views.layout_svg import grid

    one = row_major((3, 16, 8))
    record = layout(one, axes=(2, 0), at=(0, 5, 0)).data["layouts"][0]
    assert (grid(record, "address") == one.addresses()[:, 5, :].T).all()
    with pytest.raises(InputError, match="two different axes"):
        layout(one, axes=(1, 1))
    with pytest.raises(InputError, match="3×16×8"):
        layout(one, at=(3, 0, 0))


def test_save_goes_by_suffix(tmp_path):
    view = layout("ldmatrix.m8n8")
    assert view.save(tmp_path / "a.svg").read_text().startswith("<svg")
    assert json.loads(view.save(tmp_path / "a.json").read_text())["kind"] == "layout"
    with pytest.raises(InputError, match=r"\.png"):
        view.save(tmp_path / "a.png")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "a.svg"]


def test_what_cannot_be_shown_is_said_in_one_line():
    with pytest.raises(InputError, match="neither a CuTe layout nor a tensor-core operand"):
        layout("mma")
    with pytest.raises(InputError, match="needs a shape"):
        layout(lambda i: i)
    with pytest.raises(InputError, match="which does not exist"):
        layout(lambda i: i - 1, shape=(4,))
    with pytest.raises(InputError, match="version"):
        View.from_json({**layout("ldmatrix.m8n8").to_json(), "version": 99})
    with pytest.raises(InputError, match="schema"):
        View.from_json({"kind": "nothing"})


def test_mime_bundle_outside_jupyter():
    bundle = layout("ldmatrix.m8n8")._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "<svg" in bundle["text/html"]
    assert "<table>" in bundle["text/html"]


def test_the_still_picture_stays_where_no_bundle_was_built(monkeypatch, tmp_path):
    monkeypatch.setattr(html, "STATIC", tmp_path)
    page = layout("ldmatrix.m8n8").to_html()
    assert "<svg" in page
    assert "<script" not in page


def test_html_cannot_be_broken_out_of():
    one = make_fragment((4,), lambda i: (i, 0), name="</script><b>")
    page = layout(one).to_html()
    assert "</script><b>" not in page
    assert "<b>" not in page


def test_widget_carries_the_same_data(monkeypatch, tmp_path):
    monkeypatch.setattr(html, "STATIC", tmp_path)
    view = layout(atom("mma.m16n8k16.D"))
    with pytest.raises(EnvironmentLacks, match="not built"):
        view.widget()
    (tmp_path / "layout.js").write_text("export default { render() {} };")
    widget = view.widget()
    assert widget.view == view.to_json()
    assert "application/vnd.jupyter.widget-view+json" in widget.bundle()
    widget.close()


def test_a_shared_function_of_two_axes():
    record = layout(make_shared((4, 4), lambda i, j: (i, j ^ i))).data["layouts"][0]
    assert record["formula"] == [["address", "(i, j ^ i) of 4×4"]]

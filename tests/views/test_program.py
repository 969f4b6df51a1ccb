"""The program view: links against plain loops, passes against the texts given, sources against what their lines say."""

import json
import re
from pathlib import Path

import pytest
from cases import cases

import tilelab
from tests.views import programs
from tilelab import ir
from tilelab.compiler.blame import share_located
from tilelab.errors import InputError
from tilelab.views import View, program, program_link
from tilelab.views.program_passes import Texts, differences, history, text_after

ROOT = Path(__file__).resolve().parents[2]
CASES = {c.name: c for c in cases()}


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def small():
    return program(programs.small(), programs.small(factor=3.0))


def links(view):
    """For every line of every pane of the first variant, the lines it belongs to, by scanning all."""
    data = view.data
    panes = {p["key"]: p for p in data["variants"][0]["panes"]}

    def user(at):
        out = []
        while at >= 0:
            out.append((data["places"][at]["file"], data["places"][at]["line"]))
            at = data["places"][at]["caller"]
        return out

    out = []
    for key, pane in panes.items():
        for line, at in enumerate(pane["place"].tolist()):
            to = {}
            for other, there in panes.items():
                of = there["place"].tolist()
                if at < 0:
                    to[other] = []
                elif key == "python":
                    to[other] = [
                        k
                        for k, p in enumerate(of)
                        if p >= 0 and (user(p)[0] == user(at)[0] if other == "python" else user(at)[0] in user(p))
                    ]
                else:
                    to[other] = [k for k, p in enumerate(of) if p >= 0 and (user(p)[0] in user(at) if other == "python" else p == at)]
            out.append({"from": [key, line], "to": to})
    return out


def test_view_and_links(golden, small):
    variant = small.data["variants"][0]
    texts = [text_after(variant["passes"], small.data["texts"], k) if p["changed"] else [] for k, p in enumerate(variant["passes"])]
    golden("views/program_small", {"view": small.to_json(), "links": links(small), "texts": texts, "table": small.table(64)[1]})
    assert texts == [p.after.splitlines() for p in programs.small().passes]


def test_the_example_is_a_view_of_today(small):
    record = json.loads((ROOT / "visualizers" / "program" / "example.json").read_text())
    assert View.from_json(record).to_json() == record == small.to_json()


def test_a_macro_s_line_belongs_to_the_lines_that_called_it(small):
    header, rows = small.table()
    assert header == ["line", "Python", "tile IR", "lowered IR", "generated CUDA", "PTX"]
    by_line = {int(row[0]): row for row in rows}
    assert by_line[5][2:] == by_line[11][2:] == ["5", "5–6", "5–6", "4"]
    assert by_line[10][2:] == ["4", "4", "4", "3"]


def test_no_path_of_this_machine_is_shown(small):
    assert "/home/someone" not in small.render("json")
    assert small.data["files"] == ["small.py"]


def test_variants_are_compared(small):
    (source,) = (d for d in small.data["diffs"] if d["key"] == "source")
    assert source["hunks"] == [[5, 6, 5, 6]]
    assert "− " in small.to_text()
    assert "+   s[0] = (s[0] * 3.0f);" in small.to_text()


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_lowering_has_the_same_content(small, lang):
    one = View(kind="program", title=small.title, data=small.data, lang=lang)
    text = one.to_text()
    assert "    10 │         T.copy(A, s)" in program(programs.small(), show=["tile"]).to_text()
    assert "12.50" in text
    svg, html = one.to_svg(), one.to_html()
    for part in ("T.copy(A,\u00a0s)", "double(s)"):
        assert part in svg
        assert part in html
    assert ("降级后的 IR" in svg) == (lang == "zh")
    assert View.from_json(json.loads(one.render("json"))).to_json() == one.to_json()
    assert len(one.to_matplotlib().axes) == 4


def test_what_cannot_be_shown_is_said():
    with pytest.raises(InputError, match="'cuda'"):
        program(programs.small(), show=["cuda"])
    with pytest.raises(InputError, match="side by side"):
        program()


# ---------------------------------------------------------------------------------------------------- passes
def test_changes_rebuild_every_text():
    a, b = ["one", "two", "three", "four", "five", "six"], ["one", "two", "3", "four", "six", "seven"]
    for before, after in ((a, b), (b, a), ([], a), (a, []), (a, a)):
        out, done = [], 0
        for a0, a1, b0, b1 in differences(before, after):
            out += before[done:a0] + after[b0:b1]
            done = a1
        assert out + before[done:] == after


# ------------------------------------------------------------------------------------------------ provenance
def lowered(name, target):
    if name == "mla":
        return tilelab.lower(programs.mla, target=target, history=True)
    return tilelab.lower(CASES[name].load(), target=target, consts=CASES[name].consts, history=True)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize("name", ["gemm", "flash_attention", "mla"])
def test_nine_of_ten_lowered_statements_name_a_user_line(name, target):
    a = lowered(name, target)
    assert share_located(a.program) >= 0.9
    view = program(a)
    variant = view.data["variants"][0]
    assert variant["located"] >= 0.9
    panes = {p["key"]: p for p in variant["panes"]}
    source = panes["source"]
    start = next(k for k, line in enumerate(source["lines"]) if "__global__" in line and line.endswith("{"))
    code = [at for line, at in zip(source["lines"][start:], source["place"][start:], strict=True) if line.strip()]
    assert sum(at >= 0 for at in code) >= 0.9 * len(code)
    # What a line of CUDA does is what its line of Python says.
    python = panes["python"]
    words = {view.data["places"][at]["line"]: line for line, at in zip(python["lines"], python["place"], strict=True) if at >= 0}
    checked = 0
    for line, at in zip(source["lines"][start:], source["place"][start:], strict=True):
        for told, asked in (
            (r"tl::(cp_async_gs|tma_load)", "T.copy"),
            (r"tl::(mma_sync|wgmma|ptx_ldmatrix)", "T.gemm"),
            (r"AllReduce", "T.reduce"),
        ):
            if re.search(told, line):
                assert asked in words[view.data["places"][at]["line"]], line
                checked += 1
    assert checked > 2
    done = history(a.passes, texts := Texts())
    kept = [k for k, p in enumerate(done) if p["hunks"]]
    assert len(kept) > 20
    assert all(text_after(done, texts.lines, k) == a.passes[k].after.splitlines() for k in kept)


def test_sources_of_other_targets_are_linked_too():
    a = tilelab.lower(CASES["vector_add"].load(), target="gfx942", consts=CASES["vector_add"].consts)
    known = program_link.places(a.program, a.source)
    lines = a.source.splitlines()
    stores = [loc for line, loc in zip(lines, known, strict=True) if re.match(r"\s+.*\bC\b.* = ", line)]
    assert stores
    assert {s.loc for s in ir.walk(a.program) if isinstance(s, ir.Store)} >= set(stores)


def test_the_command_line_draws_it(cli, tmp_path):
    page = tmp_path / "program.html"
    spec = f"{ROOT / 'tests' / 'corpus' / 'kernels' / 'gemms.py'}::gemm"
    done = cli(
        "view", "program", spec, "--panes", "tile", "--format", "text", *[f"--const={k}={v!r}" for k, v in CASES["gemm"].consts.items()]
    )
    assert done.code == 0, done.err
    assert "T.gemm(a, b, c)" in done.out
    done = cli("view", "program", spec, "--panes", "tile,cuda", "-o", str(page))
    assert done.code == 2
    assert "cuda" in done.err
    assert not page.exists()

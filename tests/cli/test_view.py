"""`tilelab view`: formats, files whole or not at all, and one clear line where it cannot be done."""

import json

import pytest

pytestmark = pytest.mark.slow  # lowers with TileLang

KERNEL = """
import tilelang
import tilelang.language as T


@tilelang.jit
def scale(A, block: int = 64):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float16]
    B = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
        tile = T.alloc_shared((block, N), T.float16)
        own = T.alloc_fragment((block, N), T.float16)
        T.copy(A[bx * block, 0], tile)
        T.copy(tile, own)
        for i, j in T.Parallel(block, N):
            own[i, j] = own[i, j] * 2
        T.copy(own, B[bx * block, 0])
    return B
"""
SIZES = ("--const", "M=128", "--const", "N=64")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    file = tmp_path_factory.mktemp("view") / "scale.py"
    file.write_text(KERNEL)
    return f"{file}::scale"


def test_text_on_stdout(cli, kernel):
    done = cli("view", "layout", kernel, *SIZES)
    assert done.code == 0
    assert done.out.startswith("own: float16 fragment · 64×64 · 128 threads × 32 registers · one-to-one")
    assert "\ntile: float16 shared memory · 64×64 · one-to-one" in done.out


def test_json_is_the_view_and_names_the_target(cli, kernel):
    done = cli("view", "layout", kernel, *SIZES, "--buffer", "tile", "--json", "--target", "sm_90")
    record = done.json
    assert (record["schema"], record["title"], record["data"]["target"]) == ("tilelab.view.layout", "tile", "sm_90a")
    names = [one["name"] for one in record["data"]["layouts"]]
    assert {"own", "tile"} <= set(names)
    assert record["data"]["selected"] == names.index("tile")
    assert cli("view", "layout", kernel, *SIZES, "--buffer", "tile", "--format", "json", "--target", "sm_90a").json == record


@pytest.mark.parametrize(("suffix", "start"), [("svg", "<svg"), ("html", "<!doctype html>"), ("json", "{"), ("txt", "own:")])
def test_a_file_has_the_format_of_its_suffix(cli, kernel, tmp_path, suffix, start):
    out = tmp_path / f"own.{suffix}"
    done = cli("view", "layout", kernel, *SIZES, "-o", out)
    assert (done.code, done.out) == (0, "")
    assert out.read_text(encoding="utf-8").startswith(start)
    assert list(tmp_path.iterdir()) == [out]


def test_what_cannot_be_shown_is_one_line(cli, kernel, tmp_path):
    (tmp_path / "file").write_text("")
    for args, says in (
        (("memory", kernel), "no view is called 'memory'. there is conflict, layout"),
        (("layout", kernel, *SIZES, "--buffer", "nothing"), "no buffer with a layout is called 'nothing'"),
        (("layout", kernel, *SIZES, "-o", tmp_path / "file" / "x.svg"), "cannot write"),
        (("layout", f"{tmp_path}/missing.py::f"), "missing.py"),
    ):
        done = cli("view", *args)
        assert done.code == 2
        assert done.out == ""
        assert len(done.err.strip().splitlines()) == 1
        assert says.lower() in done.err.lower()


def test_every_layout_of_the_kernel_holds_every_element(cli, kernel):
    from tilelab.views import View

    for record in View.from_json(json.loads(cli("view", "layout", kernel, *SIZES, "--json").out)).data["layouts"]:
        assert record["findings"] == []
        size = 1
        for n in record["shape"]:
            size *= n
        if record["layout"] == "shared":
            assert len(set(record["arrays"]["address"].ravel().tolist())) == size
        else:
            pairs = set(zip(record["arrays"]["thread"].ravel().tolist(), record["arrays"]["register"].ravel().tolist(), strict=True))
            assert len(pairs) >= size

"""``tilelab check``: the findings, the JSON, the outputs."""

import hashlib
import json

import ml_dtypes
import numpy as np
import pytest

KERNELS = """
import tilelang
import tilelang.language as T

@tilelang.jit
def scale(A, factor: int = 2):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * factor
    return B

def narrow(dtype="bfloat16"):
    @T.prim_func
    def k(A: T.Tensor((128,), dtype), O: T.Tensor((128,), dtype)):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(128):
                O[i] = A[i]
    return k

@T.prim_func
def race(A: T.Tensor((64,), "float32"), O: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=64) as _:
        for i in T.Parallel(64):
            O[0] = O[0] + A[i]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_json_of_a_right_kernel(cli, folder):
    done = cli("check", "k.py::scale", "--const", "N=256", "--const", "factor=3", "--json", "--target", "sm_90", "--seed", "7")
    assert done.code == 0, done.err
    report = done.json
    assert list(report) == ["kernel", "level", "target", "findings", "prints", "outputs"]
    assert (report["kernel"], report["level"], report["target"]) == ("k.py::scale", "tile", "sm_90a")
    assert [f for f in report["findings"] if f["severity"] == "error"] == []
    a = np.random.Generator(np.random.PCG64(7)).standard_normal(256).astype(np.float32)
    expected = hashlib.sha256((a * np.float32(3)).tobytes()).hexdigest()
    assert report["outputs"] == {"out0": {"shape": [256], "dtype": "float32", "sha256": expected}}


def test_format_json_is_json(cli, folder):
    args = ("check", "k.py::scale", "--const", "N=64")
    assert cli(*args, "--json").out == cli(*args, "--format", "json").out


def test_findings_say_where(cli, folder):
    done = cli("check", "k.py::race", "--json")
    assert done.code == 1
    found = [f for f in done.json["findings"] if f["code"] == "TL201"]
    assert len(found) == 1
    assert set(found[0]) == {"code", "severity", "message", "fix", "file", "line", "block", "thread", "indices", "evidence"}
    assert (found[0]["file"], found[0]["line"]) == ("k.py", 27)
    assert "TL201" in cli("check", "k.py::race").out


def test_outputs_are_written_whole(cli, folder):
    np.save(folder / "a.npy", np.arange(64, dtype=np.float32))
    done = cli("check", "k.py::scale", "--const", "N=64", "--input", "A=a.npy", "--outputs", "made/here")
    assert done.code == 0, done.err
    assert np.array_equal(np.load(folder / "made/here/out0.npy"), 2 * np.arange(64, dtype=np.float32))
    assert [p.name for p in (folder / "made/here").iterdir()] == ["out0.npy"]


@pytest.mark.parametrize(("dtype", "bits"), [("bfloat16", np.uint16), ("float8_e4m3fn", np.uint8)])
def test_foreign_dtypes_are_written_as_their_bits(cli, folder, dtype, bits):
    done = cli("check", "k.py::narrow", "--const", f"dtype={dtype!r}", "--outputs", "out", "--json")
    assert done.code == 0, done.err
    assert done.json["outputs"]["O"]["dtype"] == dtype
    a = np.random.Generator(np.random.PCG64(0)).standard_normal(128).astype(np.float32).astype(getattr(ml_dtypes, dtype))
    saved = np.load(folder / "out" / "O.npy")
    assert saved.dtype == bits
    assert np.array_equal(saved, a.view(bits))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("zeros", np.zeros(64, np.float32)),
        ("ones", np.full(64, 2, np.float32)),
        ("arange", 2 * np.arange(64, dtype=np.float32)),
        ("rand", 2 * np.random.Generator(np.random.PCG64(0)).random(64).astype(np.float32)),
        ("randint", 2 * np.random.Generator(np.random.PCG64(0)).integers(0, 4, 64).astype(np.float32)),
    ],
)
def test_inputs_by_name(cli, folder, how, expected):
    assert cli("check", "k.py::scale", "--const", "N=64", "--input", f"A={how}", "--outputs", "o").code == 0
    assert np.array_equal(np.load(folder / "o/out0.npy"), expected)


def test_what_the_file_prints_stays_out_of_the_json(cli, folder):
    (folder / "loud.py").write_text("print('hello')\n" + KERNELS)
    done = cli("check", "loud.py::scale", "--const", "N=64", "--json")
    json.loads(done.out)
    assert "hello" in done.err


def test_a_kernel_in_a_notebook(cli, folder):
    cells = [
        {"cell_type": "code", "source": ["%load_ext tilelab\n", "x = 1"]},
        {"cell_type": "markdown", "source": "text"},
        {"cell_type": "code", "source": KERNELS},
    ]
    (folder / "n.ipynb").write_text(json.dumps({"cells": cells}))
    assert cli("check", "n.ipynb::scale", "--const", "N=64").code == 0


def test_prints_are_one_table_not_a_flood(cli, folder):
    (folder / "p.py").write_text(
        "import tilelang.language as T\n\n\n@T.prim_func\ndef k(A: T.Tensor((16, 16), 'float16')):\n"
        "    with T.Kernel(4, threads=128) as _:\n        T.print(A)\n"
    )
    done = cli("check", "p.py::k", "--input", "A=ones")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == 5  # a heading and one row for each of the four blocks
    assert [line.split()[1] for line in lines[1:]] == ["0,0,0", "1,0,0", "2,0,0", "3,0,0"]
    assert all(line.endswith("[16, 16] 1 1 1 1 …") for line in lines[1:])


@pytest.mark.parametrize("op", ["atomic_add", "atomic_max", "atomic_min"])
def test_what_an_atomic_updates_has_an_input(cli, folder, op):
    (folder / "a.py").write_text(
        "import tilelang.language as T\n\n\n@T.prim_func\ndef k(A: T.Tensor((32,), 'int32'), O: T.Tensor((32,), 'int32')):\n"
        f"    with T.Kernel(2, threads=32) as _:\n        S = T.alloc_shared((32,), 'int32')\n        T.copy(A, S)\n        T.{op}(O, S)\n"
    )
    done = cli("check", "a.py::k", "--json")
    assert (done.code, done.json["findings"]) == (0, [])

"""Whatever is wrong with a command line or a file is one clear line and the right exit code, never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

KERNEL = """
import tilelang
import tilelang.language as T

@tilelang.jit
def copy(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i]
    return B

def helper(x):
    return 7
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    (tmp_path / "k.py").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_line(done, code, *said):
    assert done.code == code, done.err
    assert done.out == ""
    assert "Traceback" not in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    for part in said:
        assert part in done.err


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("nothing.py::k", ("nothing.py does not exist",)),
        (".::k", (". is a folder",)),
        ("k.py::absent", ("no kernel 'absent'", "copy")),
        ("k.py", ("names no kernel", "k.py::copy")),
        ("::k", ("has no name",)),
        ("k.txt::k", ("neither a .py nor an .ipynb",)),
        ("syntax.py::k", ("syntax.py:2", "Python cannot parse")),
        ("bytes.py::k", ("bytes.py", "Python")),
        ("raises.py::k", ("raises.py:2", "ZeroDivisionError")),
        ("imports.py::k", ("imports.py:1", "no_such_module")),
        ("exits.py::k", ("exits.py", "__main__")),
        ("empty.py::k", ("holds no kernel",)),
        ("nb.ipynb::k", ("not a Jupyter notebook",)),
    ],
)
def test_files(cli, kernel, spec, said):
    (kernel / "k.txt").write_text("")
    (kernel / "syntax.py").write_text("x = 1\ny = (\n")
    (kernel / "bytes.py").write_bytes(b"\x00\xff\xfe")
    (kernel / "raises.py").write_text("x = 1\ny = 1 / 0\n")
    (kernel / "imports.py").write_text("import no_such_module\n")
    (kernel / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (kernel / "empty.py").write_text("")
    (kernel / "nb.ipynb").write_text("{}")
    one_line(cli("check", spec), 2, *said)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--const", "N"], ("--const N", "NAME=VALUE")),
        (["--const", "N=two"], ("not a Python literal",)),
        ([], ("N", "--const N=VALUE")),
        (["--const", "N=64", "--const", "K=1"], ("K",)),
        (["--const", "N=64", "--input", "A"], ("NAME=HOW",)),
        (["--const", "N=64", "--input", "Z=zeros"], ("no input 'Z'", "A")),
        (["--const", "N=64", "--input", "A=gauss"], ("gauss", "zeros")),
        (["--const", "N=64", "--input", "A=absent.npy"], ("absent.npy", "no such file")),
        (["--const", "N=64", "--input", "A=text.npy"], ("text.npy", "not a .npy file")),
        (["--const", "N=64", "--input", "A=short.npy"], ("A is declared (64,) float32", "(32,) float32")),
        (["--const", "N=64", "--input", "A=double.npy"], ("A is declared (64,) float32", "(64,) float64")),
        (["--const", "N=64", "--target", "sm_1"], ("sm_1",)),
        (["--const", "N=64", "--level", "warp"], ("--level",)),
        (["--const", "N=64", "--block", "a"], ("--block",)),
        (["--const", "N=64", "--seed", "-3"], ("--seed", "-3")),
        (["--no-such-option"], ("--no-such-option",)),
        (["--const", "N=64", "--outputs", "k.py/out"], ("cannot write",)),
    ],
)
def test_options(cli, kernel, options, said):
    (kernel / "text.npy").write_text("hello")
    np.save(kernel / "short.npy", np.zeros(32, np.float32))
    np.save(kernel / "double.npy", np.zeros(64))
    one_line(cli("check", "k.py::copy", *options), 2, *said)


OPEN = """
import tilelang.language as T

n = T.dynamic("n")

@T.prim_func
def scale(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32"), k: T.int32):
    with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
        for i in T.Parallel(32):
            if bx * 32 + i < n:
                O[bx * 32 + i] = A[bx * 32 + i] * k

def of(M):
    print("made for", M)
    return scale
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["n=64.5", "k=2"], ("n is a size of scale", "64.5")),
        (["n=-4", "k=2"], ("n is a size of scale", "-4")),
        (["n='x'", "k=2"], ("n is a size of scale", "'x'")),
        (["n=64", "k=2.5"], ("k is a int32", "2.5")),
        (["n=64", "k='x'"], ("k is a int32", "'x'")),
        (["n=64"], ("k (int32) has no value", "--const k=VALUE")),
        (["n=64", "k=2", "m=1"], ("scale has no constant m", "it takes n, k")),
    ],
)
def test_constants_that_do_not_fit(cli, tmp_path, monkeypatch, options, said):
    (tmp_path / "open.py").write_text(OPEN)
    monkeypatch.chdir(tmp_path)
    one_line(cli("check", "open.py::scale", *(x for o in options for x in ("--const", o))), 2, *said)


def test_what_a_function_prints_is_not_on_stdout(cli, tmp_path, monkeypatch):
    (tmp_path / "open.py").write_text(OPEN.replace('print("made for", M)', 'print("made for", M); import os; os.write(1, b"raw")'))
    monkeypatch.chdir(tmp_path)
    options = ["open.py::of", "--const", "M=1", "--const", "n=40", "--const", "k=2", "--json"]
    for command in (["check"], ["view", "layout"], ["debug"]):
        done = cli(*command, *options)
        assert done.code == 0, done.err
        assert done.json
        assert "made for 1" in done.err


def test_steps_name_the_file_as_it_was_given(cli, kernel):
    done = cli("debug", "k.py::copy", "--const", "N=64", "--json")
    assert {s["file"] for s in done.json["steps"]} == {"k.py"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full here")
@pytest.mark.parametrize(("where", "code", "said"), [(">/dev/full", 2, "cannot write the output"), ("2>&-", 0, "")])
def test_streams_that_take_nothing(kernel, where, code, said):
    run = f'"{sys.executable}" -m tilelab check k.py::copy --const N=64 --json {where}'
    done = subprocess.run(["sh", "-c", run], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, "fault" in done.stderr) == (code, False)
    assert said in done.stderr
    if not code:
        assert json.loads(done.stdout)["findings"] == []


def test_a_finding_names_no_file_of_the_compiler(cli, tmp_path, monkeypatch):
    (tmp_path / "d.py").write_text(
        "import tilelang.language as T\n\ndef make():\n    @T.prim_func\n    def k(O: T.Tensor((8,), 'nosuch')):\n"
        "        with T.Kernel(1, threads=32) as _:\n            T.clear(O)\n    return k\n"
    )
    monkeypatch.chdir(tmp_path)
    (found,) = cli("check", "d.py::make", "--json").json["findings"]
    assert (found["code"], found["file"], found["line"]) == ("TL702", "d.py", 5)


def test_more_memory_than_there_is(cli, tmp_path, monkeypatch):
    (tmp_path / "open.py").write_text(OPEN)
    monkeypatch.chdir(tmp_path)
    one_line(cli("check", "open.py::scale", "--const", "n=100000000000000", "--const", "k=2"), 3, "memory")


def test_a_function_that_makes_no_kernel(cli, kernel):
    one_line(cli("check", "k.py::helper", "--const", "x=1"), 2, "not a kernel")


def test_unknown_command(cli):
    one_line(cli("frobnicate"), 2, "frobnicate")


def test_a_refused_kernel_is_the_kernels_fault(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text(
        "import tilelang.language as T\n\n@T.prim_func\ndef k(A: T.Tensor((64, 64), 'float16'), O: T.Tensor((64,), 'float16')):\n"
        "    with T.Kernel(1, threads=64) as _:\n        S = T.alloc_shared((32, 64), 'float16')\n        F = T.alloc_fragment((16,), 'float16')\n"
        "        T.copy(A[0:32, :], S)\n        T.reduce_sum(S, F, dim=1)\n        T.copy(F, O[0:16])\n"
    )
    done = cli("check", "bad.py::k")
    assert done.code == 1
    assert "TL701" in done.out + done.err or "TL702" in done.out + done.err
    assert "bad.py:9" in done.out + done.err
    assert "Traceback" not in done.err


def test_run_needs_a_script(shell):
    one_line(shell("run", "absent.py"), 2, "absent.py does not exist")


def test_run_tells_a_syntax_error(shell, tmp_path):
    (tmp_path / "s.py").write_text("def f(:\n")
    one_line(shell("run", "s.py"), 2, "s.py:1", "Python cannot parse")


MAKERS = """
import tilelang
import tilelang.language as T

@tilelang.jit(out_idx=[-1])
def lazy(N, block=64):
    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i]
    return k

def maker(N, dtype="float32"):
    return lazy.get_tir(N=N) if dtype == "float32" else broken(dtype)

def broken(dtype):
    @T.prim_func
    def k(A: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=64) as bx:
            T.copy(A, A[0])
    return k

n = T.dynamic("n")

@T.prim_func
def open_size(A: T.Tensor((n,), "float32")):
    with T.Kernel(T.ceildiv(n, 64), 2, threads=64) as (bx, by):
        if by == 0:
            for i in T.Parallel(64):
                A[bx * 64 + i] = 1.0
"""


@pytest.mark.parametrize("name", ["lazy", "maker"])
@pytest.mark.parametrize("value", ["-1", "64.5", "None", "[64]", "True", "'a'"])
def test_a_constant_that_does_not_do_is_the_users(cli, kernel, name, value):
    (kernel / "m.py").write_text(MAKERS)
    one_line(cli("check", f"m.py::{name}", "--const", f"N={value}"), 2, f"N = {value}", "give a whole number above 0")


def test_dtypes_and_blocks_of_no_size(cli, kernel):
    (kernel / "m.py").write_text(MAKERS)
    one_line(cli("check", "m.py::maker", "--const", "N=64", "--const", "dtype='floof'"), 2, "dtype = 'floof'", "float32")
    one_line(cli("check", "m.py::lazy", "--const", "N=64", "--const", "block=0"), 2, "block = 0")
    no_blocks = cli("check", "m.py::lazy", "--const", "N=0")
    assert no_blocks.code == 1, "a kernel that cannot take an ordinary size is wrong itself"
    assert "TL505" in no_blocks.out


@pytest.mark.parametrize("command", [("check",), ("debug", "--do", "q")])
@pytest.mark.parametrize(
    ("name", "options", "block", "grid"),
    [
        ("lazy", ("--const", "N=64"), "9", "1×1×1"),
        ("lazy", ("--const", "N=256"), "3,1", "4×1×1"),
        ("open_size", ("--const", "n=128"), "2,1", "2×2×1"),
        ("open_size", ("--const", "n=128"), "1,1,1", "2×2×1"),
    ],
)
def test_a_block_outside_the_grid(cli, kernel, command, name, options, block, grid):
    (kernel / "m.py").write_text(MAKERS)
    one_line(cli(*command[:1], f"m.py::{name}", *options, "--block", block, *command[1:]), 2, grid)
    assert cli(*command[:1], f"m.py::{name}", *options, "--block", "0", *command[1:]).code == 0


@pytest.mark.parametrize("options", [("nosuch",), ("--puzzle", "nosuch")])
def test_lab_makes_nothing_for_a_puzzle_that_is_not_there(cli, tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    one_line(cli("lab", "--no-browser", *options), 2, "nosuch")
    assert list(tmp_path.iterdir()) == []

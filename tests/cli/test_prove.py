"""``tilelab check --prove``: what no run with the given sizes can show."""

import numpy as np
import pytest

import tilelab
from tilelab import api

KERNELS = """
import tilelang
import tilelang.language as T

def shifted():
    N = T.dynamic("N")
    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                O[bx * 128 + i] = A[bx * 128 + i] + 1.0
    return k

def guarded():
    N = T.dynamic("N")
    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    O[bx * 128 + i] = A[bx * 128 + i] + 1.0
    return k

def meets_beyond(stride: int):
    N = T.dynamic("N")
    @T.prim_func
    def k(O: T.Tensor((N, 64), "float32")):
        with T.Kernel(T.ceildiv(N, 2), threads=64) as bx:
            for i in T.Parallel(64):
                O[T.min(bx * 2, 6), i] = T.cast(bx, "float32")
    return k

def tail_of_shared():
    N = T.dynamic("N")
    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((256,), "float32")
            for i in T.Parallel(N):
                S[i] = A[i]
            for i in T.Parallel(N):
                O[i] = S[i]
    return k
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "k.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_size_that_does_not_divide_is_found_though_the_run_divides(cli, folder):
    args = ("check", "k.py::shifted", "--const", "N=256")
    plain = cli(*args, "--json")
    assert plain.json["findings"] == []
    assert "proof" not in plain.json
    done = cli(*args, "--prove", "--json")
    assert done.code == 0, done.err  # the device masks it: information, not an error
    found = done.json["findings"]
    assert {f["code"] for f in found} == {"TL102"}
    for f in found:
        n, bx, i = (f["indices"][k] for k in ("N", "bx", "i"))
        assert bx * 128 + i >= n
        assert f"out of bounds when N = {n}, bx = {bx}, i = {i}" in f["message"]
        assert (f["file"], f["line"]) == ("k.py", 11)
        assert f["evidence"]["proved_by"] == "z3"
    assert set(done.json["proof"]) == {"proved", "refuted", "open"}
    assert any("no two blocks" in c for c in done.json["proof"]["proved"])


def test_guards_leave_nothing_to_say(cli, folder):
    done = cli("check", "k.py::guarded", "--const", "N=100", "--prove", "--json")
    assert done.code == 0, done.err
    assert done.json["findings"] == []
    assert done.json["proof"]["refuted"] == done.json["proof"]["open"] == []


def test_a_race_beyond_the_sizes_that_ran_is_an_error(cli, folder):
    args = ("check", "k.py::meets_beyond", "--const", "stride=2", "--const", "N=8")
    assert [f["code"] for f in cli(*args, "--json").json["findings"] if f["severity"] == "error"] == []
    done = cli(*args, "--prove")
    assert done.code == 1
    assert "k.py:30: error TL201" in done.out
    assert "both write O[6, " in done.out
    assert "by Z3, for all sizes" in done.err


def test_shared_memory_that_a_larger_size_overruns_is_an_error(cli, folder):
    args = ("check", "k.py::tail_of_shared", "--const", "N=256")
    assert cli(*args).code == 0
    done = cli(*args, "--prove", "--json")
    assert done.code == 1
    first = next(f for f in done.json["findings"] if f["code"] == "TL101")
    assert first["line"] == 40
    assert first["indices"]["N"] == 257
    assert first["indices"]["i"] == 256


def test_what_the_run_has_shown_is_not_said_twice(cli, folder):
    done = cli("check", "k.py::shifted", "--const", "N=100", "--prove", "--json")
    lines = [(f["code"], f["line"]) for f in done.json["findings"]]
    assert lines == list(dict.fromkeys(lines)) or {f["evidence"].get("proved_by") for f in done.json["findings"]} == {None}
    assert all("proved_by" not in f["evidence"] for f in done.json["findings"])


@pytest.mark.parametrize("seconds", ["0", "-1", "soon"])
def test_the_time_is_a_number_above_zero(cli, folder, seconds):
    done = cli("check", "k.py::shifted", "--const", "N=1", "--prove", "--prove-seconds", seconds)
    assert done.code == 2
    assert "--prove-seconds" in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_from_python():
    import tilelang.language as T

    N = T.dynamic("N")

    @T.prim_func
    def k(O: T.Tensor((N,), "int32")):
        with T.Kernel(N, threads=32) as bx:
            O[bx // 2] = bx

    one = np.zeros(1, np.int32)
    assert [f for f in tilelab.check(k, one) if f.code == "TL201"] == []
    (f,) = [f for f in tilelab.check(k, one, prove=True) if f.code == "TL201"]
    assert "bx" in f.indices
    assert api.proof_of(tilelab.capture(k)).refuted

"""Work counted by hand, and verdicts of GPUs on kernels that are just too big, too new, or fine."""

import pytest

from tilelab import ir
from tilelab.analysis.runs import verdict, verdicts
from tilelab.analysis.shared import shared_use
from tilelab.analysis.work import work


def const(n):
    return ir.Const(dtype="int32", value=n)


def var(name, dtype="int32"):
    return ir.Var(dtype=dtype, name=name)


def buffer(name, shape, dtype="float16", scope="shared.dyn"):
    return ir.Buffer(name=name, dtype=dtype, shape=tuple(map(const, shape)), scope=scope, data=var(name, "handle"))


def region(b, mins, extents, access):
    return ir.Region(dtype="handle", buffer=b, mins=tuple(mins), extents=tuple(map(const, extents)), access=access)


def times(v, n):
    return ir.Bin(dtype="int32", op="mul", a=v, b=const(n))


def gemm(m=256, n=128, k=512, tile=(128, 128, 64), stages=3, threads=128, dtype="float16", op="gemm"):
    bm, bn, bk = tile
    A, B, C = buffer("A", (m, k), dtype, "global"), buffer("B", (k, n), dtype, "global"), buffer("C", (m, n), "float32", "global")
    a, b, c = buffer("a", (bm, bk), dtype), buffer("b", (bk, bn), dtype), buffer("c", (bm, bn), "float32", "local.fragment")
    bx, by, kk, tx = var("bx"), var("by"), var("k"), var("tx")
    flags = [ir.Const(dtype="bool", value=False)] * 2
    body = (
        ir.Tile(op="copy", args=(region(A, (times(by, bm), times(kk, bk)), (bm, bk), "r"), region(a, (const(0),) * 2, (bm, bk), "w"))),
        ir.Tile(op="copy", args=(region(B, (times(kk, bk), times(bx, bn)), (bk, bn), "r"), region(b, (const(0),) * 2, (bk, bn), "w"))),
        ir.Tile(op=op, args=(region(a, (const(0),) * 2, (bm, bk), "r"), region(b, (const(0),) * 2, (bk, bn), "r"),
                             region(c, (const(0),) * 2, (bm, bn), "rw"), *flags, const(bm), const(bn), const(bk), const(0),
                             ir.Const(dtype="bool", value=False), const(0), const(0), const(0))),
    )  # fmt: skip
    loop = ir.For(var=kk, min=const(0), extent=const(k // bk), kind="serial", body=body, attrs={"num_stages": stages})
    out = ir.Tile(op="copy", args=(region(c, (const(0),) * 2, (bm, bn), "r"), region(C, (times(by, bm), times(bx, bn)), (bm, bn), "w")))
    block = ir.Block(name="root", body=(loop, out), allocs=(a, b, c))
    launch = ir.Launch(
        block_vars=(bx, by), grid=(const(n // bn), const(m // bm)), thread_vars=(tx,), threads=(const(threads),), body=(block,)
    )
    params = tuple(ir.Param(name=x.name, var=x.data, buffer=x) for x in (A, B, C))
    return ir.Program(name="gemm", level="tile", params=params, body=(launch,))


def test_work_of_a_gemm_by_hand():
    found = work(gemm())
    assert found.matrix_flops == {"float16": 2 * 256 * 128 * 512}
    assert found.matrix_share == 1.0
    assert found.bytes_least == 2 * (256 * 512 + 512 * 128) + 4 * 256 * 128
    assert found.bytes_asked == 2 * (256 * 512 + 2 * 512 * 128) + 4 * 256 * 128  # two rows of blocks read B


def test_elementwise_work():
    A, B = buffer("A", (1000,), "float32", "global"), buffer("B", (1000,), "float32", "global")
    i, bx, tx = var("i"), var("bx"), var("tx")
    at = (ir.Bin(dtype="int32", op="add", a=times(bx, 100), b=i),)
    load = ir.Load(dtype="float32", buffer=A, indices=at)
    value = ir.Bin(dtype="float32", op="add", a=ir.Bin(dtype="float32", op="mul", a=load, b=load), b=load)
    loop = ir.For(var=i, min=const(0), extent=const(100), kind="parallel", body=(ir.Store(buffer=B, indices=at, value=value),))
    launch = ir.Launch(block_vars=(bx,), grid=(const(10),), thread_vars=(tx,), threads=(const(100),), body=(loop,))
    found = work(ir.Program(name="f", level="tile", params=(), body=(launch,)))
    assert found.vector_flops == 2000
    assert (found.dtype, found.matrix_share) == ("float32", 0.0)


def test_fewer_stages_fit_where_that_is_all_it_takes():
    program = gemm(tile=(128, 128, 128), stages=3)  # 3 × 64 KiB
    table = {v.gpu: v for v in verdicts(program)}
    assert table["H100"].runs
    assert not table["A100"].runs
    assert (table["A100"].change, table["A100"].tried) == ("num_stages=2", True)
    assert table["RTX 4090"].change == "num_stages=1"
    for name, v in table.items():
        if v.tried:
            fewer = int(v.change.removeprefix("num_stages="))
            (use,) = shared_use(gemm(tile=(128, 128, 128), stages=fewer))
            (more,) = shared_use(gemm(tile=(128, 128, 128), stages=fewer + 1))
            limit = next(f.evidence["limit_bytes"] for f in v.findings if f.code == "TL501")
            assert use.bytes <= limit < more.bytes, name


def test_threads():
    v = verdict(gemm(threads=2048), "A100")
    assert {f.code for f in v.findings} == {"TL502"}
    assert v.change == "threads=1024"


@pytest.mark.parametrize(
    ("dtype", "name", "runs"),
    [("float8_e4m3fn", "A100", False), ("float8_e4m3fn", "RTX 4090", True), ("bfloat16", "T4", False), ("bfloat16", "A100", True),
     ("bfloat16", "MI250", True), ("float8_e4m3fn", "MI250", False), ("float16", "V100", True)],
)  # fmt: skip
def test_instructions(dtype, name, runs):
    v = verdict(gemm(tile=(64, 64, 32), stages=1, dtype=dtype), name)
    assert v.runs == runs
    assert {f.code for f in v.findings} == (set() if runs else {"TL504"})


def test_warpgroup_instructions_are_of_hopper_alone():
    program = gemm(tile=(64, 64, 32), stages=1, op="wgmma_gemm")
    assert [v.gpu for v in verdicts(program) if v.runs] == ["H100", "H200"]

"""A pipelined GEMM as a captured Program, made by hand: no TileLang needed."""

from tilelab import ir


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


def gemm_program(m=256, n=128, k=512, tile=(128, 128, 64), stages=3, threads=128, dtype="float16", op="gemm"):
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
    launch = ir.Launch(block_vars=(bx, by), grid=(const(n // bn), const(m // bm)), thread_vars=(tx,), threads=(const(threads),), body=(block,))
    params = tuple(ir.Param(name=x.name, var=x.data, buffer=x) for x in (A, B, C))
    return ir.Program(name="gemm", level="tile", params=params, body=(launch,))

"""The printer: every statement on a line, the same text for equal Programs, Python that parses."""

import ast

import pytest
from cases import cases

import tilelab
from tilelab import ir, ir_text, serde

PICKED = ("gemm", "softmax", "two_launches", "strided_view", "scalar_argument", "vector_add_dynamic", "integer_maths", "reshape_view")
CASES = {c.name: c for c in cases()}


@pytest.fixture(scope="module")
def programs():
    return {name: tilelab.capture(CASES[name].load(), consts=CASES[name].consts) for name in PICKED}


@pytest.mark.parametrize("name", PICKED)
def test_what_is_printed_parses_and_is_deterministic(programs, name):
    text = ir_text.text(programs[name])
    ast.parse(text)
    assert ir_text.text(serde.loads(serde.dumps(programs[name]), ir.Program)) == text


@pytest.mark.parametrize("name", PICKED)
def test_every_statement_has_a_line_and_every_line_but_the_first_a_statement(programs, name):
    lines = ir_text.listing(programs[name])
    printed = {id(line.stmt) for line in lines if line.stmt is not None}
    silent = {id(s) for s in ir.walk(programs[name]) if isinstance(s, ir.Block) and not s.allocs and not s.attrs}  # nothing to say
    assert {id(s) for s in ir.walk(programs[name]) if isinstance(s, ir.Stmt)} - silent == printed
    assert [k for k, line in enumerate(lines) if line.stmt is None and line.text.strip() not in ("else:", "pass")] == [0]
    assert all(line.loc == line.stmt.loc for line in lines if isinstance(line.stmt, ir.Tile))
    numbers = ir_text.lines_of(programs[name])
    assert all(lines[k].stmt is not None and id(lines[k].stmt) == key for key, at in numbers.items() for k in at)


def test_a_gemm_reads_as_it_was_written(programs):
    assert ir_text.text(programs["gemm"]).splitlines()[1:] == [
        "    with T.Kernel(2, 2, threads=128) as ((bx, by), tx):",
        '        a = T.alloc_shared((64, 32), "float16")',
        '        b = T.alloc_shared((32, 64), "float16")',
        '        c = T.alloc_fragment((64, 64), "float32")',
        "        T.fill(c, value=0)",
        "        for k in T.Pipelined(4, num_stages=2):",
        "            T.copy(A[by * 64:by * 64 + 64, k * 32:k * 32 + 32], a)",
        "            T.copy(B[k * 32:k * 32 + 32, bx * 64:bx * 64 + 64], b)",
        "            T.gemm(a, b, c)",
        "        T.copy(c, C[by * 64:by * 64 + 64, bx * 64:bx * 64 + 64])",
    ]


def test_names_are_told_apart_and_precedence_is_kept():
    i, other = ir.Var(dtype="int32", name="i"), ir.Var(dtype="int32", name="i")
    data = ir.Var(dtype="handle", name="A")
    four = ir.Const(dtype="int32", value=4)
    a = ir.Buffer(name="A", dtype="int32", shape=(four,), scope="global", data=data)
    total = ir.Bin(dtype="int32", op="sub", a=i, b=ir.Bin(dtype="int32", op="sub", a=other, b=four))
    value = ir.Bin(dtype="int32", op="mul", a=total, b=four)
    inner = ir.For(var=other, min=four, extent=four, kind="serial", body=(ir.Store(buffer=a, indices=(i,), value=value),))
    program = ir.Program(
        name="f", level="tile", params=(ir.Param(name="A", var=data, buffer=a),),
        body=(ir.For(var=i, min=ir.Const(dtype="int32", value=0), extent=four, kind="parallel", body=(inner,)),),
    )  # fmt: skip
    assert ir_text.text(program).splitlines()[1:] == [
        "    for i in T.Parallel(4):",
        "        for i_1 in range(4, 4 + 4):",
        "            A[i] = (i - (i_1 - 4)) * 4",
    ]

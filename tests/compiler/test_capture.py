"""Capture: every form of kernel, every constant, every location."""

import numpy as np
import pytest
import tilelang
import tilelang.language as T
from cases import cases

import tilelab
from tilelab import ir
from tilelab.errors import InputError
from tilelab.finding import KernelRefused
from tilelab.verify import verify


def line_of(text):
    """The first line of this file that holds ``text``."""
    return next(i for i, s in enumerate(open(__file__), 1) if text in s and "line_of" not in s)


def statements(program, kind=ir.Stmt):
    return [s for s in ir.walk(program) if isinstance(s, kind)]


def launch_of(program):
    return statements(program, ir.Launch)[0]


@tilelang.jit
def eager(A, B, block: int = 64):
    N = T.const("N")
    A: T.Tensor[[N, 64], T.float16]
    B: T.Tensor[[N, 64], T.float16]
    C = T.empty((N, 64), T.float32)
    with T.Kernel(N // block, threads=128) as bx:
        s = T.alloc_shared((block, 64), T.float16)
        f = T.alloc_fragment((block, 64), T.float32)
        T.copy(A[bx * block, 0], s)
        for i, j in T.Parallel(block, 64):
            f[i, j] = T.exp(s[i, j]) + B[bx * block + i, j]
        T.copy(f, C[bx * block, 0])
    return C


@T.macro
def innermost(x, n):
    for i in T.Parallel(n):
        x[i] = x[i] + 1.0  # the macro's own line


@T.macro
def middle(x, n):
    innermost(x, n)  # calls innermost


@T.prim_func
def with_macros(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        f = T.alloc_fragment((64,), "float32")
        r = T.alloc_fragment((1,), "float32")
        T.copy(A, f)
        middle(f, 64)  # calls middle
        T.reduce_sum(f, r, dim=0)  # a library macro
        A[0] = r[0]


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_every_case_of_the_corpus_is_captured_and_verified(case):
    program = tilelab.capture(case.load(), consts=case.consts)
    assert verify(program) is program
    assert program.level == "tile"
    launches = statements(program, ir.Launch)
    assert launches
    for launch in launches:
        assert len(launch.block_vars) == len(launch.grid) >= 1
        assert len(launch.thread_vars) == len(launch.threads) == 3
    located = [s for s in statements(program) if s.loc is not None]
    assert {s.loc.file.rsplit("/", 1)[1] for s in located} == {case.file.rsplit("/", 1)[1]}
    assert all(s.loc.line >= 1 for s in located)
    assert len(located) >= len(statements(program)) - 1  # all but the function's root block
    assert list(program.sources) == [located[0].loc.file]


def test_an_eager_kernel_takes_sizes_from_constants_or_tensors():
    by_name = tilelab.capture(eager, consts={"N": 128})
    by_tensor = tilelab.capture(eager, np.zeros((256, 64), np.float16), np.zeros((256, 64), np.float16))
    assert [p.name for p in by_name.params] == ["A", "B", "C"]
    assert by_name.outputs == (2,)
    assert [p.buffer.shape[0].value for p in by_name.params] == [128, 128, 128]
    assert [p.buffer.shape[0].value for p in by_tensor.params] == [256, 256, 256]
    assert launch_of(by_name).grid[0].value == 2
    assert launch_of(tilelab.capture(eager, consts={"N": 128, "block": 32})).grid[0].value == 4


def test_the_shape_of_a_captured_kernel():
    launch = launch_of(tilelab.capture(eager, consts={"N": 128}))
    (root,) = launch.body
    assert [(b.name, b.scope, b.dtype) for b in root.allocs] == [("s", "shared.dyn", "float16"), ("f", "local.fragment", "float32")]
    copy, loop, back = root.body
    assert (copy.op, back.op) == ("copy", "copy")
    assert copy.args[0].access == "r"
    assert copy.args[1].access == "w"
    assert [e.value for e in copy.args[0].extents] == [64, 64]
    assert loop.kind == "parallel"
    inner = loop.body[0]
    assert inner.kind == "parallel"
    store = inner.body[0]
    assert store.indices == (loop.var, inner.var)
    assert copy.loc.line == line_of("T.copy(A[bx * block, 0], s)")
    assert store.loc.line == line_of("f[i, j] = T.exp(s[i, j])")
    assert root.allocs[0].loc.line == line_of("s = T.alloc_shared((block, 64)")


def test_macros_keep_the_lines_that_called_them():
    from tilelab.compiler import loading

    with loading():
        kernel = T.prim_func(with_macros.orig_func)
    program = tilelab.capture(kernel)
    store = next(s for s in statements(program, ir.Store) if s.buffer.name == "f")
    assert store.loc.line == line_of("# the macro's own line")
    assert store.loc.caller.line == line_of("# calls innermost")
    assert store.loc.caller.caller.line == line_of("# calls middle")
    assert store.loc.caller.caller.caller is None
    reduce = next(s for s in statements(program, ir.Tile) if s.op == "reduce")
    assert reduce.loc.line == line_of("# a library macro")
    assert reduce.loc.file == __file__
    assert reduce.loc.caller is None


def test_a_lazy_kernel_with_out_idx():
    @tilelang.jit(out_idx=-1)
    def scale(N, factor=2.0):
        @T.prim_func
        def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(N):
                    B[i] = A[i] * factor

        return main

    program = tilelab.capture(scale, consts={"N": 32})
    assert program.name == "main"
    assert program.outputs == (1,)
    with pytest.raises(InputError, match=r"scale needs N.*--const N=VALUE"):
        tilelab.capture(scale)
    with pytest.raises(InputError, match="scale has no constant M"):
        tilelab.capture(scale, consts={"N": 32, "M": 1})


def test_a_function_of_constants():
    def make(n):
        @T.prim_func
        def main(A: T.Tensor((n,), "float32")):
            with T.Kernel(1, threads=32):
                T.clear(A)

        return main

    assert tilelab.capture(make, consts={"n": 7}).params[0].buffer.shape[0].value == 7
    with pytest.raises(InputError, match="make needs n"):
        tilelab.capture(make)
    with pytest.raises(InputError, match="is not a kernel but a int"):
        tilelab.capture(3)


def test_missing_and_unknown_constants_are_named():
    with pytest.raises(InputError, match="eager needs N"):
        tilelab.capture(eager)
    with pytest.raises(InputError, match=r"eager has no constant Q.*it takes block, N"):
        tilelab.capture(eager, consts={"N": 64, "Q": 1})


FACTOR = 2.0


@tilelang.jit
def uses_a_global(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    with T.Kernel(1, threads=32):
        for i in T.Parallel(N):
            A[i] = A[i] * FACTOR


def test_a_changed_global_is_noticed():
    def factor():
        program = tilelab.capture(uses_a_global, consts={"N": 32})
        return next(e.value for e in ir.walk(program) if isinstance(e, ir.Const) and e.dtype == "float32")

    global FACTOR
    assert factor() == 2.0
    FACTOR = 3.0
    try:
        assert factor() == 3.0
    finally:
        FACTOR = 2.0


def test_dynamic_sizes_stay_symbolic():
    @T.prim_func
    def main(A: T.Tensor((T.dynamic("n"), 4), "float32")):
        with T.Kernel(T.ceildiv(A.shape[0], 8), threads=32) as b:
            A[b, 0] = 1.0

    program = tilelab.capture(main)
    assert list(ir.dynamic_sizes(program)) == ["n"]
    assert program.params[0].buffer.shape[0] is ir.dynamic_sizes(program)["n"]


def test_layouts_and_safe_values_are_kept():
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32")):
        with T.Kernel(1):
            s = T.alloc_shared((32, 32), "float32")
            T.annotate_layout({s: T.Layout((32, 32), lambda i, j: (i, j ^ i))})
            T.annotate_safe_value({A: -1.0})
            T.use_swizzle(8)
            T.copy(A, s)

    program = tilelab.capture(main)
    launch = launch_of(program)
    assert launch.attrs["threads_defaulted"] is True
    assert [t.value for t in launch.threads] == [128, 1, 1]
    (root,) = launch.body
    ((data, layout),) = root.attrs["layout_map"].items
    assert data is root.allocs[0].data
    assert isinstance(layout, ir.IndexMap)
    assert [e.value for e in layout.shape] == [32, 32]
    assert root.attrs["safe_value_map"].items[0][0] is program.params[0].buffer.data
    swizzle = statements(program, ir.Attribute)[0]
    assert swizzle.key == "threadblock_swizzle_pattern"


def test_a_pipelined_loop_says_its_stages_as_plain_ints():
    case = next(c for c in cases() if c.name == "gemm")
    program = tilelab.capture(case.load(), consts=case.consts)
    loops = [s for s in statements(program, ir.For) if "num_stages" in s.attrs]
    assert [s.attrs["num_stages"] for s in loops] == [2]
    case = next(c for c in cases() if c.name == "gemm_hand_schedule")
    program = tilelab.capture(case.load(), consts=case.consts)
    loop = next(s for s in statements(program, ir.For) if "tl_pipeline_stage" in s.attrs)
    assert loop.attrs["tl_pipeline_stage"] == (0, 0, 1)
    assert loop.attrs["tl_pipeline_order"] == (0, 1, 2)


def test_bindings_of_a_persistent_loop_stand_in_it():
    case = next(c for c in cases() if c.name == "gemm_persistent")
    program = tilelab.capture(case.load(), consts=case.consts)
    loop = next(s for s in statements(program, ir.For) if s.var.name == "w")
    assert [type(s).__name__ for s in loop.body[:2]] == ["Bind", "Bind"]


def test_device_assertions_are_captured_without_a_gpu():
    case = next(c for c in cases() if c.name == "printed")
    program = tilelab.capture(case.load())
    ops = {e.op for e in ir.walk(program) if isinstance(e, ir.Call)}
    assert "tl.device_assert_with_msg" in ops
    assert "tirx.call_extern" in ops


def test_capture_is_quiet(capfd):
    @T.prim_func
    def fine(A: T.Tensor((32,), "float32")):
        with T.Kernel(1):
            T.clear(A)

    def broken():
        @T.prim_func
        def main(A: T.Tensor((32,), "float32")):
            with T.Kernel(1):
                s = T.alloc_shared((16,), "float32")
                T.copy(A, s)

        return main

    tilelab.capture(fine)
    with pytest.raises(KernelRefused):
        tilelab.capture(broken)
    assert capfd.readouterr() == ("", "")


def test_unknown_statements_are_refused_by_name():
    from tilelab.compiler.statements import TileReader

    class Strange:
        pass

    with pytest.raises(KernelRefused, match=r"TL703.*the statement Strange") as caught:
        TileReader().body(Strange())
    assert caught.value.finding.code == "TL703"

"""emit: a Program becomes a prim_func that is what was captured, and lowers to the same source."""

import pytest
import tilelang
import tvm
from cases import cases

import tilelab
from tilelab import ir, serde
from tilelab.compiler import capture_prim_func, emit, loading
from tilelab.compiler.lowering import _run
from tilelab.compiler.targets import tvm_target
from tilelab.compiler.watch import Watch
from tilelab.errors import InputError, VerifyError

QUICK = {"copy1d_129", "row_sum", "reshape_view", "vector_add_dynamic", "histogram", "xor_layout", "two_launches", "printed", "safe_maximum"}
SOME = {"gemm", "gemm_layout", "gemm_hand_schedule", "softmax", "nested_macros", "gemm_persistent", "producer_consumer", "reducer_epoch"}


def prim_func(case):
    kernel = case.load()
    if hasattr(kernel, "get_tir"):
        with loading():
            kernel.func.p1_cache.clear()
            return kernel.get_tir(**case.consts)
    return kernel


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_emit_gives_back_what_was_captured(case):
    program = tilelab.capture(case.load(), consts=case.consts)
    func = emit(program)
    assert serde.digest(capture_prim_func(func)) == serde.digest(program)
    again = emit(serde.loads(serde.dumps(program), ir.Program))
    assert tvm.ir.structural_equal(func, again, map_free_vars=True)
    original = prim_func(case)
    if case.name != "gemm_persistent":  # its bindings moved into their loop
        key = "tilelang_out_idx"
        if original.attrs and key in original.attrs:
            func, original = func.without_attr(key), original.without_attr(key)
        func = func.without_attr(key) if key in (func.attrs or {}) else func
        tvm.ir.assert_structural_equal(original, func, map_free_vars=True)


def same_source(case, target):
    program = tilelab.capture(case.load(), consts=case.consts)
    _, tvm_t = tvm_target(target)
    with loading():
        mine = _run(emit(program), program, tvm_t, Watch()).kernel_source
        theirs = _run(prim_func(case), program, tvm_t, Watch()).kernel_source
    assert mine == theirs


@pytest.mark.parametrize("case", [c for c in cases() if c.name in QUICK], ids=lambda c: c.name)
def test_what_is_emitted_lowers_to_the_same_source(case):
    same_source(case, case.targets[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "target"), [(c, t) for c in cases() if c.name in SOME for t in c.targets], ids=lambda v: v if isinstance(v, str) else v.name
)
def test_larger_kernels_lower_to_the_same_source(case, target):
    same_source(case, target)


def test_an_edited_program_lowers_by_itself():
    from dataclasses import replace

    case = next(c for c in cases() if c.name == "gemm")
    program = tilelab.capture(case.load(), consts=case.consts)

    def edit(s):
        if isinstance(s, ir.For) and "num_stages" in s.attrs:
            return replace(s, attrs={**s.attrs, "num_stages": 4})
        return replace(s, body=tuple(map(edit, s.body))) if hasattr(s, "body") else s

    edited = replace(program, body=tuple(map(edit, program.body)))
    assert tilelab.lower(edited).resources["gemm_kernel"].smem_bytes == 2 * tilelab.lower(program).resources["gemm_kernel"].smem_bytes


def test_only_grammatical_tile_programs_are_emitted():
    case = next(c for c in cases() if c.name == "copy1d_1")
    program = tilelab.capture(case.load(), consts=case.consts)
    with pytest.raises(InputError, match="lowered device program"):
        emit(tilelab.lower(program).program)
    data = ir.Var(dtype="handle", name="x")
    broken = ir.Program(name="k", level="tile", params=(), body=(ir.Eval(value=data),))
    with pytest.raises(VerifyError, match="the variable 'x'"):
        emit(broken)


def test_the_release_of_tilelang_is_one_that_was_tested():
    assert tilelang.__version__.startswith("0.1.15")

"""TileLang's errors in plain words: code, operation, line, shapes, remedy."""

import pytest
import tilelang  # noqa: F401
import tilelang.language as T

import tilelab
from tilelab.errors import InputError
from tilelab.finding import KernelRefused


def line_of(text):
    return next(i for i, s in enumerate(open(__file__), 1) if text in s and "line_of" not in s)


def refused(make):
    with pytest.raises(KernelRefused) as caught:
        tilelab.capture(make)
    return caught.value.finding


def copy_misfit():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=64):
            S = T.alloc_shared((32, 64), "float32")
            T.copy(A, S)  # copy misfit

    return k


def gemm_misfit():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((16, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.gemm(a, b, c)  # gemm misfit

    return k


def reduce_misfit():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((32,), "float32")
            T.reduce_sum(a, r, dim=1)  # reduce misfit

    return k


def reduce_dim():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((64,), "float32")
            T.reduce_max(a, r, dim=2)  # reduce dim

    return k


def atomic_misfit():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((32, 64), "float32")
            T.atomic_add(A, a)  # atomic misfit

    return k


@pytest.mark.parametrize(
    ("make", "where", "says"),
    [
        (copy_misfit, "# copy misfit", ["T.copy", "A is (64, 64)", "S is (32, 64)"]),
        (gemm_misfit, "# gemm misfit", ["T.gemm", "a is (64, 32)", "b is (16, 64)", "c is (64, 64)"]),
        (reduce_misfit, "# reduce misfit", ["T.reduce", "a is (64, 64)", "r is (32,)"]),
        (reduce_dim, "# reduce dim", ["T.reduce", "a is (64, 64)"]),
        (atomic_misfit, "# atomic misfit", ["T.atomic_add", "A is (64, 64)", "a is (32, 64)"]),
    ],
)
def test_operands_that_do_not_fit(make, where, says):
    f = refused(make)
    assert f.code == "TL701"
    assert f.severity == "error"
    assert (f.file, f.line) == (__file__, line_of(where))
    for part in says:
        assert part in f.message
    assert f.fix
    assert "StructuralEqual" not in f.message
    assert "<root>" not in f.message
    assert f.evidence["operands"]


def test_the_evidence_of_a_misfit_is_data():
    f = refused(copy_misfit)
    assert f.evidence == {
        "operation": "T.copy",
        "operands": {
            "src": {"name": "A", "shape": [64, 64], "dtype": "float32"},
            "dst": {"name": "S", "shape": [32, 64], "dtype": "float32"},
        },
    }


def test_file_names_are_told_as_the_user_typed_them():
    with pytest.raises(KernelRefused) as caught:
        tilelab.capture(copy_misfit, files={__file__: "mine.py"})
    assert caught.value.finding.file == "mine.py"


def buffer_as_condition():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            if A:  # a buffer as a condition
                A[0] = 1.0

    return k


def test_other_refusals_are_tl702_with_the_line():
    f = refused(buffer_as_condition)
    assert f.code == "TL702"
    assert f.line == line_of("# a buffer as a condition")
    assert "cannot be used as condition" in f.message
    assert "\n" not in f.message


def missing_name():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(A, undefined_buffer)  # noqa: F821

    return k


def misspelt():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.cler(A)

    return k


def test_a_missing_name_is_python_s_mistake_to_tell():
    with pytest.raises(InputError, match=rf"{line_of('undefined_buffer')}: the name 'undefined_buffer' is not defined"):
        tilelab.capture(missing_name)
    with pytest.raises(InputError, match=r"T has no 'cler'.*did you mean 'clear'"):
        tilelab.capture(misspelt)

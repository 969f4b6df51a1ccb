"""TileLang's errors in plain words: code, operation, line, shapes, remedy."""

import pytest
import tilelang
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


def out_of_scope():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            for i in range(4):
                y = A[i]
            A[0] = y  # used outside

    return k


def too_many_indices():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1) as b:
            A[b, 0] = 1.0  # too many indices

    return k


def no_annotation():
    @T.prim_func
    def k(A):
        with T.Kernel(1):
            T.clear(A)

    return k


def no_threads():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=0):  # no threads
            T.clear(A)

    return k


def four_dimensions():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, 2, 3, 4):  # four dimensions
            T.clear(A)

    return k


def endless():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            while True:  # endless
                T.clear(A)

    return k


def divides_by_zero():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32")):
        with T.Kernel(1):
            A[0] = 1 // 0  # divides by zero

    return k


@tilelang.jit
def not_returned():
    B = T.empty((64,), T.float32)
    with T.Kernel(1):
        T.clear(B)


@tilelang.jit
def unused_size(A):
    N = T.const("N")  # noqa: F841
    A: T.Tensor[[64], T.float32]
    with T.Kernel(1):
        T.clear(A)


@pytest.mark.parametrize(
    ("make", "where", "says", "fix"),
    [
        (out_of_scope, "# used outside", "variable `y` is used outside", "T.alloc_var"),
        (too_many_indices, "# too many indices", "1-dimensional", "one index for each dimension"),
        (no_annotation, "", "missing 1 required positional argument: 'A'", "annotate every parameter"),
        (no_threads, "# no threads", "threads must be positive", "1 to 1024"),
        (four_dimensions, "# four dimensions", "T.Kernel", "one to three dimensions"),
        (endless, "# endless", "Infinite while loop", "a condition"),
        (divides_by_zero, "# divides by zero", "ZeroDivisionError", "change that line"),
        (not_returned, "", "`T.empty` are returned", "return every tensor"),
        (unused_size, "", "`N` is not used", "extent of a tensor annotation"),
    ],
)
def test_each_refusal_says_what_to_try(make, where, says, fix):
    f = refused(make)
    assert f.code == "TL702"
    assert f.file == __file__
    if where:
        assert f.line == line_of(where)
    assert says in f.message
    assert fix in f.fix
    assert "\n" not in f.message
    assert "ir_builder" not in f.message
    assert len(f.message) < 400


def test_a_folder_called_tilelab_is_still_the_users(tmp_path):
    folder = tmp_path / "tilelab" / "mine"
    folder.mkdir(parents=True)
    (folder / "broken.py").write_text(
        "import tilelang.language as T\n\n\ndef make():\n    @T.prim_func\n    def k(A: T.Tensor((64,), 'float32')):\n"
        "        with T.Kernel(1):\n            s = T.alloc_shared((8,), 'float32')\n            T.copy(A, s)\n\n    return k\n"
    )
    from tilelab.loading import load_kernel

    f = refused(load_kernel(f"{folder}/broken.py::make").kernel)
    assert (f.code, f.line) == ("TL701", 9)

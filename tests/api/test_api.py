"""simulate and check from Python: tensors of every kind in, the same kind out, inputs untouched, captures answered from the cache."""

import numpy as np
import pytest
import tilelang
import tilelang.language as T
import torch

import tilelab
from tilelab import api
from tilelab.errors import InputError
from tilelab.finding import KernelRefused

FACTOR = 2


@tilelang.jit
def scale(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * FACTOR
    return B


@tilelang.jit(out_idx=[-1])
def add_lazily(n, dtype="float32"):
    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype), C: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(n):
                C[i] = A[i] + B[i]

    return kernel


@T.prim_func
def increment(A: T.Tensor((128,), "int32"), by: T.int32):
    with T.Kernel(1, threads=128) as _:
        for i in T.Parallel(128):
            A[i] = A[i] + by


@tilelang.jit
def square(A, B):
    n = T.dynamic("n")
    A: T.Tensor[[n], T.float32]
    B: T.Tensor[[n], T.float32]
    with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * A[bx * 64 + i]


def test_torch_in_torch_out():
    a = torch.arange(100, dtype=torch.float32)
    trace = tilelab.simulate(scale, a)
    assert isinstance(trace.result, torch.Tensor)
    assert torch.equal(trace.result, a * 2)
    assert trace.outputs["out0"] is trace.result


def test_numpy_in_numpy_out():
    a = np.arange(100, dtype=np.float32)
    result = tilelab.simulate(scale, a).result
    assert isinstance(result, np.ndarray)
    assert np.array_equal(result, a * 2)


def test_inputs_stay_as_they_were():
    a = torch.arange(128, dtype=torch.int32)
    trace = tilelab.simulate(increment, a, 5)
    assert torch.equal(a, torch.arange(128, dtype=torch.int32))
    assert torch.equal(trace.outputs["A"], a + 5)
    assert trace.result is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_dtypes_that_numpy_lacks(dtype):
    a = torch.randn(128).to(getattr(torch, dtype))
    b = torch.zeros(128).to(getattr(torch, dtype))
    result = tilelab.simulate(add_lazily, a, b, consts={"n": 128, "dtype": dtype}).result
    assert result.dtype == a.dtype
    assert torch.equal(result.float(), a.float())


def test_strided_views_are_read_as_they_are():
    a = torch.arange(256, dtype=torch.float32)[::2]
    assert torch.equal(tilelab.simulate(scale, a.contiguous()).result, a * 2)
    t = np.arange(64, dtype=np.float32)[::-1]
    assert np.array_equal(tilelab.simulate(scale, np.ascontiguousarray(t)).result, t * 2)


@pytest.mark.parametrize("n", [1, 63, 64, 200])
def test_dynamic_sizes_come_from_the_tensors(n):
    a = torch.randn(n)
    assert torch.equal(tilelab.simulate(square, a, torch.empty(n)).outputs["B"], a * a)


def test_no_tensors_means_made_ones():
    trace = tilelab.simulate(scale, consts={"N": 64}, params=tilelab.SimParams(seed=3))
    made = np.random.Generator(np.random.PCG64(3)).standard_normal(64).astype(np.float32)
    assert np.array_equal(trace.result, made * 2)


def test_captures_are_kept_until_a_global_changes(monkeypatch):
    a = torch.ones(64)
    first = api.program_of(scale, a)
    assert api.program_of(scale, torch.zeros(64)) is first
    assert api.program_of(scale, torch.ones(65)) is not first
    monkeypatch.setitem(globals(), "FACTOR", 10)
    assert torch.equal(tilelab.simulate(scale, a).result, a * 10)


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        ((torch.ones(100, dtype=torch.float64), torch.ones(128)), "A is declared (128,) float32, (100,) float64 was given"),
        ((torch.ones(128), torch.ones(128, dtype=torch.float16)), "B is declared (128,) float32, (128,) float16 was given"),
        ((torch.ones(128),), "takes 2 tensors or numbers"),
        ((torch.ones(128), "text"), "str is not a tensor"),
        ((torch.ones(128), 3.0), "B is declared"),
    ],
)
def test_tensors_that_do_not_fit(tensors, said):
    with pytest.raises(InputError) as error:
        tilelab.simulate(add_lazily, *tensors, consts={"n": 128})
    assert said in str(error.value)


def test_check_reports_what_is_refused():
    @tilelang.jit
    def bad(A):
        A: T.Tensor[[64, 64], T.float32]
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((32, 64), T.float32)
            T.copy(A, S[0:16, :])

    codes = [f.code for f in tilelab.check(bad)]
    assert codes == ["TL701"]
    assert [f.code for f in tilelab.simulate(bad).findings] == ["TL701"]


def test_a_kernel_that_cannot_be_captured_is_refused():
    @tilelang.jit
    def bad(A):
        A: T.Tensor[[64], T.float32]
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((32,), T.float32)
            T.copy(A[0:4], S[0:4, 0:3])

    assert [f.code for f in tilelab.check(bad)] == ["TL702"]
    with pytest.raises(KernelRefused) as refused:
        tilelab.simulate(bad)
    assert refused.value.finding.line


def test_the_thread_level_is_said_to_be_missing():
    findings = tilelab.check(scale, torch.ones(64), level="thread")
    assert "TL703" in [f.code for f in findings]


def test_parameters_never_read_start_as_poison():
    @T.prim_func
    def partly(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32"), N: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                O[i] = A[i]
                N[i] = N[i] + 1.0

    from tilelab.tensors import default_inputs, read_params

    program = tilelab.capture(partly)
    assert read_params(program) == {"A", "N"}
    made = default_inputs(program)
    assert made["O"] is None
    rng = np.random.Generator(np.random.PCG64(0))
    assert np.array_equal(made["A"], rng.standard_normal(64).astype(np.float32))
    assert np.array_equal(made["N"], rng.standard_normal(64).astype(np.float32))

"""torch ↔ numpy without a copy where there need be none, bit for bit."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tilelab
from tilelab.errors import InputError
from tilelab.tensors import numpy_dtype, to_numpy, to_torch

ALL = ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "uint8", "int16", "int32", "int64", "bool"]


@pytest.mark.parametrize("name", ALL)
def test_there_and_back_is_bit_for_bit(name):
    dtype = getattr(torch, name)
    tensor = torch.randint(0, 2, (7, 5)).to(dtype) if name == "bool" else torch.randint(-8, 8, (7, 5)).to(torch.float32).to(dtype)
    array = to_numpy(tensor)
    assert array.dtype == numpy_dtype(name)
    back = to_torch(array)
    assert back.dtype == dtype
    assert torch.equal(back.view(torch.uint8), tensor.view(torch.uint8))


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e5m2"])
def test_memory_is_shared(name):
    tensor = torch.zeros(4).to(getattr(torch, name))
    to_numpy(tensor)[2] = 1
    assert float(tensor[2]) == 1


def test_transposed_tensors_keep_their_elements():
    tensor = torch.arange(12.0).reshape(3, 4).T
    assert np.array_equal(to_numpy(tensor), tensor.numpy())


def test_packed_float4_is_one_element_a_byte():
    packed = torch.tensor([[0x21, 0x43]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    array = to_numpy(packed)
    assert array.shape == (1, 4)
    assert array.dtype == ml_dtypes.float4_e2m1fn
    assert np.array_equal(array.astype(np.float32), np.array([[1, 2, 3, 4]], np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32))


@pytest.mark.parametrize("value", [None, 3, 2.5, True])
def test_numbers_pass(value):
    assert to_numpy(value) is value


def test_what_is_no_tensor():
    with pytest.raises(InputError, match="dict is not a tensor"):
        to_numpy({1: 2})
    with pytest.raises(InputError, match="no tensor holds dtype"):
        numpy_dtype("handle")


def test_sizes_are_learned_from_shapes_that_are_sums_and_multiples():
    import tilelang.language as T

    n = T.dynamic("n")

    @T.prim_func
    def strided(A: T.Tensor((n * 4 + 1,), "int32"), B: T.Tensor((n,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[4 * i + 1]

    @T.prim_func
    def alone(A: T.Tensor((n * 4,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(n * 4):
                A[i] = 7

    taken = tilelab.simulate(strided, np.arange(17, dtype=np.int32), np.zeros(4, np.int32)).outputs["B"]
    assert taken.tolist() == [1, 5, 9, 13]
    assert tilelab.simulate(alone, np.zeros(12, np.int32)).outputs["A"].tolist() == [7] * 12
    with pytest.raises(InputError, match=r"A has 18 elements on an axis declared 4 \* n \+ 1: no whole n gives that"):
        tilelab.simulate(strided, np.arange(18, dtype=np.int32), np.zeros(4, np.int32))
    with pytest.raises(InputError, match="B is declared"):
        tilelab.simulate(strided, np.arange(17, dtype=np.int32), np.zeros(5, np.int32))

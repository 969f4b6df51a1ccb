"""torch ↔ numpy without a copy where there need be none, bit for bit."""

import ml_dtypes
import numpy as np
import pytest
import torch

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
    with pytest.raises(InputError, match="list is not a tensor"):
        to_numpy([1, 2])
    with pytest.raises(InputError, match="no tensor holds dtype"):
        numpy_dtype("handle")

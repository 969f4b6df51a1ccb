"""Arrays come back exactly as they went in, and layouts stay small."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tilelab.layout_make import atom, swizzled
from tilelab.views.encode import decode, encode


@settings(max_examples=150, deadline=None)
@given(hnp.arrays(np.int64, hnp.array_shapes(min_dims=1, max_dims=4, max_side=9), elements=st.integers(-(2**31), 2**31 - 1)))
def test_integers_come_back(array):
    back = decode(json.loads(json.dumps(encode(array))))
    assert back.shape == array.shape
    assert (back == array).all()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4095), min_size=2, max_size=12), min_size=2, max_size=3), st.sampled_from(["sum", "xor"]))
def test_separable_arrays_are_tables(parts, form):
    op = np.add if form == "sum" else np.bitwise_xor
    array = np.zeros((1,) * len(parts), dtype=np.int64)
    for axis, part in enumerate(parts):
        array = op(array, np.array(part).reshape([-1 if k == axis else 1 for k in range(len(parts))]))
    record = encode(array)
    assert record["form"] in ("sum", form)
    assert (decode(record) == array).all()


def test_floats_keep_nan_and_infinity():
    array = np.array([[0.5, -np.inf], [np.nan, 1e-8]], dtype=np.float32)
    assert np.array_equal(decode(encode(array)), array, equal_nan=True)


@pytest.mark.parametrize("array", [atom("mma.m16n8k16.A").threads_of(), swizzled((128, 128)).addresses(), swizzled((128, 128)).banks()])
def test_usual_layouts_are_tiny(array):
    record = encode(array)
    assert record["form"] != "dense"
    assert len(json.dumps(record)) < 2500

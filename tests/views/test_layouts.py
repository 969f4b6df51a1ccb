"""Layouts against the books: PTX's tables, plain enumeration, and the laws of inverses and composition."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilelab.errors import InputError
from tilelab.layout import bits_of
from tilelab.layout_make import ATOMS, atom, cute_fragment, cute_shared, make_fragment, make_shared, row_major, swizzled


# PTX ISA, section "Matrix fragments for mma.m16n8k16": where value c_k / a_k / b_k of a lane lies.
def ptx_d(lane, k):
    group, within = lane >> 2, lane % 4
    return (group if k < 2 else group + 8), within * 2 + (k & 1)


def ptx_a(lane, k):
    group, within = lane >> 2, lane % 4
    row = group if k in (0, 1, 4, 5) else group + 8
    return row, within * 2 + (k & 1) + (8 if k >= 4 else 0)


def ptx_b(lane, k):
    group, within = lane >> 2, lane % 4
    return within * 2 + (k & 1) + (8 if k >= 2 else 0), group


@pytest.mark.parametrize(("name", "table", "values"), [("mma.m16n8k16.A", ptx_a, 8), ("mma.m16n8k16.B", ptx_b, 4), ("mma.m16n8k16.D", ptx_d, 4)])
def test_mma_operands_are_those_of_the_ptx_tables(name, table, values):
    held = atom(name).elements_of()
    columns = atom(name).shape[1]
    assert held.shape == (32, values)
    for lane, k in itertools.product(range(32), range(values)):
        row, column = table(lane, k)
        assert held[lane, k] == row * columns + column


def test_wgmma_accumulator_is_that_of_the_ptx_table():
    # "Register fragments for wgmma.mma_async.m64nNk16", D: row = warp % 4 * 16 + lane / 4 (+8), column = lane % 4 * 2 (+1)
    held = atom("wgmma.m64n8k16.D").elements_of()
    for thread, k in itertools.product(range(128), range(4)):
        warp, lane = divmod(thread, 32)
        assert held[thread, k] == (warp * 16 + lane // 4 + 8 * (k // 2)) * 8 + lane % 4 * 2 + k % 2


@pytest.mark.parametrize("name", ATOMS)
def test_operands_hold_every_element_once(name):
    one = atom(name)
    assert one.check() == ()
    assert sorted(one.elements_of().ravel().tolist()) == list(range(one.size))


@pytest.mark.parametrize("span", [32, 64, 128])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_swizzle_is_the_xor_of_address_bits(span, dtype):
    """TMA's rule: within its span, bits 4… of the byte address are XORed with bits 7…"""
    size = bits_of(dtype) // 8
    columns = span // size  # one span a row: no blocking to undo
    one = swizzled((64, columns), dtype=dtype, span_bytes=span)
    bits = {32: 1, 64: 2, 128: 3}[span]
    for i, j in itertools.product(range(64), range(columns)):
        plain = (i * columns + j) * size
        expected = plain ^ (((plain >> 7) & ((1 << bits) - 1)) << 4)
        assert one.byte_addresses()[i, j] == expected
    assert one.check() == ()


def test_banks_by_hand():
    one = row_major((4, 32), dtype="float32")
    assert (one.banks() == np.arange(32)).all()
    assert row_major((1, 64), dtype="float16").banks()[0].tolist() == [j // 2 for j in range(64)]
    assert row_major((2, 16), dtype="float64").banks()[0].tolist() == list(range(0, 32, 2))


digits = st.sampled_from([1, 2, 3, 4, 8])


@settings(max_examples=60, deadline=None)
@given(rows=digits, columns=digits, warps=digits, vector=digits, copies=st.sampled_from([1, 2, 4]))
def test_inverse_undoes_the_layout(rows, columns, warps, vector, copies):
    """Element (i, j) of a blocked fragment: chosen owners, replicated; what the inverse lists is what the layout says."""
    shape = (rows * warps, columns * vector)

    def place(i, j, rep=0):
        return (i % warps) * columns + j // vector + rep * warps * columns, j % vector + i // warps * vector

    one = make_fragment(shape, place, replicate=copies)
    assert one.check() == ()
    held = one.elements_of()
    thread, register = one.threads_of(), one.registers()
    for i, j, rep in np.ndindex(*shape, copies):
        assert (thread[i, j, rep], register[i, j, rep]) == place(i, j, rep)
        assert held[thread[i, j, rep], register[i, j, rep]] == i * shape[1] + j
    assert (held >= 0).sum() == one.size * copies


@settings(max_examples=60, deadline=None)
@given(order=st.permutations([2, 3, 4, 2]), pad=st.integers(0, 3))
def test_shared_inverse_and_padding(order, pad):
    shape = tuple(order)
    strides = np.cumprod([1, *[n + pad for n in shape[::-1]]])[:-1][::-1]

    one = make_shared(shape, lambda *at: sum((i * int(s) for i, s in zip(at, strides, strict=True)), 0))
    lies = one.element_at()
    assert one.check() == ()
    assert (lies[one.addresses().ravel()] == np.arange(one.size)).all()
    assert (lies == -1).sum() == len(lies) - one.size


def test_composition_is_application_twice():
    tile = swizzled((32, 64))
    turn = make_shared((64, 32), lambda i, j: (j, i))
    both = turn.compose(tile)
    assert (both.addresses() == tile.addresses().T).all()
    with pytest.raises(InputError, match="32×64"):
        make_shared((8, 8), lambda i, j: i * 8 + j).compose(tile)


def test_a_fragment_through_shared_memory():
    a, shared = atom("mma.m16n8k16.A"), row_major((16, 16))
    found = a.through(shared)
    for lane, k in itertools.product(range(32), range(8)):
        row, column = ptx_a(lane, k)
        assert found[lane, k] == row * 16 + column


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: make_shared((8, 8), lambda i, j: i * 7 + j, name="S"), r"S puts elements \(0, 7\) and \(1, 0\) both at address 7"),
        (lambda: make_shared((8, 8), lambda i, j: i * 8 + j - 1, name="S"), r"S sends element \(0, 0\) to address -1"),
        (lambda: make_fragment((8,), lambda i: (i, 0), threads=4, name="F"), r"F sends element \(4,\) to register 0 of thread 4.*has 4 threads"),
        (lambda: make_fragment((8,), lambda i: (i % 4, 0), name="F"), r"F puts elements \(0,\) and \(4,\) both at register 0 of thread 0"),
    ],
)
def test_wrong_layouts_are_found(make, says):
    (found,) = make().check()
    assert found.code == "TL404"
    assert __import__("re").search(says, found.message)


# ----------------------------------------------------------------------------------------------------- CuTe
def test_cute_shape_and_stride_by_enumeration():
    one = cute_shared("(4,(2,4)):(2,(1,8))")
    for i, j in itertools.product(range(4), range(8)):
        assert one.addresses()[i, j] == i * 2 + j % 2 + j // 2 * 8


def test_cute_thread_value_layout_of_an_mma():
    """CUTLASS writes the accumulator of m16n8 as ((4,8),(2,2)):((32,1),(16,8)) over a column-major 16×8 tile."""
    one = cute_fragment("((4,8),(2,2)):((32,1),(16,8))", (16, 8))
    assert (one.elements_of() == atom("mma.m16n8k16.D").elements_of()).all()


def test_cute_stride_nought_is_a_copy():
    one = cute_fragment("((4,2),2):((2,0),1)", (8,))
    assert one.map.replicate_extent == 2
    assert one.threads_of()[3].tolist() == [1, 5]


@pytest.mark.parametrize("text", ["", "8", "(8", "(8,8):(8", "(8,8):(1,2,3)", "((2,4),8):(1,8)", "x:y", "(8,8):(8,1) "])
def test_bad_cute_layouts_are_named(text):
    if text.endswith(" "):
        assert cute_shared(text).shape == (8, 8)
        return
    with pytest.raises(InputError):
        cute_shared(text)


def test_functions_that_cannot_be_layouts():
    with pytest.raises(InputError, match="branch"):
        make_shared((4, 4), lambda i, j: i if i < 2 else j)
    with pytest.raises(InputError, match="not an integer"):
        make_shared((4, 4), lambda i, j: 0.5)
    with pytest.raises(InputError, match="3 axes"):
        make_shared((4, 4, 4), lambda i, j: i)
    with pytest.raises(InputError, match="pair"):
        make_fragment((4,), lambda i: i)
    with pytest.raises(InputError, match=r"mma.m16n8k16.A"):
        atom("mma.m1n1k1")

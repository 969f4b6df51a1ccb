"""Tensors made from addresses: tables of pointers, and views from a pointer on."""

import numpy as np
import pytest
import tilelang.language as T

from tilelab.errors import InputError


def table(rows, n):
    @T.prim_func
    def k(P: T.Tensor((rows,), T.ptr), S: T.Tensor((rows,), "int32"), B: T.Tensor((rows, n), "float32")):
        with T.Kernel(rows, threads=64) as b:
            A = T.make_tensor_from_addr(P[b], (S[b],), "float32")
            for i in T.Parallel(n):
                B[b, i] = A[i]

    return k


def grouped(groups, m, n, k):
    @T.prim_func
    def kernel(PA: T.Tensor((groups,), T.ptr), PB: T.Tensor((groups,), T.ptr), PC: T.Tensor((groups,), T.ptr)):
        with T.Kernel(m // 32, n // 32, groups, threads=128) as (bx, by, g):
            A = T.make_tensor(PA[g], (m, k), "float16")
            B = T.make_tensor(PB[g], (k, n), "float16")
            C = T.make_tensor(PC[g], (m, n), "float32")
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for i in T.Pipelined(k // 32, num_stages=2):
                T.copy(A[bx * 32, i * 32], a)
                T.copy(B[i * 32, by * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * 32, by * 32])

    return kernel


def test_arrays_behind_a_table_are_read_up_to_the_declared_size(run, rng):
    arrays = [rng.standard_normal(n).astype(np.float32) for n in (64, 10, 64)]
    trace = run(table(3, 64), P=arrays, S=np.array([64, 10, 64], np.int32))
    want = np.zeros((3, 64), np.float32)
    for row, a in zip(want, arrays, strict=True):
        row[: len(a)] = a
    np.testing.assert_array_equal(trace.outputs["B"], want)
    assert {f.code for f in trace.findings} == {"TL102"}


def test_a_declaration_longer_than_the_array_is_out_of_bounds(run):
    found = run(table(2, 64), P=[np.ones(64, np.float32), np.ones(10, np.float32)], S=np.array([64, 64], np.int32)).findings
    assert [(f.code, f.block, f.evidence["index"]) for f in found] == [("TL101", (1, 0, 0), [10])]
    assert "memory that the address behind A points to" in found[0].message


def test_products_through_pointer_tables_write_what_the_pointers_name(run, rng):
    a = [rng.standard_normal((64, 64)).astype(np.float16) for _ in range(2)]
    b = [rng.standard_normal((64, 96)).astype(np.float16) for _ in range(2)]
    c = [np.zeros((64, 96), np.float32) for _ in range(2)]
    trace = run(grouped(2, 64, 96, 64), PA=a, PB=b, PC=c)
    assert not trace.findings
    for g in range(2):
        np.testing.assert_allclose(trace.outputs[f"PC[{g}]"], a[g].astype(np.float32) @ b[g].astype(np.float32), rtol=1e-3, atol=1e-3)
        assert not c[g].any()


def test_two_blocks_that_write_behind_one_address_race(run):
    @T.prim_func
    def k(P: T.Tensor((1,), T.ptr), B: T.Tensor((2, 32), "float32")):
        with T.Kernel(2, threads=32) as b:
            A = T.make_tensor(P[0], (32,), "float32")
            for i in T.Parallel(32):
                A[i] = B[b, i]

    assert [f.code for f in run(k, P=[np.zeros(32, np.float32)], B=np.arange(64, dtype=np.float32).reshape(2, 32)).findings] == ["TL201"]


def test_a_strided_view_of_shared_memory_from_an_address_on(run, rng):
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((4, 64), "float32")
            T.copy(A, s)
            v = T.make_tensor_from_addr(T.access_ptr(s[1, 8], "r"), (8, 8), "float32", strides=(16, 1), storage_scope="shared.dyn")
            T.copy(v, B)

    a = rng.standard_normal((4, 64)).astype(np.float32)
    flat = a.reshape(-1)[72:]
    want = np.stack([flat[i * 16 : i * 16 + 8] for i in range(8)])
    np.testing.assert_array_equal(run(k, A=a).outputs["B"], want)


def test_addresses_that_nobody_knows_are_told(run):
    with pytest.raises(InputError, match="makes tensors from addresses"):
        run(table(2, 64), P=np.arange(2, dtype=np.int64), S=np.array([64, 64], np.int32))


def test_check_makes_the_arrays_behind_a_table():
    import tilelab

    assert tilelab.check(grouped(2, 32, 32, 32)) == ()


def test_one_array_behind_two_pointers_is_one_array(run):
    @T.prim_func
    def k(P: T.Tensor((2,), T.ptr), Q: T.Tensor((1,), T.ptr), B: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            X = T.make_tensor(P[1], (32,), "float32")
            Y = T.make_tensor(Q[0], (32,), "float32")
            for i in T.Parallel(32):
                X[i] = X[i] + 1
            for i in T.Parallel(32):
                B[i] = Y[i]

    one, two = np.zeros(32, np.float32), np.full(32, 5, np.float32)
    out = run(k, P=[one, two], Q=[two]).outputs
    np.testing.assert_array_equal(out["B"], np.full(32, 6))
    np.testing.assert_array_equal(out["Q[0]"], out["P[1]"])
    np.testing.assert_array_equal(out["P[0]"], one)

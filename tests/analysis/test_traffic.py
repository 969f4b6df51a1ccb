"""Traffic: each access for every block, turn and thread that makes it, over the elements that exist."""

import numpy as np
import pytest
import tilelang
import tilelang.language as T

from tilelab import ir
from tilelab.analysis.traffic import traffic
from tilelab.analysis.work import work
from tilelab.api import program_of


@tilelang.jit
def by_threads(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    out = T.empty((T.ceildiv(N, 64),), "float32")
    with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
        t = T.get_thread_binding()
        s = T.alloc_shared((64,), "float32")
        s[t] = 0.0
        if bx * 64 + t < N:
            s[t] = A[bx * 64 + t]
        if t < 32:
            s[t] = s[t] + s[t + 32]
        if t == 0:
            out[bx] = s[0]
    return out


@pytest.mark.parametrize("n", [1, 64, 100, 640])
def test_what_names_the_thread_is_counted_for_each_thread(n):
    moved = traffic(program_of(by_threads, np.zeros(n, np.float32)))
    assert (moved.bytes_read, moved.bytes_written) == (4 * n, 4 * -(-n // 64))


def test_arithmetic_under_a_condition_of_threads():
    assert work(program_of(by_threads, np.zeros(640, np.float32))).vector_flops == 10 * 32


@tilelang.jit
def by_tiles(A):
    N = T.dynamic("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, 64), threads=32) as bx:
        for i in T.Parallel(64):
            if bx * 64 + i < N:
                B[bx * 64 + i] = A[bx * 64 + i] + 1.0
    return B


@pytest.mark.parametrize("n", [1, 100, 128])
def test_symbolic_sizes_are_counted_where_they_are_given(n):
    program = program_of(by_tiles, np.zeros(n, np.float32))
    assert traffic(program) is None
    size = next(e for e in program.params[0].buffer.shape if isinstance(e, ir.Var))
    assert traffic(program, {size: n}).bytes_moved == 8 * n


@tilelang.jit
def by_roles(A):
    A: T.Tensor[[64, 64], T.float16]
    B = T.empty((64, 64), "float16")
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((64, 64), "float16")
        ready = T.alloc_barrier([1])
        if T.get_thread_binding() >= 128:
            T.tma_copy(A, s, barrier=ready[0])
            if T.shuffle_elect(128):
                T.mbarrier_arrive(ready[0])
        else:
            T.mbarrier_wait_parity(ready[0], 0)
            T.copy(s, B)
    return B


def test_a_tile_operation_of_a_role_is_one_for_all_its_threads():
    moved = traffic(program_of(by_roles, np.zeros((64, 64), np.float16)))
    assert (moved.bytes_read, moved.bytes_written) == (64 * 64 * 2, 64 * 64 * 2)


@tilelang.jit
def far_too_many(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    with T.Kernel(T.ceildiv(N, 256), 1024, threads=256) as (bx, by):
        t = T.get_thread_binding()
        if bx * 256 + t + by < N:
            A[bx * 256 + t] = 1.0


def test_what_cannot_be_held_is_not_predicted():
    size = 1 << 24  # 2³⁴ pairs of blocks and threads
    assert traffic(program_of(far_too_many, consts={"N": size})) is None

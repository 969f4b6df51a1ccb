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

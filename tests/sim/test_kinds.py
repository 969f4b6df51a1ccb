"""More of each kind that the handed cases stand for: right and wrong kernels, each with exactly the codes that it deserves."""

import numpy as np
import pytest
import tilelang
import tilelang.language as T

from tilelab.compiler import capture
from tilelab.sim import simulate
from tilelab.trace import SimParams

rng = np.random.default_rng(5)


def f32(*shape):
    return rng.standard_normal(shape).astype("f")


CASES = {}


def case(*codes):
    """Register a function that gives a kernel, its inputs and maybe its constants, with the codes that must come (no others)."""

    def register(make):
        CASES[make.__name__] = (make, set(codes))
        return make

    return register


# 1 plain range repeats work
@case("TL601")
def range_nested():
    @T.prim_func
    def k(A: T.Tensor((16, 16), "float32"), O: T.Tensor((16, 16), "float32")):
        with T.Kernel(1, threads=64):
            for i in range(16):
                for j in range(16):
                    O[i, j] = A[i, j]

    return k, {"A": f32(16, 16)}


@case("TL601")
def serial_shared():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for i in T.serial(64):
                s[i] = A[i]
            T.copy(s, O)

    return k, {"A": f32(64)}


@case("TL601")
def serial_dynamic():
    n = T.dynamic("n")

    @T.prim_func
    def k(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.serial(n):
                O[i] = A[i]

    return k, {"A": f32(64), "O": f32(64)}


@case()
def range_ok_threads():
    @T.prim_func
    def k(A: T.Tensor((64, 8), "float32"), O: T.Tensor((64, 8), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            for i in range(8):
                O[t, i] = A[t, i]

    return k, {"A": f32(64, 8)}


# 2 missing clear
@case("TL103")
def missing_clear_shared():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for i in T.Parallel(64):
                s[i] += A[i]
            T.copy(s, O)

    return k, {"A": f32(64)}


@case("TL103")
def missing_reduce_clear():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((64, 64), "float32")
            r = T.alloc_fragment((64,), "float32")
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1, clear=False)
            T.copy(r, O)

    return k, {"A": f32(64, 64)}


@case("TL103")
def missing_var():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=1):
            s = T.alloc_local((1,), "float32")
            for i in T.serial(64):
                s[0] = s[0] + A[i]
            O[0] = s[0]

    return k, {"A": f32(64)}


@case()
def clear_accum_flag():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            for i in T.serial(2):
                T.gemm(a, a, c, clear_accum=(i == 0))
            T.copy(c, O)

    return k, {"A": f32(64, 64).astype("f2")}


# 5 fragment serial
@case("TL401")
def frag_scalar_cond():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((64,), "float32")
            T.copy(A, F)
            if F[3] > 0:
                for i in T.Parallel(64):
                    O[i] = A[i]
            else:
                for i in T.Parallel(64):
                    O[i] = 0.0

    return k, {"A": f32(64)}


@case("TL401")
def frag_thread_index():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            F = T.alloc_fragment((64,), "float32")
            T.copy(A, F)
            t = T.get_thread_binding()
            O[t] = F[63 - t]

    return k, {"A": f32(64)}


# 6 many writers
@case("TL201")
def writers_2d():
    @T.prim_func
    def k(A: T.Tensor((8, 8), "float32"), O: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(8):
                O[i] = 0.0
            for i, j in T.Parallel(8, 8):
                O[i] = O[i] + A[i, j]

    return k, {"A": f32(8, 8)}


@case("TL201")
def writers_blocks():
    @T.prim_func
    def k(A: T.Tensor((8, 32), "float32"), O: T.Tensor((32,), "float32")):
        with T.Kernel(8, threads=32) as b:
            for i in T.Parallel(32):
                O[i] = O[i] + A[b, i]

    return k, {"A": f32(8, 32), "O": np.zeros(32, "f")}


@case("TL201")
def writers_stencil():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            for i in T.Parallel(63):
                s[i] = s[i + 1]
            T.copy(s, O)

    return k, {"A": f32(64)}


# 7 ticket
@case()
def ticket_blocks():
    @T.prim_func
    def k(X: T.Tensor((256,), "float32"), O: T.Tensor((256,), "int32"), N: T.Tensor((1,), "int32")):
        with T.Kernel(2, threads=128) as b:
            for i in T.Parallel(128):
                if X[b * 128 + i] > 0:
                    p = T.atomic_add(N[0], 1, return_prev=True)
                    O[p] = b * 128 + i

    return k, {"X": f32(256), "O": np.full(256, -1, "i4"), "N": np.zeros(1, "i4")}


# 8 oob
@case("TL101", "TL104")
def copy_oob_shared():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((32,), "float32")
            for i in T.Parallel(64):
                s[i] = A[i]
            T.copy(s, O[0:32])

    return k, {"A": f32(64), "O": f32(64)}


@case("TL101")
def neg_index_shared():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            for i in T.Parallel(64):
                O[i] = s[i - 1]

    return k, {"A": f32(64)}


@case("TL101")
def local_oob():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            l = T.alloc_local((4,), "float32")
            for i in T.serial(5):
                l[i] = A[t]
            O[t] = l[0]

    return k, {"A": f32(64)}


# 9 gather
@case("TL102")
def scatter_bad():
    @T.prim_func
    def k(V: T.Tensor((16,), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                O[I[i]] = V[i]

    I = np.arange(16, dtype="i4")
    I[3] = 64
    I[5] = -2
    return k, {"V": f32(16), "I": I, "O": np.zeros(64, "f")}


@case("TL102")
def gather_copy():
    @T.prim_func
    def k(V: T.Tensor((64, 32), "float32"), I: T.Tensor((4,), "int32"), O: T.Tensor((4, 32), "float32")):
        with T.Kernel(4, threads=32) as b:
            T.copy(V[I[b], 0], O[b, :])

    return k, {"V": f32(64, 32), "I": np.array([0, 64, -1, 3], "i4")}


# 13 shared budget / threads
@case("TL501")
def shared_sum_budget():
    @T.prim_func
    def k(A: T.Tensor((256, 256), "float32"), O: T.Tensor((256, 256), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((256, 128), "float32")
            b = T.alloc_shared((256, 128), "float32")
            T.copy(A[:, 0:128], a)
            T.copy(A[:, 128:256], b)
            T.copy(a, O[:, 0:128])
            T.copy(b, O[:, 128:256])

    return k, {"A": f32(256, 256)}


@case("TL502")
def threads_3d():
    @T.prim_func
    def k(O: T.Tensor((4096,), "float32")):
        with T.Kernel(1, threads=(32, 8, 8)):
            for i in T.Parallel(4096):
                O[i] = 1.0

    return k, {}


# barriers
@case("TL203")
def divergent_sync():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            if t < 40:
                s[t] = A[t]
                T.sync_threads()
            O[t] = A[t]

    return k, {"A": f32(64)}


@case("TL203")
def sync_in_uneven_loop():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            for i in T.serial(t % 3):
                s[t] = A[t]
                T.sync_threads()
            O[t] = A[t]

    return k, {"A": f32(64)}


@case("TL104", "TL106")
def wraps_big():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(64, threads=32) as b:
            for i in T.Parallel(32):
                if b * 2000000 * 32 + i < 64:
                    O[b * 2000000 * 32 + i] = A[i]

    return k, {"A": f32(64)}


@case("TL301")
def nan_softmax():
    @T.prim_func
    def k(A: T.Tensor((8, 64), "float32"), O: T.Tensor((8, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((8, 64), "float32")
            m = T.alloc_fragment((8,), "float32")
            T.copy(A, s)
            T.reduce_max(s, m, dim=1)
            for i, j in T.Parallel(8, 64):
                s[i, j] = T.exp(s[i, j] - m[i])
            T.copy(s, O)

    a = f32(8, 64)
    a[3] = -np.inf
    return k, {"A": a}


@case("TL302")
def overflow_store():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "int8")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i] * 1000, "int8")

    return k, {"A": f32(64)}


@case("TL302")
def overflow_copy():
    @T.prim_func
    def k(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64, 64), "float32")
            T.copy(A, s)
            T.copy(s, O)

    return k, {"A": f32(64, 64) * 1e6}


@case("TL208")
def float_atomics():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(4, threads=16) as b:
            for i in T.Parallel(16):
                T.atomic_add(O[0], A[b * 16 + i])

    return k, {"A": f32(64), "O": np.zeros(1, "f")}


@case("TL206")
def lost_barrier():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            m = T.alloc_barrier(64)
            t = T.get_thread_binding()
            if t < 32:
                T.barrier_arrive(m)
            T.barrier_wait(m, 0)
            O[t] = A[t]

    return k, {"A": f32(64)}


@case("TL104")
def partial_empty():
    @tilelang.jit
    def k(A):
        N = T.const("N")
        A: T.Tensor[[N], T.float32]
        O = T.empty((N,), T.float32)
        with T.Kernel(N // 32, threads=32) as b:
            for i in T.Parallel(32):
                O[b * 32 + i] = A[b * 32 + i]
        return O

    return k, {"A": f32(100)}, {"N": 100}


@case("TL105")
def a_vector_from_an_odd_element():
    @T.prim_func
    def k(A: T.Tensor((256,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            v = T.ldg128(A[t * 4 + 1])
            T.stg128(O[t * 4], v)

    return k, {"A": f32(256)}


@case("TL105")
def a_vector_atomic_at_an_odd_element():
    @T.prim_func
    def k(A: T.Tensor((64,), "float16"), O: T.Tensor((65,), "float16")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            T.atomic_addx2(O[t * 2 + 1], A[t * 2])

    return k, {"A": f32(64).astype(np.float16), "O": np.zeros(65, np.float16)}


@case()
def vectors_at_multiples():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            T.stg128(O[t * 4], T.ldg128(A[124 - t * 4]))

    return k, {"A": f32(128)}


@pytest.mark.parametrize("name", CASES)
def test_findings_are_those_and_no_others(name):
    make, codes = CASES[name]
    kernel, inputs, *consts = make()
    trace = simulate(capture(kernel, consts=consts[0] if consts else None), inputs, SimParams(target="sm_80"))
    told = [f for f in trace.findings if f.severity != "info"]
    assert {f.code for f in told} == codes, [str(f) for f in told]
    for f in told:
        assert f.message.strip()
        assert f.fix.strip()
        assert f.line or f.code == "TL502"

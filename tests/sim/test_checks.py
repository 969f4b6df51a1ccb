"""Each check: the mistake is found, and the right program beside it is left in peace."""

import numpy as np
import pytest
import tilelang.language as T

from tests.sim.conftest import codes
from tilelab.trace import SimParams

X64 = np.linspace(-1, 1, 64, dtype=np.float32)


def shifted(by, guarded):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            T.copy(X, s)
            for i in T.Parallel(64):
                if guarded:
                    if i + by < 64:
                        Y[i] = s[i + by]
                    else:
                        Y[i] = 0.0
                else:
                    Y[i] = s[i + by]

    return kernel


def test_out_of_bounds_on_shared_memory(run):
    trace = run(shifted(3, False), X=X64)
    (f,) = [f for f in trace.findings if f.code == "TL101"]
    assert f.indices["i"] == 61
    assert f.evidence["index"] == [64]
    assert codes(run(shifted(3, True), X=X64)) == []


@pytest.mark.parametrize(("fault", "expected"), [(True, ["TL103"]), (False, [])])
def test_partly_written_tile(run, fault, expected):
    n = 63 if fault else 64

    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            for i in T.Parallel(n):
                s[i] = X[i]
            for i in T.Parallel(64):
                Y[i] = s[63 - i]

    trace = run(kernel, X=X64)
    assert codes(trace) == expected
    if fault:
        assert trace.findings[0].evidence["index"] == [63]


def test_output_not_written_everywhere(run):
    @T.prim_func
    def body(X: T.Tensor((100,), "float32"), Y: T.Tensor((100,), "float32")):
        with T.Kernel(100 // 32, threads=32) as b:
            for i in T.Parallel(32):
                Y[b * 32 + i] = X[b * 32 + i]

    from dataclasses import replace

    from tilelab.compiler import capture
    from tilelab.sim import simulate

    program = replace(capture(body), outputs=(1,))
    trace = simulate(program, {"X": np.zeros(100, np.float32)})
    (f,) = [f for f in trace.findings if f.code == "TL104"]
    assert f.evidence["missing"] == 4
    assert f.evidence["first"] == [96]
    assert trace.outputs["out0"].shape == (100,)


def neighbours(kind):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            t = T.alloc_shared((64,), "float32")
            T.copy(X, s)
            if kind == "in place":
                for i in T.Parallel(63):
                    s[i] = s[i + 1]
                T.copy(s, Y)
            elif kind == "halves":
                for i in T.Parallel(32):
                    s[i] = s[i + 32]
                T.copy(s, Y)
            else:
                for i in T.Parallel(63):
                    t[i] = s[i + 1]
                t[63] = s[63]
                T.copy(t, Y)

    return kernel


def test_races_inside_a_parallel_space(run):
    assert "TL201" in codes(run(neighbours("in place"), X=X64))
    assert codes(run(neighbours("halves"), X=X64)) == []
    assert codes(run(neighbours("two tiles"), X=X64)) == []


def test_race_between_statements_of_one_space(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            for i in T.Parallel(64):
                s[i] = X[i]
                Y[i] = s[63 - i]

    (f,) = [f for f in run(kernel, X=X64).findings if f.code == "TL201"]
    assert f.evidence["kind"] == "write-read"


def test_the_same_value_many_times_is_no_race(run):
    @T.prim_func
    def kernel(Y: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for _i in T.Parallel(64):
                Y[0] = 3.0

    assert codes(run(kernel)) == []


def overlapping(step):
    @T.prim_func
    def kernel(X: T.Tensor((4,), "float32"), Y: T.Tensor((160,), "float32")):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(33):
                Y[b * step + i] = X[b]

    return kernel


def test_races_between_blocks(run):
    x = np.arange(4, dtype=np.float32)
    trace = run(overlapping(32), X=x)
    (f,) = [f for f in trace.findings if f.code == "TL201"]
    assert f.severity == "error"
    assert f.evidence["index"] == [32]
    assert codes(run(overlapping(33), X=x)) == ["TL104"]  # blocks apart; what is behind the last one stays


def test_blocks_that_write_the_same_are_warned(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=64) as _:
            for i in T.Parallel(64):
                Y[i] = X[i]

    trace = run(kernel, X=X64)
    assert [(f.code, f.severity) for f in trace.findings] == [("TL201", "warning")]
    np.testing.assert_array_equal(trace.outputs["Y"], X64)


def exchange(barrier, by=1):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            if X[t] > -5:
                s[t] = X[t]
                if barrier:
                    T.sync_threads()
                Y[t] = s[t ^ by]

    return kernel


def test_barrier_in_thread_dependent_code(run):
    assert "TL201" in codes(run(exchange(False), X=X64))
    assert codes(run(exchange(True), X=X64)) == []


def test_barrier_under_a_divergent_condition(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            s = T.alloc_shared((32,), "float32")
            s[t] = X[b * 32 + t]
            if t < 16:
                T.sync_threads()
            Y[b * 32 + t] = s[t]

    (f,) = [f for f in run(kernel, X=X64).findings if f.code == "TL203"]
    assert f.evidence == {"reached": 16, "threads": 32, "times": 1}


def test_first_nan_has_its_operands(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            f = T.alloc_fragment((64,), "float32")
            for i in T.Parallel(64):
                f[i] = T.log(X[i])
            for i in T.Parallel(64):
                Y[i] = f[i] + 1

    found = [f for f in run(kernel, X=X64).findings if f.code == "TL301"]
    assert len(found) == 1
    assert found[0].evidence["operands"] == {"X": "-1.0"}
    assert codes(run(kernel, X=np.abs(X64) + 1)) == []


def test_infinity_written_on_purpose_is_no_finding(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                Y[i] = T.if_then_else(X[i] > 0, X[i], -T.infinity("float32"))

    assert codes(run(kernel, X=X64)) == []


@pytest.mark.parametrize(
    ("dtype", "value", "wrong"), [("float16", 70000.0, True), ("float16", 60000.0, False), ("int8", 300.0, True), ("bfloat16", 1e30, False)]
)
def test_overflow_on_a_cast(run, dtype, value, wrong):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), dtype)):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                Y[i] = T.cast(X[i], dtype)

    x = np.zeros(64, np.float32)
    x[5] = value
    trace = run(kernel, X=x)
    assert codes(trace) == (["TL302"] if wrong else [])
    if wrong:
        assert trace.findings[0].indices["i"] == 5


def test_order_of_float_atomics_is_told_but_not_of_integers(run):
    def kernel(dtype):
        @T.prim_func
        def k(X: T.Tensor((64,), dtype), Y: T.Tensor((1,), dtype)):
            with T.Kernel(2, threads=32) as b:
                for i in T.Parallel(32):
                    T.atomic_add(Y[0], X[b * 32 + i])

        return k

    trace = run(kernel("float32"), X=X64, Y=np.zeros(1, np.float32))
    assert codes(trace) == ["TL208"]
    assert codes(run(kernel("int32"), X=np.ones(64, np.int32), Y=np.zeros(1, np.int32))) == []


def test_an_index_that_wraps(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), n: T.int32, Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                Y[i] = X[(i + n * n) % 64]

    trace = run(kernel, X=X64, n=100_000)
    (f,) = [f for f in trace.findings if f.code == "TL106"]
    assert f.evidence["value"] == 10_000_000_063
    assert codes(run(kernel, X=X64, n=1000)) == []


def test_endless_loop_stops(run):
    @T.prim_func
    def kernel(Y: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1) as _:
            n = T.alloc_var("int32", init=0)
            while n >= 0:
                n = 1
            Y[0] = n

    trace = run(kernel, params=SimParams(max_steps=1000))
    assert "TL206" in codes(trace)


def test_device_assert(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            T.device_assert(X[t] < 0.5, "too large")

    (f,) = run(kernel, X=X64).findings
    assert f.code == "TL902"
    assert "too large" in f.message
    assert f.thread == (int(np.argmax(X64 >= 0.5)), 0, 0)


def test_what_is_not_simulated_is_said_by_name(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                X[i] = T.call_extern("float32", "my_device_function", X[i])

    trace = run(kernel, X=X64)
    (f,) = trace.findings
    assert f.code == "TL703"
    assert "my_device_function" in f.message
    assert f.line
    assert trace.outputs == {}


def test_findings_are_kept_once_a_line_and_counted(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            s = T.alloc_shared((64,), "float32")
            T.copy(X, s)
            for k in T.serial(5):
                for i in T.Parallel(64):
                    Y[i] = s[i + k]

    (f,) = [f for f in run(kernel, X=X64).findings if f.code == "TL101"]
    assert f.evidence["times"] == 4
    assert f.indices == {"k": 1, "i": 63}


def test_tiles_may_be_copied_before_they_are_whole(run):
    """Only what is used must be there: a half-written tile may be staged, and its other half dropped."""

    def kernel(use):
        @T.prim_func
        def k(X: T.Tensor((40,), "float32"), Y: T.Tensor((40,), "float32")):
            with T.Kernel(1, threads=64) as _:
                f = T.alloc_fragment((64,), "float32")
                s = T.alloc_shared((64,), "float32")
                for i in T.Parallel(40):
                    f[i] = X[i]
                T.copy(f, s)
                for i in T.Parallel(40):
                    s[i] = s[i + use] * 2
                T.copy(s, Y[0:64])

        return k

    x = np.arange(40, dtype=np.float32)
    trace = run(kernel(0), X=x)
    np.testing.assert_array_equal(trace.outputs["Y"], x * 2)
    assert codes(trace) == []
    assert "TL103" in codes(run(kernel(1), X=x))


def test_a_thread_variable_handed_on_by_a_parallel_loop_is_refused(run):
    @T.prim_func
    def kernel(X: T.Tensor((64,), "float32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64) as _:
            total = T.alloc_var("float32", init=0.0)
            for i in T.Parallel(64):
                total += X[i]
            Y[0] = total

    trace = run(kernel, X=X64)
    assert codes(trace) == ["TL703"]
    assert "total" in trace.findings[0].message


def test_a_vectorised_loop_hands_on_in_order(run, rng):
    @T.prim_func
    def kernel(X: T.Tensor((64, 8), "float32"), Y: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            t = T.get_thread_binding()
            total = T.alloc_local((1,), "float32")
            total[0] = 0.0
            for v in T.vectorized(8):
                total[0] += X[t, v]
            Y[t] = total[0]

    x = rng.standard_normal((64, 8)).astype(np.float32)
    np.testing.assert_allclose(run(kernel, X=x).outputs["Y"], x.sum(1), rtol=1e-5, atol=1e-6)


def summed(where, threads, alone=False):
    @T.prim_func
    def kernel(A: T.Tensor((2, 40), "float32"), O: T.Tensor((2,), "float32")):
        with T.Kernel(2, threads=threads) as b:
            s = T.alloc_shared((1,), "float32")
            kept = T.alloc_local((1,), "float32")
            kept[0] = 0.0
            if where == "global":
                if alone:
                    if T.get_thread_binding() == 0:
                        O[b] = 0.0
                        for i in range(40):
                            O[b] = O[b] + A[b, i]
                else:
                    O[b] = 0.0
                    for i in range(40):
                        O[b] = O[b] + A[b, i]
            elif where == "shared":
                s[0] = 0.0
                for i in range(40):
                    s[0] += A[b, i]
                O[b] = s[0]
            elif where == "maximum":
                s[0] = 0.0
                for i in range(40):
                    s[0] = T.max(s[0], A[b, i])
                O[b] = s[0]
            else:
                for i in range(40):
                    kept[0] += A[b, i]
                O[b] = kept[0]

    return kernel


@pytest.mark.parametrize(
    ("where", "threads", "alone", "expected"),
    [
        ("global", 64, False, ["TL201"]),
        ("shared", 64, False, ["TL201"]),
        ("global", 64, True, []),  # one thread does it
        ("global", 32, False, []),  # a warp runs in step
        ("maximum", 64, False, []),  # as often as they like
        ("local", 64, False, []),  # each has its own
    ],
)
def test_one_element_updated_by_every_thread(run, where, threads, alone, expected):
    a = np.linspace(-1, 2, 80, dtype=np.float32).reshape(2, 40)
    trace = run(summed(where, threads, alone), A=a)
    assert codes(trace) == expected
    if expected:
        (found,) = trace.findings
        assert "all 64 threads" in found.message
        assert found.evidence["threads"] == 64

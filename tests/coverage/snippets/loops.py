"""Loops, conditions and control flow."""

import numpy as np
import tilelang.language as T
from snippet import elementwise, integers, normal, snippet

A64 = normal(64)
I64 = integers(-9, 10, 64)


@snippet(lambda: np.int32([0, 0, 5, 1, 1, 8, 2, 2, 11, 3, 0, 14]))
def serial_with_start_and_step():
    @T.prim_func
    def k(O: T.Tensor((12,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(12):
                O[i] = 0
            for i in T.serial(2, 12, 3):
                O[i] = i + 3
            for i in T.Serial(1, 4):
                O[i * 3] = i
                O[i * 3 + 1] = i
            O[10] = 0

    return k


@snippet(lambda A: A * 2 + 1, A=A64)
def unrolled():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            for i in T.unroll(2):
                O[t * 4 + i] = A[t * 4 + i] * 2 + 1
            for i in T.Unroll(2, 4, unroll_factor=2):
                O[t * 4 + i] = A[t * 4 + i] * 2 + 1

    return k


@snippet(lambda A: A + 1, A=A64)
def vectorized():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            for i in T.vectorized(2):
                O[t * 4 + i] = A[t * 4 + i] + 1
            for i in T.Vectorized(2, 4):
                O[t * 4 + i] = A[t * 4 + i] + 1

    return k


@snippet(lambda A: A.T.copy(), A=normal(8, 12))
def parallel_of_two():
    @T.prim_func
    def k(A: T.Tensor((8, 12), "float32"), O: T.Tensor((12, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(8, 12):
                O[j, i] = A[i, j]

    return k


@snippet(lambda A: A * 3, A=normal(8, 16))
def parallel_inside_parallel():
    @T.prim_func
    def k(A: T.Tensor((8, 16), "float32"), O: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                for j in T.Parallel(16):
                    O[i, j] = A[i, j] * 3

    return k


@snippet(lambda A, n: np.where(np.arange(64) < n, A, 0), A=A64, n=37)
def extent_known_when_it_runs():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                O[i] = 0
            for i in T.Parallel(n):
                O[i] = A[i]

    return k


@snippet(lambda A: A.reshape(2, 4, 8).transpose(2, 0, 1).copy(), A=A64)
def grid_of_three():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((8, 2, 4), "float32")):
        with T.Kernel(1, threads=1):
            for i, j, l in T.grid(2, 4, 8):
                O[l, i, j] = A[i * 32 + j * 8 + l]

    return k


@snippet(lambda A: A + 1, A=A64)
def parallel_in_lower_case():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.parallel(64):
                O[i] = A[i] + 1

    return k


@snippet(lambda A: A * 4, A=normal(4, 64))
def pipelined():
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(4, num_stages=2):
                T.copy(A[i, 0], s)
                for j in T.Parallel(64):
                    O[i, j] = s[j] * 4

    return k


@snippet(lambda A: A * 4, A=normal(4, 64))
def pipelined_by_hand():
    @T.prim_func
    def k(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            for i in T.Pipelined(1, 4, order=[0, 1], stage=[0, 1]):
                T.copy(A[i, 0], s)
                for j in T.Parallel(64):
                    O[i, j] = s[j] * 4
            for j in T.Parallel(64):
                O[0, j] = A[0, j] * 4

    return k


@snippet(lambda: np.arange(24, dtype=np.int32).reshape(4, 6))
def persistent():
    @T.prim_func
    def k(O: T.Tensor((4, 6), "int32")):
        with T.Kernel(5, threads=32) as b:
            for i, j in T.Persistent([4, 6], 5, b):
                O[i, j] = i * 6 + j

    return k


@snippet(lambda A: np.array([v if v % 2 else v // 2 for v in A.tolist()], np.int32), A=np.abs(I64) + 1)
def if_and_else():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            if A[t] % 2 == 1:
                O[t] = A[t]
            else:
                O[t] = A[t] // 2

    return k


@snippet(lambda A: np.select([A < -3, A < 3], [-1, 0], 1).astype(np.int32), A=I64)
def elif_chain():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            if A[t] < -3:
                O[t] = -1
            elif A[t] < 3:
                O[t] = 0
            else:
                O[t] = 1

    return k


elementwise("if_then_else", lambda x, y: T.if_then_else(x > 0, x, y), lambda x, y: np.where(x > 0, x, y), A64, A64[::-1].copy())
elementwise("Select", lambda x, y: T.Select(x > y, x, y), np.maximum, A64, A64[::-1].copy())
elementwise("likely", lambda x: T.if_then_else(T.likely(x > 0), x, -x), np.abs, A64)


@snippet(lambda A: np.array([bin(v).count("1") for v in A.tolist()], np.int32), A=integers(1, 1000, 32))
def while_loop():
    @T.prim_func
    def k(A: T.Tensor((32,), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            x = T.alloc_var("int32")
            n = T.alloc_var("int32")
            x = A[t]
            n = 0
            while x != 0:
                n += x & 1
                x = x >> 1
            O[t] = n

    return k


def first_negative(A):
    return np.array([next((i for i, v in enumerate(row) if v < 0), len(row)) for row in A.tolist()], np.int32)


@snippet(first_negative, A=integers(-2, 9, 32, 10), covers=["loop_break"])
def loop_break():
    @T.prim_func
    def k(A: T.Tensor((32, 10), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            O[t] = 10
            for i in T.serial(10):
                if A[t, i] < 0:
                    O[t] = i
                    T.loop_break()

    return k


@snippet(first_negative, A=integers(-2, 9, 32, 10))
def python_break():
    @T.prim_func
    def k(A: T.Tensor((32, 10), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            O[t] = 10
            for i in T.serial(10):
                if A[t, i] < 0:
                    O[t] = i
                    break

    return k


@snippet(first_negative, A=integers(-2, 9, 32, 10))
def break_loop():
    @T.prim_func
    def k(A: T.Tensor((32, 10), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            O[t] = 10
            for i in T.serial(10):
                if A[t, i] < 0:
                    O[t] = i
                    T.evaluate(T.break_loop())

    return k


@snippet(lambda A: np.where(A > 0, A, 0).sum(1).astype(np.int32), A=integers(-9, 9, 32, 10))
def continue_loop():
    @T.prim_func
    def k(A: T.Tensor((32, 10), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            for i in T.serial(10):
                if A[t, i] <= 0:
                    T.evaluate(T.continue_loop())
                total += A[t, i]
            O[t] = total

    return k


@snippet(lambda A: np.where(A > 0, A, 0).sum(1).astype(np.int32), A=integers(-9, 9, 32, 10))
def python_continue():
    @T.prim_func
    def k(A: T.Tensor((32, 10), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            for i in T.serial(10):
                if A[t, i] <= 0:
                    continue
                total += A[t, i]
            O[t] = total

    return k


@snippet(lambda A: np.where(A > 0, A * 2, -1), A=I64)
def thread_return():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = -1
            if A[t] <= 0:
                T.evaluate(T.thread_return())
            O[t] = A[t] * 2

    return k


@snippet(lambda A: A**4 + A**2, A=np.arange(64, dtype=np.int32) % 9)
def bound_values():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                square = A[i] * A[i]
                O[i] = square * square + square

    return k


@snippet(lambda A: A + np.arange(64).astype(np.float32) * 3, A=A64, rtol=1e-6)
def python_loops_unfold():
    """A Python list is a loop of the compiler, not of the kernel."""

    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i]
            for _ in [1, 2, 3]:
                for i in T.Parallel(64):
                    O[i] = O[i] + T.cast(i, "float32")

    return k


@snippet(lambda A: 2 * A + 3, A=A64)
def macros():
    @T.macro
    def twice(x):
        return x + x

    @T.macro
    def store(B, i, x):
        B[i] = twice(x) + 3

    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                store(O, i, A[i])

    return k


@snippet(lambda A: (A > 0).astype(np.int32) - (A < 0), A=I64)
def chained_comparison_and_boolean_words():
    @T.prim_func
    def k(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            O[t] = 0
            if A[t] > 0 and A[t] < 100:
                O[t] = 1
            if A[t] < 0 or A[t] > 100:
                O[t] = -1

    return k

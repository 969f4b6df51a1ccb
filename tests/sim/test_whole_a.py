"""Whole kernels as people write them, each against numpy (1 of 4)."""

import ml_dtypes
import numpy as np
import pytest
import tilelang.language as T

from tests.sim.whole import Cases, eq, f32, go, rng

case = Cases()


@case
def neg_step():
    @T.prim_func
    def f(A: T.Tensor((16,), "int32"), O: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=1):
            c = T.alloc_var("int32")
            c = 0
            for i in T.serial(15, -1, -1):
                c = c * 3 + A[i]
                O[i] = c

    a = rng.integers(-5, 5, 16).astype("i4")
    w = np.zeros(16, "i4")
    c = 0
    for i in range(15, -1, -1):
        c = (c * 3 + int(a[i]) + 2**31) % 2**32 - 2**31
        w[i] = c
    eq(go(f, A=a), "O", w)


@case
def nested_macro():
    @T.macro
    def inner(S, i, v):
        S[i] = S[i] * v

    @T.macro
    def outer(S, v):
        for i in T.Parallel(64):
            inner(S, i, v + 1)

    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            outer(s, 2.0)
            outer(s, 1.0)
            T.copy(s, O)

    a = f32(64)
    eq(go(f, A=a), "O", a * 3 * 2, 1e-6)


@case
def three_kernels():
    @T.prim_func
    def f(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((1,), "float32")):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(32):
                B[b * 32 + i] = A[b * 32 + i] * 2
        with T.Kernel(2, threads=64) as b:
            for i in T.Parallel(64):
                B[b * 64 + i] = B[127 - (b * 64 + i)] * 0 + B[b * 64 + i] + 1
        with T.Kernel(1, threads=128) as b:
            s = T.alloc_fragment((128,), "float32")
            r = T.alloc_fragment((1,), "float32")
            T.copy(B, s)
            T.reduce_sum(s, r)
            T.copy(r, C)

    a = f32(128)
    t = go(f, A=a)
    eq(t, "C", [(a * 2 + 1).sum()], 1e-4)


@case
def grid3d():
    @T.prim_func
    def f(A: T.Tensor((3, 5, 7, 8), "float32"), O: T.Tensor((7, 3, 8, 5), "float32")):
        with T.Kernel(7, 5, 3, threads=8) as (x, y, z):
            for i in T.Parallel(8):
                O[x, z, i, y] = A[z, y, x, i]

    a = f32(3, 5, 7, 8)
    eq(go(f, A=a), "O", a.transpose(2, 0, 3, 1))


@case
def while_atomic():
    @T.prim_func
    def f(N: T.Tensor((1,), "int32"), O: T.Tensor((100,), "int32")):
        with T.Kernel(4, threads=32):
            t = T.get_thread_binding()
            k = T.alloc_var("int32")
            if t == 0:
                k = T.atomic_add(N[0], 1, return_prev=True)
                while k < 100:
                    O[k] = k * k
                    k = T.atomic_add(N[0], 1, return_prev=True)

    t = go(f, N=np.zeros(1, "i4"))
    eq(t, "O", np.arange(100) ** 2)
    eq(t, "N", [104])


@case
def persistent():
    @T.prim_func
    def f(A: T.Tensor((256, 96), "float16"), B: T.Tensor((96, 256), "float16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(5, threads=128) as b:
            s = T.alloc_shared((64, 32), "float16")
            r = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            for bx, by in T.Persistent([4, 4], 5, b):
                T.clear(c)
                for k in T.Pipelined(3, num_stages=2):
                    T.copy(A[bx * 64, k * 32], s)
                    T.copy(B[k * 32, by * 64], r)
                    T.gemm(s, r, c)
                T.copy(c, C[bx * 64, by * 64])

    a, b = f32(256, 96).astype("f2"), f32(96, 256).astype("f2")
    eq(go(f, A=a, B=b), "C", a.astype("f") @ b.astype("f"), 1e-3)


@case
def int4():
    @T.prim_func
    def f(A: T.Tensor((64,), "int4"), B: T.Tensor((64,), "uint4"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i], "int32") * T.cast(B[i], "int32")

    a = rng.integers(-8, 8, 64).astype("i1")
    b = rng.integers(0, 16, 64).astype("u1")
    eq(go(f, A=a.astype(ml_dtypes.int4), B=b.astype(ml_dtypes.uint4)), "O", a.astype("i4") * b)


@case
def views():
    @T.prim_func
    def f(A: T.Tensor((8, 32), "float32"), O: T.Tensor((16, 16), "float32"), P: T.Tensor((8, 64), "uint16")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((8, 32), "float32")
            T.copy(A, s)
            v = T.reshape(s, (16, 16))
            w = T.view(s, (8, 64), dtype="uint16")
            for i, j in T.Parallel(16, 16):
                v[i, j] = v[i, j] + 1
            T.copy(v, O)
            T.copy(w, P)

    a = f32(8, 32)
    t = go(f, A=a)
    eq(t, "O", (a + 1).reshape(16, 16))
    eq(t, "P", (a + 1).view("u2"))


@case
def strided():
    s0 = T.dynamic("s0")

    @T.prim_func
    def f(A: T.StridedTensor((8, 16), (s0, 1), "float32"), O: T.Tensor((8, 16), "float32")):
        with T.Kernel(1, threads=64):
            T.copy(A, O)

    big = f32(8, 40)
    eq(go(f, A=big[:, 3:19]), "O", big[:, 3:19])


@case
def shared_alias_order():
    @T.prim_func
    def f(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "int32")
            t = T.get_thread_binding()
            s[t] = A[t]
            T.sync_threads()
            x = T.alloc_var("int32")
            x = s[63 - t]
            T.sync_threads()
            s[t] = x
            T.sync_threads()
            O[t] = s[t]

    a = np.arange(64, dtype="i4")
    eq(go(f, A=a), "O", a[::-1])


@case
def cumsum_rev():
    @T.prim_func
    def f(A: T.Tensor((4, 32), "float32"), O: T.Tensor((4, 32), "float32"), P: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((4, 32), "float32")
            d = T.alloc_shared((4, 32), "float32")
            T.copy(A, s)
            T.cumsum(s, d, dim=1, reverse=True)
            T.copy(d, O)
            T.cumsum(s, dim=0)
            T.copy(s, P)

    a = f32(4, 32)
    t = go(f, A=a)
    eq(t, "O", np.cumsum(a[:, ::-1], 1)[:, ::-1], 1e-5)
    eq(t, "P", np.cumsum(a, 0), 1e-5)


@case
def reduce_kinds():
    @T.prim_func
    def f(A: T.Tensor((8, 64), "float32"), O: T.Tensor((6, 8), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((8, 64), "float32")
            r = T.alloc_fragment((8,), "float32")
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1)
            T.copy(r, O[0, :])
            T.reduce_max(s, r, dim=1)
            T.copy(r, O[1, :])
            T.reduce_min(s, r, dim=1)
            T.copy(r, O[2, :])
            T.reduce_abssum(s, r, dim=1)
            T.copy(r, O[3, :])
            T.reduce_absmax(s, r, dim=1)
            T.copy(r, O[4, :])
            T.reduce_max(s, r, dim=1, clear=False)
            T.copy(r, O[5, :])

    a = f32(8, 64)
    t = go(f, A=a)
    eq(t, "O", np.stack([a.sum(1), a.max(1), a.min(1), abs(a).sum(1), abs(a).max(1), abs(a).max(1)]), 1e-5)


@case
def dyn_parallel_extent():
    @T.prim_func
    def f(L: T.Tensor((4,), "int32"), O: T.Tensor((4, 32), "int32")):
        with T.Kernel(4, threads=32) as b:
            for i in T.Parallel(32):
                O[b, i] = 0
            for i in T.Parallel(L[b]):
                O[b, i] = i + 1

    L = np.array([0, 5, 32, 1], "i4")
    w = np.where(np.arange(32) < L[:, None], np.arange(32) + 1, 0)
    eq(go(f, L=L), "O", w)


@case
def break_continue():
    @T.prim_func
    def f(A: T.Tensor((4, 32), "int32"), O: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=1) as b:
            c = T.alloc_var("int32")
            c = 0
            for i in T.serial(32):
                if A[b, i] < 0:
                    T.loop_break()
                c = c + A[b, i]
            O[b] = c

    a = rng.integers(0, 9, (4, 32)).astype("i4")
    a[0, 5] = -1
    a[2, 0] = -1
    w = []
    for r in a:
        s = 0
        for x in r:
            if x < 0:
                break
            s += x
        w.append(s)
    eq(go(f, A=a), "O", w)


@case
def histogram():
    @T.prim_func
    def f(A: T.Tensor((1024,), "int32"), H: T.Tensor((16,), "int32")):
        with T.Kernel(4, threads=128) as b:
            s = T.alloc_shared((16,), "int32")
            T.clear(s)
            for i in T.Parallel(256):
                T.atomic_add(s[A[b * 256 + i]], 1)
            for i in T.Parallel(16):
                T.atomic_add(H[i], s[i])

    a = rng.integers(0, 16, 1024).astype("i4")
    eq(go(f, A=a, H=np.zeros(16, "i4")), "H", np.bincount(a, minlength=16))


@case
def shuffle_reduce():
    @T.prim_func
    def f(A: T.Tensor((128,), "float32"), O: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            x = T.alloc_var("float32")
            x = A[t]
            for k in T.unroll(5):
                x = x + T.shfl_xor(x, 1 << k)
            if t % 32 == 0:
                O[t // 32] = x

    a = f32(128)
    eq(go(f, A=a), "O", a.reshape(4, 32).sum(1), 1e-5)


@case
def int64_idx():
    @T.prim_func
    def f(A: T.Tensor((64,), "int64"), O: T.Tensor((64,), "int64")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i] * T.int64(1 << 40) // T.int64(7) + T.cast(i, "int64") % T.int64(5)

    a = rng.integers(-1000, 1000, 64)
    eq(go(f, A=a), "O", a * (1 << 40) // 7 + np.arange(64) % 5)


@case
def uint_wrap():
    @T.prim_func
    def f(A: T.Tensor((64,), "uint8"), O: T.Tensor((64,), "uint8"), P: T.Tensor((64,), "int16")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[i] * A[i] + T.uint8(200)
                P[i] = T.cast(A[i], "int16") - T.int16(300)

    a = rng.integers(0, 255, 64).astype("u1")
    t = go(f, A=a)
    eq(t, "O", (a * a + np.uint8(200)).astype("u1"))
    eq(t, "P", a.astype("i2") - 300)


@pytest.mark.parametrize("name", case)
def test_a_whole_kernel_agrees_with_numpy(name):
    case[name]()

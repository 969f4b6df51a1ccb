"""Whole kernels as people write them, each against numpy (3 of 4)."""

import ml_dtypes
import numpy as np
import pytest
import tilelang.language as T

from tests.sim.whole import Cases, eq, f32, go, rng

case = Cases()


@case
def fp4_pack():
    @T.prim_func
    def f(A: T.Tensor((64,), "float4_e2m1fn"), O: T.Tensor((64,), "float32"), Q: T.Tensor((64,), "float4_e2m1fn")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                O[i] = T.cast(A[i], "float32") * 2
                Q[i] = T.cast(T.cast(A[i], "float32") * 1.3, "float4_e2m1fn")

    a = rng.uniform(-6, 6, 64).astype(ml_dtypes.float4_e2m1fn)
    t = go(f, quiet=True, A=a)
    eq(t, "O", a.astype("f") * 2)
    eq(t, "Q", np.clip(a.astype("f") * np.float32(1.3), -6, 6).astype(ml_dtypes.float4_e2m1fn))


@case
def warp_spec_math():
    @T.prim_func
    def f(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            w = T.get_warp_idx()
            l = T.get_lane_idx()
            O[t] = A[t] * T.cast(w, "float32") + T.cast(l, "float32")

    a = f32(128)
    i = np.arange(128)
    eq(go(f, A=a), "O", a * (i // 32) + i % 32, 1e-6)


@case
def copy_broadcast_ranks():
    @T.prim_func
    def f(A: T.Tensor((4, 1, 16), "float32"), O: T.Tensor((2, 4, 16), "float32")):
        with T.Kernel(2, threads=32) as b:
            s = T.alloc_shared((4, 16), "float32")
            T.copy(A[0:4, 0, 0:16], s)
            T.copy(s, O[b, :, :])

    a = f32(4, 1, 16)
    eq(go(f, A=a), "O", np.stack([a[:, 0]] * 2))


@case
def dyn_slice():
    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), L: T.Tensor((1,), "int32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            T.fill(s, -1.0)
            n = L[0]
            for i in T.Parallel(64):
                if i < n:
                    s[i] = A[i]
            T.copy(s, O)

    a = f32(64)
    eq(go(f, A=a, L=np.array([17], "i4")), "O", np.where(np.arange(64) < 17, a, -1))


@case
def serial_in_parallel():
    @T.prim_func
    def f(A: T.Tensor((32, 8), "float32"), L: T.Tensor((32,), "int32"), O: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            acc = T.alloc_fragment((32,), "float32")
            T.clear(acc)
            for i in T.Parallel(32):
                for k in T.serial(L[i]):
                    acc[i] += A[i, k]
            T.copy(acc, O)

    a = f32(32, 8)
    L = rng.integers(0, 9, 32).astype("i4")
    eq(go(f, A=a, L=L), "O", [a[i, : L[i]].sum() for i in range(32)], 1e-5)


@case
def int64_gather():
    @T.prim_func
    def f(A: T.Tensor((64, 16), "float32"), I: T.Tensor((8,), "int64"), O: T.Tensor((8, 16), "float32")):
        with T.Kernel(8, threads=16) as b:
            for j in T.Parallel(16):
                O[b, j] = A[I[b], j]

    a = f32(64, 16)
    I = rng.integers(0, 64, 8)
    eq(go(f, A=a, I=I), "O", a[I])


@case
def transposes():
    @T.prim_func
    def f(A: T.Tensor((32, 48), "float32"), O: T.Tensor((48, 32), "float32")):
        with T.Kernel(1, threads=64):
            a = T.alloc_shared((32, 48), "float32")
            b = T.alloc_shared((48, 32), "float32")
            T.copy(A, a)
            T.transpose(a, b)
            T.copy(b, O)

    a = f32(32, 48)
    eq(go(f, A=a), "O", a.T)


@case
def reduce_neg_dim_3d():
    @T.prim_func
    def f(A: T.Tensor((4, 8, 16), "float32"), O: T.Tensor((4, 16), "float32"), P: T.Tensor((4, 8), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((4, 8, 16), "float32")
            r = T.alloc_fragment((4, 16), "float32")
            q = T.alloc_fragment((4, 8), "float32")
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1)
            T.reduce_max(s, q, dim=-1)
            T.copy(r, O)
            T.copy(q, P)

    a = f32(4, 8, 16)
    t = go(f, A=a)
    eq(t, "O", a.sum(1), 1e-5)
    eq(t, "P", a.max(2))


@case
def scalars():
    @T.prim_func
    def f(A: T.Tensor((32,), "float32"), a: T.float32, b: T.int64, c: T.bool, O: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                O[i] = T.if_then_else(c, A[i] * a + T.cast(b, "float32"), 0.0)

    a = f32(32)
    for c in (True, False):
        eq(go(f, A=a, a=1.5, b=7, c=c), "O", (a * np.float32(1.5) + 7) if c else 0 * a)


@case
def guards():
    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as b:
            for i in T.Parallel(32):
                g = b * 32 + i
                O[g] = T.if_then_else(g > 0, A[g - 1], 0.0) + T.if_then_else(g < 63, A[g + 1], 0.0)

    a = f32(64)
    p = np.pad(a, 1)
    eq(go(f, A=a), "O", p[:-2] + p[2:])


@case
def neg_div():
    @T.prim_func
    def f(A: T.Tensor((64,), "int32"), O: T.Tensor((6, 64), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[0, i] = A[i] // 3
                O[1, i] = A[i] % 3
                O[2, i] = T.truncdiv(A[i], 3)
                O[3, i] = T.truncmod(A[i], 3)
                O[4, i] = T.abs(A[i])
                O[5, i] = T.max(T.min(A[i], 5), -5)

    a = (np.arange(64) - 32).astype("i4")
    eq(go(f, A=a), "O", np.stack([a // 3, a % 3, np.trunc(a / 3), np.fmod(a, 3), abs(a), np.clip(a, -5, 5)]))


@case
def zero_trip_pipeline():
    n = T.dynamic("n")

    @T.prim_func
    def f(A: T.Tensor((n, 32), "float32"), O: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((32,), "float32")
            c = T.alloc_fragment((32,), "float32")
            T.clear(c)
            for k in T.Pipelined(n, num_stages=3):
                T.copy(A[k, :], s)
                for i in T.Parallel(32):
                    c[i] += s[i]
            T.copy(c, O)

    for m in (0, 1, 2, 7):
        a = f32(m, 32)
        eq(go(f, A=a), "O", a.sum(0), 1e-5)


@case
def reducer():
    @T.prim_func
    def f(A: T.Tensor((64, 64), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            r = T.alloc_reducer((64,), "float32", op="sum")
            T.copy(A, s)
            T.fill(r, 0.0)
            for i, j in T.Parallel(64, 64):
                r[j] += s[i, j]
            T.finalize_reducer(r)
            T.copy(r, O)

    a = f32(64, 64)
    eq(go(f, A=a), "O", a.sum(0), 1e-4)


@case
def same_tensor_twice():
    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = A[63 - i]

    a = f32(64)
    b = a.copy()
    t = go(f, A=b, O=b)
    eq(t, "O", a[::-1])
    assert (b == a).all()


@case
def ones_dims():
    @T.prim_func
    def f(A: T.Tensor((1, 1, 64), "float32"), O: T.Tensor((1, 64, 1), "float32")):
        with T.Kernel(1, 1, 1, threads=32) as (x, y, _z):
            s = T.alloc_fragment((1, 64), "float32")
            T.copy(A[0, 0:1, 0:64], s)
            for i in T.Parallel(64):
                O[x, i, y] = s[0, i]

    a = f32(1, 1, 64)
    eq(go(f, A=a), "O", a.reshape(1, 64, 1))


@case
def nested_if_break_while():
    @T.prim_func
    def f(A: T.Tensor((32,), "int32"), O: T.Tensor((32,), "int32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            x = T.alloc_var("int32")
            n = T.alloc_var("int32")
            x = A[t]
            n = 0
            while x != 1:
                if x % 2 == 0:
                    x = x // 2
                else:
                    x = 3 * x + 1
                n = n + 1
                if n >= 50:
                    T.loop_break()
            O[t] = n

    a = np.arange(1, 33, dtype="i4")
    w = []
    for v in a:
        n = 0
        v = int(v)
        while v != 1:
            v = v // 2 if v % 2 == 0 else 3 * v + 1
            n += 1
            if n >= 50:
                break
        w.append(n)
    eq(go(f, A=a), "O", w)


@case
def async_groups():
    @T.prim_func
    def f(A: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((2, 64), "float32")
            T.async_copy(A[0, :], s[0, :])
            for k in T.serial(4):
                if k < 3:
                    T.async_copy(A[k + 1, :], s[(k + 1) % 2, :])
                if k < 3:
                    T.ptx_wait_group(1)
                else:
                    T.ptx_wait_group(0)
                T.sync_threads()
                T.copy(s[k % 2, :], O[k, :])
                T.sync_threads()

    a = f32(4, 64)
    eq(go(f, A=a), "O", a)


@case
def named_barriers():
    @T.prim_func
    def f(A: T.Tensor((128,), "float32"), O: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            s[t] = A[t]
            if t < 64:
                T.sync_threads(1, 64)
                O[t] = s[63 - t]
            else:
                T.sync_threads(2, 64)
                O[t] = s[191 - t]

    a = f32(128)
    eq(go(f, A=a), "O", np.concatenate([a[:64][::-1], a[64:][::-1]]))


@pytest.mark.parametrize("name", case)
def test_a_whole_kernel_agrees_with_numpy(name):
    case[name]()

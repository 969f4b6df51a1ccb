"""Whole kernels as people write them, each against numpy (2 of 4)."""

import numpy as np
import pytest
import tilelang
import tilelang.language as T

from tests.sim.whole import Cases, bf, eq, f32, go, rng

case = Cases()


@case
def select_ternary():
    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = T.Select(A[i] > 0, T.sqrt(A[i]), T.exp(A[i])) + (A[i] if i > 3 else T.float32(0))

    a = f32(64)
    t = go(f, A=a)
    with np.errstate(all="ignore"):
        eq(t, "O", np.where(a > 0, np.sqrt(a), np.exp(a)) + np.where(np.arange(64) > 3, a, 0), 1e-6)


@case
def gemm_t_both_k_slices():
    @T.prim_func
    def f(A: T.Tensor((128, 64), "float16"), B: T.Tensor((96, 128), "float16"), C: T.Tensor((64, 96), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((96, 128), "float16")
            c = T.alloc_fragment((64, 96), "float16")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            for k in T.serial(4):
                T.gemm(a[k * 32 : k * 32 + 32, :], b[:, k * 32 : k * 32 + 32], c, transpose_A=True, transpose_B=True)
            T.copy(c, C)

    a, b = f32(128, 64).astype("f2"), f32(96, 128).astype("f2")
    eq(go(f, A=a, B=b), "C", a.T.astype("f") @ b.T.astype("f"), 3e-2)


@case
def gemm_frag_a_int8():
    @T.prim_func
    def f(A: T.Tensor((64, 64), "int8"), B: T.Tensor((64, 64), "int8"), C: T.Tensor((64, 64), "int32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_fragment((64, 64), "int8")
            b = T.alloc_shared((64, 64), "int8")
            c = T.alloc_fragment((64, 64), "int32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            T.copy(c, C)

    a, b = (rng.integers(-128, 128, (64, 64)).astype("i1") for _ in "ab")
    eq(go(f, A=a, B=b), "C", a.astype("i4") @ b.T.astype("i4"))


@case
def f16_rounding():
    @T.prim_func
    def f(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float16"), O: T.Tensor((256,), "float16"), P: T.Tensor((256,), "bfloat16")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(256):
                O[i] = A[i] * B[i] + A[i]
                P[i] = T.cast(A[i], "bfloat16") / T.cast(B[i], "bfloat16")

    a, b = f32(256).astype("f2"), f32(256).astype("f2")
    t = go(f, A=a, B=b)
    eq(t, "O", (a * b) + a)
    eq(t, "P", a.astype(bf) / b.astype(bf))


@case
def bools():
    @T.prim_func
    def f(A: T.Tensor((64,), "bool"), B: T.Tensor((64,), "int32"), O: T.Tensor((64,), "bool"), P: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[i] = (A[i] and B[i] > 0) or (not A[i] and B[i] < 0)
                P[i] = T.cast(A[i], "int32") + T.if_then_else(A[i], 1, 2)

    a = rng.integers(0, 2, 64).astype(bool)
    b = rng.integers(-2, 3, 64).astype("i4")
    t = go(f, A=a, B=b)
    eq(t, "O", (a & (b > 0)) | (~a & (b < 0)))
    eq(t, "P", a + np.where(a, 1, 2))


@case
def bit_ops():
    @T.prim_func
    def f(A: T.Tensor((64,), "uint32"), O: T.Tensor((6, 64), "uint32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                O[0, i] = (A[i] << 3) ^ (A[i] >> 5)
                O[1, i] = ~A[i] & T.uint32(0xFF00FF)
                O[2, i] = A[i] | T.uint32(1)
                O[3, i] = T.cast(T.popcount(A[i]), "uint32")
                O[4, i] = T.cast(T.clz(T.cast(A[i], "int32")), "uint32")
                O[5, i] = T.reinterpret(T.reinterpret(A[i], "float32"), "uint32")

    a = rng.integers(0, 2**32, 64, dtype="u4")
    t = go(f, A=a)
    eq(
        t,
        "O",
        np.stack(
            [
                (a << np.uint32(3)) ^ (a >> np.uint32(5)),
                ~a & np.uint32(0xFF00FF),
                a | 1,
                [bin(x).count("1") for x in a],
                [32 - int(x).bit_length() for x in a],
                a,
            ]
        ),
    )


@case
def vectorized():
    @T.prim_func
    def f(A: T.Tensor((32, 8), "float16"), O: T.Tensor((32, 8), "float16")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            l = T.alloc_local((8,), "float16")
            for v in T.vectorized(8):
                l[v] = A[t, v]
            for v in T.vectorized(8):
                O[t, v] = l[7 - v] * T.float16(2)

    a = f32(32, 8).astype("f2")
    eq(go(f, A=a), "O", a[:, ::-1] * 2)


@case
def pipelined_order_stage():
    @T.prim_func
    def f(A: T.Tensor((8, 64), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_shared((64,), "float32")
            c = T.alloc_fragment((64,), "float32")
            T.clear(c)
            for k in T.Pipelined(8, order=[0, 1], stage=[0, 1]):
                T.copy(A[k, :], s)
                for i in T.Parallel(64):
                    c[i] += s[i]
            T.copy(c, O)

    a = f32(8, 64)
    eq(go(f, A=a), "O", a.sum(0), 1e-5)


@case
def look_back():
    @T.prim_func
    def f(A: T.Tensor((16, 32), "int32"), F: T.Tensor((16,), "int32"), S: T.Tensor((16,), "int32"), O: T.Tensor((16, 32), "int32")):
        with T.Kernel(16, threads=32) as b:
            t = T.get_thread_binding()
            s = T.alloc_shared((32,), "int32")
            base = T.alloc_shared((1,), "int32")
            T.copy(A[b, :], s)
            T.cumsum(s, dim=0)
            if t == 0:
                base[0] = 0
                if b > 0:
                    while T.atomic_load(F[b - 1], memory_order="acquire") == 0:
                        pass
                    base[0] = S[b - 1]
                S[b] = base[0] + s[31]
                T.atomic_store(F[b], 1, memory_order="release")
            T.sync_threads()
            O[b, t] = base[0] + s[t]

    a = rng.integers(0, 9, (16, 32)).astype("i4")
    t = go(f, A=a, F=np.zeros(16, "i4"), S=np.zeros(16, "i4"))
    eq(t, "O", np.cumsum(a).reshape(16, 32))


@case
def grid_sync():
    @T.prim_func
    def f(A: T.Tensor((8, 32), "float32"), W: T.Tensor((8, 32), "float32"), O: T.Tensor((8, 32), "float32")):
        with T.Kernel(8, threads=32) as b:
            for i in T.Parallel(32):
                W[b, i] = A[b, i] + 1
            T.sync_grid()
            for i in T.Parallel(32):
                O[b, i] = W[7 - b, i]

    a = f32(8, 32)
    eq(go(f, A=a, W=np.zeros((8, 32), "f")), "O", (a + 1)[::-1])


@case
def im2col():
    @T.prim_func
    def f(X: T.Tensor((1, 8, 8, 16), "float16"), W: T.Tensor((3 * 3 * 16, 32), "float16"), O: T.Tensor((36, 32), "float32")):
        with T.Kernel(1, threads=128):
            d = T.alloc_shared((36, 16), "float16")
            w = T.alloc_shared((16, 32), "float16")
            c = T.alloc_fragment((36, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(9, num_stages=2):
                T.c2d_im2col(X, d, 0, k, 3, 1, 1, 0)
                T.copy(W[k * 16, 0], w)
                for i, j in T.Parallel(36, 32):
                    for q in T.serial(16):
                        c[i, j] += T.cast(d[i, q], "float32") * T.cast(w[q, j], "float32")
            T.copy(c, O)

    x, w = f32(1, 8, 8, 16).astype("f2"), f32(144, 32).astype("f2")
    cols = np.stack([x[0, i : i + 3, j : j + 3].reshape(-1) for i in range(6) for j in range(6)]).astype("f")
    eq(go(f, X=x, W=w), "O", cols @ w.astype("f"), 1e-3)


@case
def nan_rules():
    @T.prim_func
    def f(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32"), O: T.Tensor((3, 64), "float32"), R: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64):
            s = T.alloc_fragment((64,), "float32")
            r = T.alloc_fragment((1,), "float32")
            for i in T.Parallel(64):
                O[0, i] = T.max(A[i], B[i])
                O[1, i] = T.min(A[i], B[i])
                O[2, i] = T.cast(T.isnan(A[i]), "float32")
            T.copy(A, s)
            T.reduce_max(s, r)
            T.copy(r, R)

    a, b = f32(64), f32(64)
    a[3] = np.nan
    b[5] = np.nan
    t = go(f, A=a, B=b)
    eq(t, "O", np.stack([np.fmax(a, b), np.fmin(a, b), np.isnan(a)]))
    eq(t, "R", [np.nanmax(a)])


@case
def atomic_forms():
    @T.prim_func
    def f(A: T.Tensor((64,), "float16"), O: T.Tensor((2,), "float16"), M: T.Tensor((2,), "int32"), V: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=64):
            t = T.get_thread_binding()
            T.atomic_addx2(O[0], A[t // 2 * 2]) if False else T.atomic_add(O[t % 2], A[t])
            T.atomic_max(M[0], t * 3)
            T.atomic_min(M[1], t - 5)
            s = T.alloc_shared((4,), "float32")
            if t < 4:
                s[t] = 0.0
            T.sync_threads()
            T.atomic_add(s[t % 4], T.float32(1))
            T.sync_threads()
            if t < 4:
                V[t] = s[t]

    a = np.ones(64, "f2")
    t = go(f, A=a, O=np.zeros(2, "f2"), M=np.zeros(2, "i4"))
    eq(t, "O", [32, 32])
    eq(t, "M", [189, -5])
    eq(t, "V", [16] * 4)


@case
def eager_two_outputs():
    @tilelang.jit
    def k(A, B):
        M, N = T.const("M, N")
        A: T.Tensor[[M, N], T.float32]
        B: T.Tensor[[N], T.float32]
        O = T.empty((M, N), T.float32)
        R = T.empty((M,), T.float32)
        with T.Kernel(M, threads=32) as b:
            s = T.alloc_fragment((N,), "float32")
            r = T.alloc_fragment((1,), "float32")
            T.copy(A[b, :], s)
            for j in T.Parallel(N):
                s[j] = s[j] * B[j]
            T.reduce_sum(s, r, dim=0)
            T.copy(s, O[b, :])
            R[b] = r[0]
        return O, R

    a, b = f32(5, 64), f32(64)
    t = go(k, consts={"M": 5, "N": 64}, A=a, B=b)
    eq(t, "out0", a * b)
    eq(t, "out1", (a * b).sum(1), 1e-5)


@case
def lazy_out_idx():
    @tilelang.jit(out_idx=[1])
    def mk(N, dt="float32"):
        @T.prim_func
        def f(A: T.Tensor((N,), dt), O: T.Tensor((N,), dt), s: T.float32):
            with T.Kernel(T.ceildiv(N, 32), threads=32) as b:
                for i in T.Parallel(32):
                    O[b * 32 + i] = A[b * 32 + i] * s

        return f

    a = f32(50)
    t = go(mk, consts={"N": 50}, quiet=True, A=a, s=2.5)
    eq(t, "out0", a * np.float32(2.5))


@case
def annotate_all():
    @T.prim_func
    def f(A: T.Tensor((100, 60), "float16"), O: T.Tensor((100, 60), "float16")):
        with T.Kernel(T.ceildiv(60, 32), T.ceildiv(100, 32), threads=64) as (bx, by):
            T.use_swizzle(4)
            s = T.alloc_shared((32, 32), "float16")
            T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})
            T.annotate_safe_value({A: 7.0})
            T.assume(bx >= 0)
            T.copy(A[by * 32, bx * 32], s)
            for i, j in T.Parallel(32, 32):
                s[i, j] = s[i, j] + T.float16(1)
            T.copy(s, O[by * 32, bx * 32])

    a = f32(100, 60).astype("f2")
    eq(go(f, quiet=True, A=a), "O", a + np.float16(1))


@case
def let_and_vars():
    @T.prim_func
    def f(A: T.Tensor((64,), "int32"), O: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            x = T.alloc_var("int32", init=3)
            y = A[b * 32 + t] * 2
            for i in T.serial(y % 5):
                x = x + i
                if x > 10:
                    x = x - 7
                else:
                    x = x * 2
            O[b * 32 + t] = x + y

    a = rng.integers(0, 50, 64).astype("i4")
    w = []
    for v in a:
        x = 3
        y = int(v) * 2
        for i in range(y % 5):
            x += i
            x = x - 7 if x > 10 else x * 2
        w.append(x + y)
    eq(go(f, A=a), "O", w)


@case
def local_arrays_2d():
    @T.prim_func
    def f(A: T.Tensor((32, 4, 4), "float32"), O: T.Tensor((32, 4, 4), "float32")):
        with T.Kernel(1, threads=32):
            t = T.get_thread_binding()
            l = T.alloc_local((4, 4), "float32")
            for i in T.serial(4):
                for j in T.serial(4):
                    l[i, j] = A[t, i, j]
            for i in T.serial(4):
                for j in T.serial(i):
                    l[i, j] = l[j, i]
            for i in T.serial(4):
                for j in T.serial(4):
                    O[t, i, j] = l[i, j]

    a = f32(32, 4, 4)
    w = a.copy()
    for i in range(4):
        for j in range(i):
            w[:, i, j] = w[:, j, i]
    eq(go(f, A=a), "O", w)


@pytest.mark.parametrize("name", case)
def test_a_whole_kernel_agrees_with_numpy(name):
    case[name]()

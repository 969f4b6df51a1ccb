"""Whole kernels as people write them, each against numpy (4 of 4)."""

import ml_dtypes
import numpy as np
import pytest
import tilelang.language as T

from tests.sim.whole import Cases, bf, eq, f32, go, rng

case = Cases()


@case
def fp8_gemm_scaled():
    @T.prim_func
    def f(
        A: T.Tensor((64, 128), "float8_e4m3fn"),
        B: T.Tensor((64, 128), "float8_e4m3fn"),
        SA: T.Tensor((64, 2), "float32"),
        C: T.Tensor((64, 64), "bfloat16"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float8_e4m3fn")
            b = T.alloc_shared((64, 64), "float8_e4m3fn")
            c = T.alloc_fragment((64, 64), "float32")
            d = T.alloc_fragment((64, 64), "float32")
            o = T.alloc_fragment((64, 64), "bfloat16")
            T.clear(d)
            for k in T.Pipelined(2, num_stages=2):
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], b)
                T.clear(c)
                T.gemm(a, b, c, transpose_B=True)
                for i, j in T.Parallel(64, 64):
                    d[i, j] += c[i, j] * SA[i, k]
            T.copy(d, o)
            T.copy(o, C)

    a, b = (f32(64, 128).astype(ml_dtypes.float8_e4m3fn) for _ in "ab")
    s = f32(64, 2)
    w = sum((a.astype("f")[:, k * 64 : k * 64 + 64] @ b.astype("f")[:, k * 64 : k * 64 + 64].T) * s[:, k : k + 1] for k in (0, 1))
    eq(go(f, A=a, B=b, SA=s), "C", w.astype(bf).astype("f"), 2e-2)


@case
def int4_packed_dequant():
    @T.prim_func
    def f(Q: T.Tensor((32,), "uint8"), S: T.Tensor((1,), "float16"), O: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(64):
                v = (Q[i // 2] >> T.cast((i % 2) * 4, "uint8")) & T.uint8(15)
                O[i] = (T.cast(v, "float16") - T.float16(8)) * S[0]

    q = rng.integers(0, 256, 32).astype("u1")
    s = np.array([0.3], "f2")
    v = np.stack([q & 15, q >> 4], 1).reshape(-1)
    eq(go(f, Q=q, S=s), "O", (v.astype("f2") - np.float16(8)) * s)


@case
def copy_oob_both_ways():
    @T.prim_func
    def f(A: T.Tensor((50, 70), "float32"), O: T.Tensor((50, 70), "float32")):
        with T.Kernel(T.ceildiv(70, 32), T.ceildiv(50, 32), threads=64) as (x, y):
            s = T.alloc_shared((32, 32), "float32")
            T.copy(A[y * 32, x * 32], s)
            T.copy(s, O[y * 32, x * 32])

    a = f32(50, 70)
    eq(go(f, quiet=True, A=a), "O", a)


@case
def cond_gemm_per_block():
    @T.prim_func
    def f(A: T.Tensor((4, 32, 32), "float16"), E: T.Tensor((4,), "int32"), C: T.Tensor((4, 32, 32), "float32")):
        with T.Kernel(4, threads=128) as b:
            a = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            if E[b] > 0:
                T.copy(A[b, :, :], a)
                for k in T.serial(E[b]):
                    T.gemm(a, a, c)
            T.copy(c, C[b, :, :])

    a = f32(4, 32, 32).astype("f2")
    E = np.array([0, 1, 3, 2], "i4")
    eq(go(f, A=a, E=E), "C", np.stack([E[i] * (a[i].astype("f") @ a[i].astype("f")) for i in range(4)]), 1e-2)


@case
def ws_persistent_tma_gemm():
    _M, _N, _K = 256, 256, 128

    @T.prim_func
    def f(A: T.Tensor((256, 128), "bfloat16"), B: T.Tensor((256, 128), "bfloat16"), C: T.Tensor((256, 256), "float32")):
        with T.Kernel(3, threads=256) as w:
            a = T.alloc_shared((2, 64, 32), "bfloat16")
            b = T.alloc_shared((2, 64, 32), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier([1] * 2)
            empty = T.alloc_barrier([128] * 2)
            it = T.alloc_local((1,), "int32")
            t = T.get_thread_binding()
            it[0] = 0
            if t >= 128:
                for q in T.serial(6):
                    tile = w + q * 3
                    if tile < 16:
                        for k in T.serial(4):
                            s = it[0] % 2
                            T.mbarrier_wait_parity(empty[s], ((it[0] // 2) & 1) ^ 1)
                            if t < 160:
                                T.tma_copy(A[tile // 4 * 64 : tile // 4 * 64 + 64, k * 32 : k * 32 + 32], a[s, :, :], barrier=full[s])
                                T.tma_copy(B[tile % 4 * 64 : tile % 4 * 64 + 64, k * 32 : k * 32 + 32], b[s, :, :], barrier=full[s])
                            if t == 128:
                                T.mbarrier_arrive(full[s])
                            it[0] = it[0] + 1
            else:
                for q in T.serial(6):
                    tile = w + q * 3
                    if tile < 16:
                        T.clear(c)
                        for k in T.serial(4):
                            s = it[0] % 2
                            T.mbarrier_wait_parity(full[s], (it[0] // 2) & 1)
                            T.gemm(a[s, :, :], b[s, :, :], c, transpose_B=True)
                            T.mbarrier_arrive(empty[s])
                            it[0] = it[0] + 1
                        T.copy(c, C[tile // 4 * 64, tile % 4 * 64])

    a, b = f32(256, 128).astype(ml_dtypes.bfloat16), f32(256, 128).astype(ml_dtypes.bfloat16)
    t = go(f, target="sm_90a", A=a, B=b)
    eq(t, "C", a.astype("f") @ b.astype("f").T, 1e-3)


@case
def radix_pass():
    @T.prim_func
    def f(X: T.Tensor((512,), "uint32"), O: T.Tensor((512,), "uint32")):
        with T.Kernel(1, threads=128):
            h = T.alloc_shared((16,), "int32")
            off = T.alloc_shared((16,), "int32")
            t = T.get_thread_binding()
            if t < 16:
                h[t] = 0
            T.sync_threads()
            for i in T.serial(4):
                T.atomic_add(h[T.cast(X[t * 4 + i] & T.uint32(15), "int32")], 1)
            T.sync_threads()
            if t == 0:
                s = T.alloc_var("int32")
                s = 0
                for d in T.serial(16):
                    off[d] = s
                    s = s + h[d]
            T.sync_threads()
            if t < 16:
                p = T.alloc_var("int32")
                p = off[t]
                for i in T.serial(512):
                    if T.cast(X[i] & T.uint32(15), "int32") == t:
                        O[p] = X[i]
                        p = p + 1

    x = rng.integers(0, 1000, 512, dtype="u4")
    t = go(f, X=x)
    eq(t, "O", x[np.argsort(x & 15, kind="stable")])


@case
def topk_bitonic():
    @T.prim_func
    def f(X: T.Tensor((4, 64), "float32"), O: T.Tensor((4, 64), "float32")):
        with T.Kernel(4, threads=64) as b:
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            s[t] = X[b, t]
            T.sync_threads()
            for k in T.serial(1, 7):
                for j in T.serial(k):
                    d = T.alloc_var("int32")
                    p = T.alloc_var("int32")
                    lo = T.alloc_var("float32")
                    hi = T.alloc_var("float32")
                    d = 1 << (k - 1 - j)
                    p = t ^ d
                    if p > t:
                        lo = T.min(s[t], s[p])
                        hi = T.max(s[t], s[p])
                        if (t & (1 << k)) == 0:
                            s[t] = lo
                            s[p] = hi
                        else:
                            s[t] = hi
                            s[p] = lo
                    T.sync_threads()
            O[b, t] = s[t]

    x = f32(4, 64)
    t = go(f, X=x)
    eq(t, "O", np.sort(x, 1))


@case
def flash_attn():
    @T.prim_func
    def f(
        Q: T.Tensor((1, 128, 2, 64), "float16"),
        K: T.Tensor((1, 128, 2, 64), "float16"),
        V: T.Tensor((1, 128, 2, 64), "float16"),
        O: T.Tensor((1, 128, 2, 64), "float16"),
    ):
        with T.Kernel(2, 2, 1, threads=128) as (bx, by, bz):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            v = T.alloc_shared((64, 64), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            p = T.alloc_fragment((64, 64), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            m = T.alloc_fragment((64,), "float32")
            mp = T.alloc_fragment((64,), "float32")
            sc = T.alloc_fragment((64,), "float32")
            rs = T.alloc_fragment((64,), "float32")
            l = T.alloc_fragment((64,), "float32")
            T.copy(Q[bz, bx * 64 : bx * 64 + 64, by, :], q)
            T.clear(o)
            T.clear(l)
            T.fill(m, -T.infinity("float32"))
            for j in T.Pipelined(bx + 1, num_stages=1):
                T.copy(K[bz, j * 64 : j * 64 + 64, by, :], k)
                for a, c in T.Parallel(64, 64):
                    s[a, c] = T.if_then_else(bx * 64 + a >= j * 64 + c, 0, -T.infinity("float32"))
                T.gemm(q, k, s, transpose_B=True)
                T.copy(V[bz, j * 64 : j * 64 + 64, by, :], v)
                T.copy(m, mp)
                T.reduce_max(s, m, dim=1, clear=False)
                for a in T.Parallel(64):
                    sc[a] = T.exp2((mp[a] - m[a]) * 0.1803)
                for a, c in T.Parallel(64, 64):
                    o[a, c] *= sc[a]
                for a, c in T.Parallel(64, 64):
                    s[a, c] = T.exp2((s[a, c] - m[a]) * 0.1803)
                T.copy(s, p)
                T.gemm(p, v, o)
                T.reduce_sum(s, rs, dim=1)
                for a in T.Parallel(64):
                    l[a] = l[a] * sc[a] + rs[a]
            for a, c in T.Parallel(64, 64):
                o[a, c] /= l[a]
            T.copy(o, O[bz, bx * 64 : bx * 64 + 64, by, :])

    q, k, v = (f32(1, 128, 2, 64).astype("f2") for _ in "qkv")
    sc = np.einsum("bshd,bthd->bhst", q.astype("f"), k.astype("f")) / 8
    sc = np.where(np.tril(np.ones((128, 128))) > 0, sc, -np.inf)
    w = np.exp(sc - sc.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    t = go(f, Q=q, K=k, V=v)
    eq(t, "O", np.einsum("bhst,bthd->bshd", w, v.astype("f")), 1e-2)


@case
def moe_dispatch():
    @T.prim_func
    def f(G: T.Tensor((64, 4), "float32"), Cn: T.Tensor((4,), "int32"), Slot: T.Tensor((64,), "int32"), Ex: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            t = T.get_thread_binding()
            g = b * 32 + t
            best = T.alloc_var("float32")
            e = T.alloc_var("int32")
            best = G[g, 0]
            e = 0
            for k in T.serial(1, 4):
                if G[g, k] > best:
                    best = G[g, k]
                    e = k
            Ex[g] = e
            Slot[g] = T.atomic_add(Cn[e], 1, return_prev=True)

    G = f32(64, 4)
    t = go(f, G=G, Cn=np.zeros(4, "i4"))
    ex = G.argmax(1)
    eq(t, "Ex", ex)
    eq(t, "Cn", np.bincount(ex, minlength=4))
    for e in range(4):
        assert sorted(t.outputs["Slot"][ex == e]) == list(range((ex == e).sum()))


@case
def dsm_ring_reduce():
    "cluster of 4: each sends its partial to rank 0's slots"

    @T.prim_func
    def f(A: T.Tensor((8, 64), "float32"), O: T.Tensor((2, 64), "float32")):
        with T.Kernel(8, threads=64, cluster_dims=(4, 1, 1)) as b:
            s = T.alloc_shared((64,), "float32")
            slots = T.alloc_shared((4, 64), "float32")
            m = T.alloc_cluster_barrier([4])
            r = T.block_rank_in_cluster()
            T.copy(A[b, :], s)
            T.cluster_sync()
            T.copy_cluster(s, slots[r, :], dst_block=0, remote_barrier=m[0])
            if r == 0:
                T.mbarrier_wait_parity(m[0], 0)
                acc = T.alloc_fragment((64,), "float32")
                T.clear(acc)
                for q in T.serial(4):
                    for i in T.Parallel(64):
                        acc[i] += slots[q, i]
                T.copy(acc, O[b // 4, :])
            T.cluster_sync()

    a = f32(8, 64)
    t = go(f, target="sm_90a", A=a)
    eq(t, "O", a.reshape(2, 4, 64).sum(1), 1e-5)


@case
def rng_ws_and_cond():
    @T.prim_func
    def f(O: T.Tensor((2, 64), "float32")):
        with T.Kernel(2, threads=64) as b:
            t = T.get_thread_binding()
            T.rng_init(7, t, b)
            for i in T.Parallel(64):
                if i % 2 == 0:
                    O[b, i] = T.rng_rand_float()
                else:
                    O[b, i] = -1.0

    t = go(f)
    o = t.outputs["O"]
    assert (o[:, 1::2] == -1).all()
    assert (o[:, ::2] > 0).all()
    assert len(np.unique(o[:, ::2])) == 64


@case
def pointers_in_loop_and_branch():
    @T.prim_func
    def f(P: T.Tensor((6,), T.ptr), N: T.Tensor((6,), "int32"), O: T.Tensor((6,), "float32")):
        with T.Kernel(2, threads=32) as b:
            for g in T.serial(3):
                e = b * 3 + g
                A = T.make_tensor(P[e], (N[e],), "float32")
                s = T.alloc_fragment((32,), "float32")
                r = T.alloc_fragment((1,), "float32")
                for i in T.Parallel(32):
                    s[i] = T.if_then_else(i < N[e], A[i], 0.0)
                T.reduce_sum(s, r)
                O[e] = r[0]

    n = np.array([1, 32, 5, 0, 17, 8], "i4")
    xs = [f32(max(int(k), 1)) for k in n]
    t = go(f, P=xs, N=n)
    eq(t, "O", [x[:k].sum() for x, k in zip(xs, n)], 1e-5)


@case
def ptr_bf16_gemv():
    @T.prim_func
    def f(P: T.Tensor((3,), "int64"), X: T.Tensor((64,), "bfloat16"), O: T.Tensor((3, 16), "float32")):
        with T.Kernel(3, threads=64) as b:
            W = T.make_tensor_from_addr(P[b], (16, 64), "bfloat16")
            w = T.alloc_shared((16, 64), "bfloat16")
            x = T.alloc_shared((64,), "bfloat16")
            a = T.alloc_fragment((16, 64), "float32")
            r = T.alloc_fragment((16,), "float32")
            T.copy(W, w)
            T.copy(X, x)
            for i, j in T.Parallel(16, 64):
                a[i, j] = T.cast(w[i, j], "float32") * T.cast(x[j], "float32")
            T.reduce_sum(a, r, dim=1)
            T.copy(r, O[b, :])

    ws = [f32(16, 64).astype(bf) for _ in range(3)]
    x = f32(64).astype(bf)
    t = go(f, P=ws, X=x)
    eq(t, "O", np.stack([w.astype("f") @ x.astype("f") for w in ws]), 1e-4)


@case
def pool_reinterpret():
    @T.prim_func
    def f(P: T.Tensor((1,), "int64"), O: T.Tensor((64,), "uint16")):
        with T.Kernel(1, threads=64):
            W = T.make_tensor_from_addr(P[0], (64,), "uint16")
            for i in T.Parallel(64):
                O[i] = W[i]

    w = f32(64).astype("f2")
    t = go(f, P=[w])
    eq(t, "O", w.view("u2"))


@case
def address_offset():
    @T.prim_func
    def f(P: T.Tensor((1,), "int64"), O: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16):
            W = T.make_tensor_from_addr(P[0] + T.int64(64), (16,), "float32")
            for i in T.Parallel(16):
                O[i] = W[i]

    w = f32(64)
    t = go(f, P=[w])
    eq(t, "O", w[16:32])


@case
def atomics_on_pointer():
    @T.prim_func
    def f(P: T.Tensor((2,), "int64"), X: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32) as b:
            H = T.make_tensor_from_addr(P[b], (4,), "int32")
            for i in T.Parallel(32):
                T.atomic_add(H[X[b * 32 + i]], 1)

    x = rng.integers(0, 4, 64).astype("i4")
    t = go(f, P=[np.zeros(4, "i4"), np.zeros(4, "i4")], X=x)
    eq(t, "P[0]", np.bincount(x[:32], minlength=4))
    eq(t, "P[1]", np.bincount(x[32:], minlength=4))


@case
def thread_loops_xy():
    @T.prim_func
    def f(A: T.Tensor((4, 32), "float32"), O: T.Tensor((32, 4), "float32")):
        with T.Kernel(1, threads=(32, 4)):
            for y in T.thread_binding(4, thread="threadIdx.y"):
                for x in T.thread_binding(32, thread="threadIdx.x"):
                    O[x, y] = A[y, x]

    a = f32(4, 32)
    eq(go(f, A=a), "O", a.T)


@case
def scaled_float_scales():
    @T.prim_func
    def f(
        A: T.Tensor((64, 64), "float8_e4m3fn"),
        B: T.Tensor((64, 64), "float8_e4m3fn"),
        SA: T.Tensor((64, 2), "float8_e8m0fnu"),
        SB: T.Tensor((64, 2), "float8_e8m0fnu"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float8_e4m3fn")
            b = T.alloc_shared((64, 64), "float8_e4m3fn")
            sa = T.alloc_shared((64, 2), "float8_e8m0fnu")
            sb = T.alloc_shared((64, 2), "float8_e8m0fnu")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(SA, sa)
            T.copy(SB, sb)
            T.clear(c)
            T.gemm_blockscaled(a, b, c, sa, sb, transpose_B=True, k_start=0, sf_a_granularity_k=32, sf_b_granularity_k=32)
            T.copy(c, C)

    a, b = (f32(64, 64).astype(ml_dtypes.float8_e4m3fn) for _ in "ab")
    sa, sb = ((2.0 ** rng.integers(-3, 4, (64, 2))).astype("f").astype(ml_dtypes.float8_e8m0fnu) for _ in "ab")

    def s(v):
        return np.repeat(v.astype("f"), 32, 1)

    t = go(f, A=a, B=b, SA=sa, SB=sb)
    eq(t, "C", (a.astype("f") * s(sa)) @ (b.astype("f") * s(sb)).T, 1e-4)


@pytest.mark.parametrize("name", case)
def test_a_whole_kernel_agrees_with_numpy(name):
    case[name]()

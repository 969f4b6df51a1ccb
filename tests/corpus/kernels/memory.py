"""Gathers, transposes, several launches, safe values, hand-written layouts, macros."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def transpose(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    B = T.empty((N, M), T.float32)
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
        s = T.alloc_shared((32, 33), T.float32)
        T.copy(A[by * 32, bx * 32], s[:, 0:32])
        for i, j in T.Parallel(32, 32):
            B[bx * 32 + i, by * 32 + j] = s[j, i]
    return B


def transpose_oracle(A):
    return {"out0": A.T}


@tilelang.jit
def transpose_op(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float16]
    B = T.empty((N, M), T.float16)
    with T.Kernel(N // 32, M // 64, threads=128) as (bx, by):
        s = T.alloc_shared((64, 32), T.float16)
        t = T.alloc_shared((32, 64), T.float16)
        T.copy(A[by * 64, bx * 32], s)
        T.transpose(s, t)
        T.copy(t, B[bx * 32, by * 64])
    return B


@tilelang.jit
def gather_rows(V, I):
    R, D, N = T.const("R, D, N")
    V: T.Tensor[[R, D], T.float16]
    I: T.Tensor[[N], T.int32]
    O = T.empty((N, D), T.float16)
    with T.Kernel(N // 16, threads=128) as b:
        s = T.alloc_shared((16, D), T.float16)
        for i, j in T.Parallel(16, D):
            s[i, j] = V[I[b * 16 + i], j]
        T.copy(s, O[b * 16, 0])
    return O


def gather_rows_inputs(rng):
    return {"V": rng.standard_normal((40, 64), dtype=np.float32).astype(np.float16), "I": rng.integers(0, 40, 32, dtype=np.int32)}


def gather_rows_oracle(V, I):
    return {"out0": V[I]}


@tilelang.jit
def scatter_add(V, I, O):
    N, D = T.const("N, D")
    V: T.Tensor[[N, D], T.float32]
    I: T.Tensor[[N], T.int32]
    O: T.Tensor[[8, D], T.float32]
    with T.Kernel(N, threads=D) as b:
        t = T.get_thread_binding()
        T.atomic_add(O[I[b], t], V[b, t])


def scatter_add_inputs(rng):
    return {"V": rng.integers(0, 9, (20, 32)).astype(np.float32), "I": rng.integers(0, 8, 20, dtype=np.int32), "O": np.zeros((8, 32), np.float32)}


def scatter_add_oracle(V, I, O):
    out = O.copy()
    np.add.at(out, I, V)
    return {"O": out}


@tilelang.jit
def two_launches(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    O = T.empty((1,), T.float32)
    partial = T.alloc_global((N // 128,), T.float32)
    with T.Kernel(N // 128, threads=128) as b:
        a = T.alloc_fragment((128,), T.float32)
        s = T.alloc_fragment((1,), T.float32)
        T.copy(A[b * 128], a)
        T.reduce_sum(a, s, dim=0)
        T.copy(s, partial[b : b + 1])
    with T.Kernel(1, threads=32):
        p = T.alloc_fragment((N // 128,), T.float32)
        s = T.alloc_fragment((1,), T.float32)
        T.copy(partial, p)
        T.reduce_sum(p, s, dim=0)
        T.copy(s, O)
    return O


def two_launches_oracle(A):
    return {"out0": np.array([A.sum(dtype=np.float64)])}


@tilelang.jit
def safe_maximum(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    O = T.empty((M,), T.float32)
    with T.Kernel(M, threads=64) as b:
        a = T.alloc_fragment((128,), T.float32)
        m = T.alloc_fragment((1,), T.float32)
        T.annotate_safe_value({A: -3.0e38})
        T.copy(A[b, 0:128], a)
        T.reduce_max(a, m, dim=0)
        O[b] = m[0]
    return O


def safe_maximum_inputs(rng):
    return {"A": -1 - rng.random((8, 100), dtype=np.float32)}


def safe_maximum_oracle(A):
    return {"out0": A.max(1)}


@tilelang.jit
def xor_layout(A):
    A: T.Tensor[[32, 32], T.float32]
    B = T.empty((32, 32), T.float32)
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((32, 32), T.float32)
        T.annotate_layout({s: T.Layout((32, 32), lambda i, j: (i, j ^ i))})
        T.copy(A, s)
        t = T.get_thread_binding()
        for i in T.serial(32):
            B[t, i] = s[i, t]
    return B


@T.macro
def _square(x, n):
    for i in T.Parallel(n):
        x[i] = x[i] * x[i]


@T.macro
def _fourth(x, n):
    _square(x, n)
    _square(x, n)


@tilelang.jit
def nested_macros(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    O = T.empty((N,), T.float32)
    with T.Kernel(N // 64, threads=64) as b:
        x = T.alloc_fragment((64,), T.float32)
        T.copy(A[b * 64], x)
        _fourth(x, 64)
        T.copy(x, O[b * 64])
    return O


def nested_macros_oracle(A):
    return {"out0": (A * A) * (A * A)}


@tilelang.jit
def conv_im2col(X, W):
    N, H, C, F = T.const("N, H, C, F")
    X: T.Tensor[[N, H, H, C], T.float16]
    W: T.Tensor[[3, 3, C, F], T.float16]
    O = T.empty((N, H, H, F), T.float32)
    with T.Kernel(F // 32, T.ceildiv(N * H * H, 64), threads=128) as (bx, by):
        x = T.alloc_shared((64, 32), T.float16)
        w = T.alloc_shared((32, 32), T.float16)
        c = T.alloc_fragment((64, 32), T.float32)
        flat_w = T.Tensor((9 * C, F), T.float16, W.data)
        flat_o = T.Tensor((N * H * H, F), T.float32, O.data)
        T.clear(c)
        for k in T.serial(9 * C // 32):
            for i, j in T.Parallel(64, 32):
                kk = k * 32 + j
                m = by * 64 + i
                h = m % (H * H) // H + kk // C // 3 - 1
                v = m % H + kk // C % 3 - 1
                inside = (h >= 0) and (v >= 0) and (h < H) and (v < H) and (m < N * H * H)
                x[i, j] = T.if_then_else(inside, X[m // (H * H), h, v, kk % C], T.float16(0))
            T.copy(flat_w[k * 32, bx * 32], w)
            T.gemm(x, w, c)
        T.copy(c, flat_o[by * 64, bx * 32])
    return O


def conv_im2col_inputs(rng):
    f = lambda *s: rng.standard_normal(s, dtype=np.float32).astype(np.float16)  # noqa: E731
    return {"X": f(2, 10, 10, 32), "W": f(3, 3, 32, 32)}


def conv_im2col_oracle(X, W):
    n, h, _, c = X.shape
    p = np.zeros((n, h + 2, h + 2, c))
    p[:, 1:-1, 1:-1] = X
    out = sum(p[:, i : i + h, j : j + h] @ W[i, j].astype(np.float64) for i in range(3) for j in range(3))
    return {"out0": out}

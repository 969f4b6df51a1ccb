"""Reductions, scans, normalisations, softmax."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def row_sum(A, block: int = 16):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    O = T.empty((M,), T.float32)
    with T.Kernel(T.ceildiv(M, block), threads=128) as b:
        a = T.alloc_fragment((block, N), T.float32)
        s = T.alloc_fragment((block,), T.float32)
        T.copy(A[b * block, 0], a)
        T.reduce_sum(a, s, dim=1)
        T.copy(s, O[b * block])
    return O


def row_sum_oracle(A):
    return {"out0": A.sum(1, dtype=np.float64)}


@tilelang.jit
def column_sum_tiled(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float16]
    O = T.empty((N,), T.float32)
    with T.Kernel(N // 64, threads=128) as b:
        a = T.alloc_shared((32, 64), T.float16)
        f = T.alloc_fragment((32, 64), T.float32)
        s = T.alloc_fragment((64,), T.float32)
        T.clear(s)
        for k in T.serial(M // 32):
            T.copy(A[k * 32, b * 64], a)
            T.copy(a, f)
            T.reduce_sum(f, s, dim=0, clear=False)
        T.copy(s, O[b * 64])
    return O


def column_sum_tiled_oracle(A):
    return {"out0": A.astype(np.float64).sum(0)}


@tilelang.jit
def every_reduction(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    I = T.empty((6, M), T.float32)
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((M, N), T.float32)
        r = T.alloc_fragment((M,), T.float32)
        T.copy(A, a)
        T.reduce_sum(a, r, dim=1)
        T.copy(r, I[0, :])
        T.reduce_max(a, r, dim=1)
        T.copy(r, I[1, :])
        T.reduce_min(a, r, dim=1)
        T.copy(r, I[2, :])
        T.reduce_abssum(a, r, dim=1)
        T.copy(r, I[3, :])
        T.reduce_absmax(a, r, dim=1)
        T.copy(r, I[4, :])
        T.reduce_max(a, r, dim=1, clear=False)
        T.copy(r, I[5, :])
    return I


def every_reduction_oracle(A):
    s = np.abs(A)
    return {"out0": np.stack([A.sum(1), A.max(1), A.min(1), s.sum(1), s.max(1), np.maximum(s.max(1), A.max(1))])}


@tilelang.jit
def bitwise_reductions(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.int32]
    O = T.empty((3, M), T.int32)
    with T.Kernel(1, threads=64):
        a = T.alloc_fragment((M, N), T.int32)
        r = T.alloc_fragment((M,), T.int32)
        T.copy(A, a)
        T.reduce_bitand(a, r, dim=1)
        T.copy(r, O[0, :])
        T.reduce_bitor(a, r, dim=1)
        T.copy(r, O[1, :])
        T.reduce_bitxor(a, r, dim=1)
        T.copy(r, O[2, :])
    return O


def bitwise_reductions_inputs(rng):
    return {"A": rng.integers(0, 1 << 20, (16, 32), dtype=np.int32)}


def bitwise_reductions_oracle(A):
    return {"out0": np.stack([np.bitwise_and.reduce(A, 1), np.bitwise_or.reduce(A, 1), np.bitwise_xor.reduce(A, 1)])}


@tilelang.jit
def prefix_sum(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    O = T.empty((M, N), T.float32)
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((M, N), T.float32)
        T.copy(A, a)
        T.cumsum(a, dim=1)
        T.copy(a, O)
    return O


def prefix_sum_oracle(A):
    return {"out0": np.cumsum(A.astype(np.float64), 1)}


@tilelang.jit
def suffix_sum_fragment(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    O = T.empty((N,), T.float32)
    with T.Kernel(1, threads=64):
        a = T.alloc_fragment((N,), T.float32)
        T.copy(A, a)
        T.cumsum(a, dim=0, reverse=True)
        T.copy(a, O)
    return O


def suffix_sum_fragment_oracle(A):
    return {"out0": np.cumsum(A[::-1].astype(np.float64))[::-1]}


@tilelang.jit
def softmax(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), T.float32)
    with T.Kernel(M, threads=128) as b:
        x = T.alloc_fragment((N,), T.float32)
        m = T.alloc_fragment((1,), T.float32)
        s = T.alloc_fragment((1,), T.float32)
        T.copy(X[b, :], x)
        T.reduce_max(x, m, dim=0)
        for i in T.Parallel(N):
            x[i] = T.exp(x[i] - m[0])
        T.reduce_sum(x, s, dim=0)
        for i in T.Parallel(N):
            x[i] = x[i] / s[0]
        T.copy(x, Y[b, :])
    return Y


def softmax_oracle(X):
    e = np.exp(X.astype(np.float64) - X.max(1, keepdims=True))
    return {"out0": e / e.sum(1, keepdims=True)}


@tilelang.jit
def online_softmax(X, block: int = 32):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float16]
    Y = T.empty((M, N), T.float16)
    with T.Kernel(T.ceildiv(M, 16), threads=64) as b:
        x = T.alloc_fragment((16, block), T.float32)
        m = T.alloc_fragment((16,), T.float32)
        before = T.alloc_fragment((16,), T.float32)
        s = T.alloc_fragment((16,), T.float32)
        t = T.alloc_fragment((16,), T.float32)
        T.fill(m, -T.infinity("float32"))
        T.clear(s)
        for k in T.serial(T.ceildiv(N, block)):
            T.copy(X[b * 16, k * block], x)
            T.copy(m, before)
            T.reduce_max(x, m, dim=1, clear=False)
            for i, j in T.Parallel(16, block):
                x[i, j] = T.exp(x[i, j] - m[i])
            T.reduce_sum(x, t, dim=1)
            for i in T.Parallel(16):
                s[i] = s[i] * T.exp(before[i] - m[i]) + t[i]
        for k in T.serial(T.ceildiv(N, block)):
            T.copy(X[b * 16, k * block], x)
            for i, j in T.Parallel(16, block):
                x[i, j] = T.exp(x[i, j] - m[i]) / s[i]
            T.copy(x, Y[b * 16, k * block])
    return Y


def online_softmax_oracle(X):
    x = X.astype(np.float64)
    e = np.exp(x - x.max(1, keepdims=True))
    return {"out0": (e / e.sum(1, keepdims=True)).astype(np.float16)}


@tilelang.jit
def rms_norm(X, W, eps: float = 1e-5):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.bfloat16]
    W: T.Tensor[[N], T.float32]
    Y = T.empty((M, N), T.bfloat16)
    with T.Kernel(M // 4, threads=128) as b:
        x = T.alloc_fragment((4, N), T.float32)
        sq = T.alloc_fragment((4, N), T.float32)
        r = T.alloc_fragment((4,), T.float32)
        T.copy(X[b * 4, 0], x)
        for i, j in T.Parallel(4, N):
            sq[i, j] = x[i, j] * x[i, j]
        T.reduce_sum(sq, r, dim=1)
        for i in T.Parallel(4):
            r[i] = T.rsqrt(r[i] / N + eps)
        for i, j in T.Parallel(4, N):
            x[i, j] = x[i, j] * r[i] * W[j]
        T.copy(x, Y[b * 4, 0])
    return Y


def rms_norm_oracle(X, W):
    x = X.astype(np.float64)
    return {"out0": (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5) * W).astype(X.dtype)}


@tilelang.jit
def reducer_epoch(A):
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    O = T.empty((M,), T.float32)
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((M, N), T.float32)
        acc = T.alloc_reducer((M,), T.float32, op="sum")
        out = T.alloc_fragment((M,), T.float32)
        T.copy(A, a)
        T.reducer_init(acc)
        for i, j in T.Parallel(M, N):
            T.reducer_update(acc[i], a[i, j] * a[i, j])
        T.finalize_reducer(acc, out)
        T.copy(out, O)
    return O


def reducer_epoch_oracle(A):
    return {"out0": (A.astype(np.float64) ** 2).sum(1)}

"""Copies, maps, broadcasts, views: one grid, no cooperation."""

import numpy as np
import tilelang
import tilelang.language as T


@tilelang.jit
def copy1d(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=64) as bx:
        T.copy(A[bx * block : (bx + 1) * block], B[bx * block : (bx + 1) * block])
    return B


def copy1d_oracle(A):
    return {"out0": A}


@tilelang.jit
def vector_add(A, B, block: int = 256):
    N = T.const("N")
    A: T.Tensor[[N], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        for i in T.Parallel(block):
            if bx * block + i < N:
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]
    return C


def vector_add_oracle(A, B):
    return {"out0": A + B}


@T.prim_func
def vector_add_dynamic(A: T.Tensor((T.dynamic("n"),), "float32"), B: T.Tensor((T.dynamic("n"),), "float32")):
    n = A.shape[0]
    with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
        for i in T.Parallel(128):
            if bx * 128 + i < n:
                B[bx * 128 + i] = A[bx * 128 + i] * 2.0 + 1.0


def vector_add_dynamic_inputs(rng):
    return {"A": rng.standard_normal(300, dtype=np.float32), "B": np.zeros(300, np.float32)}


def vector_add_dynamic_oracle(A, B):
    return {"B": A * 2 + 1}


@tilelang.jit
def outer_add(A, B):
    M, N = T.const("M, N")
    A: T.Tensor[[M], T.float32]
    B: T.Tensor[[N], T.float32]
    C = T.empty((M, N), T.float32)
    with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 16), threads=64) as (bx, by):
        a = T.alloc_fragment((16,), T.float32)
        b = T.alloc_shared((32,), T.float32)
        c = T.alloc_fragment((16, 32), T.float32)
        T.copy(A[by * 16], a)
        T.copy(B[bx * 32], b)
        for i, j in T.Parallel(16, 32):
            c[i, j] = a[i] + b[j]
        T.copy(c, C[by * 16, bx * 32])
    return C


def outer_add_oracle(A, B):
    return {"out0": A[:, None] + B[None, :]}


@tilelang.jit(out_idx=[-1])
def gelu_cast(M, N, dtype="float16"):
    @T.prim_func
    def kernel(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(M // 8, threads=128) as bx:
            x = T.alloc_fragment((8, N), "float32")
            y = T.alloc_fragment((8, N), "bfloat16")
            T.copy(X[bx * 8, 0], x)
            for i, j in T.Parallel(8, N):
                x[i, j] = x[i, j] * 0.5 * (1.0 + T.erf(x[i, j] * 0.7071067811865476))
            T.copy(x, y)
            T.copy(y, Y[bx * 8, 0])

    return kernel


def gelu_cast_oracle(X):
    from math import erf

    import ml_dtypes

    x = X.astype(np.float64)
    return {"out0": (x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))).astype(ml_dtypes.bfloat16)}


@tilelang.jit
def relu_select(X):
    N = T.const("N")
    X: T.Tensor[[N], T.float16]
    Y = T.empty((N,), T.float16)
    with T.Kernel(T.ceildiv(N, 64), threads=32) as b:
        for i in T.Parallel(64):
            v = X[b * 64 + i]
            Y[b * 64 + i] = T.if_then_else(v > T.float16(0), v, T.Select(v < T.float16(-1), T.float16(-1), v * T.float16(0.5)))
    return Y


def relu_select_oracle(X):
    x = X.astype(np.float32)
    return {"out0": np.where(x > 0, x, np.where(x < -1, -1, x * 0.5)).astype(np.float16)}


@tilelang.jit
def integer_maths(A, B):
    N = T.const("N")
    A: T.Tensor[[N], T.int32]
    B: T.Tensor[[N], T.int32]
    C = T.empty((6, N), T.int32)
    with T.Kernel(1, threads=128):
        for i in T.Parallel(N):
            C[0, i] = A[i] // (B[i] + 1)
            C[1, i] = A[i] % (B[i] + 1)
            C[2, i] = (A[i] << 2) ^ B[i]
            C[3, i] = (A[i] & 3) | (B[i] >> 1)
            C[4, i] = T.max(A[i], B[i]) - T.min(A[i], B[i])
            C[5, i] = T.truncdiv(A[i] - 5, 3) + T.cast(T.cast(A[i], "float32") * 1.5, "int32")
    return C


def integer_maths_oracle(A, B):
    t = np.fix((A - 5) / 3).astype(np.int32)
    return {"out0": np.stack([A // (B + 1), A % (B + 1), (A << 2) ^ B, (A & 3) | (B >> 1), abs(A - B), t + (A * 1.5).astype(np.int32)])}


@tilelang.jit
def strided_view(X):
    M, N = T.const("M, N")
    X: T.StridedTensor[[M, N], [2 * N, 1], T.float32]
    Y = T.empty((M * N,), T.float32)
    with T.Kernel(M, threads=64) as b:
        s = T.alloc_shared((N,), T.float32)
        T.copy(X[b, :], s)
        for i in T.Parallel(N):
            Y[b * N + i] = s[N - 1 - i]
    return Y


def strided_view_inputs(rng):
    return {"X": rng.standard_normal((8, 128), dtype=np.float32)[:, :64]}


def strided_view_oracle(X):
    return {"out0": np.ascontiguousarray(X[:, ::-1]).reshape(-1)}


@tilelang.jit
def reshape_view(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float16]
    Y = T.empty((M * N,), T.float16)
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((M, N), T.float16)
        flat = T.reshape(s, (M * N,))
        T.copy(X, s)
        for i in T.Parallel(M * N):
            Y[i] = flat[i] + T.float16(1)
    return Y


def reshape_view_oracle(X):
    return {"out0": (X.reshape(-1) + np.float16(1)).astype(np.float16)}


@tilelang.jit
def scalar_argument(X, alpha: T.float32, n: T.int32):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty((N,), T.float32)
    with T.Kernel(T.ceildiv(N, 128), threads=128) as b:
        for i in T.Parallel(128):
            j = b * 128 + i
            Y[j] = T.if_then_else(j < n, X[j] * alpha, 0.0)
    return Y


def scalar_argument_inputs(rng):
    return {"X": rng.standard_normal(256, dtype=np.float32), "alpha": 2.5, "n": 100}


def scalar_argument_oracle(X, alpha, n):
    return {"out0": np.where(np.arange(len(X)) < n, X * np.float32(alpha), 0).astype(np.float32)}


@tilelang.jit
def float8_round_trip(X):
    N = T.const("N")
    X: T.Tensor[[N], T.float32]
    Y = T.empty((N,), T.float8_e4m3fn)
    Z = T.empty((N,), T.float8_e5m2)
    with T.Kernel(1, threads=128):
        for i in T.Parallel(N):
            Y[i] = T.cast(X[i], T.float8_e4m3fn)
            Z[i] = T.cast(X[i] * 4.0, T.float8_e5m2)
    return Y, Z


def float8_round_trip_oracle(X):
    import ml_dtypes

    return {"out0": X.astype(ml_dtypes.float8_e4m3fn), "out1": (X * 4).astype(ml_dtypes.float8_e5m2)}


@tilelang.jit
def grid3d(X):
    A, B, C = T.const("A, B, C")
    X: T.Tensor[[A, B, C], T.int32]
    Y = T.empty((A, B, C), T.int32)
    with T.Kernel(C // 4, B // 2, A, threads=(4, 2)) as (bx, by, bz):
        tx, ty, tz = T.get_thread_bindings()
        Y[bz, by * 2 + ty, bx * 4 + tx] = X[bz, by * 2 + ty, bx * 4 + tx] + bz * 100 + ty * 10 + tx + tz
    return Y


def grid3d_oracle(X):
    a, b, c = np.indices(X.shape)
    return {"out0": (X + a * 100 + b % 2 * 10 + c % 4).astype(np.int32)}

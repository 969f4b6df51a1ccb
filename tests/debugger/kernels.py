"""Kernels that the debugger's tests step through."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], T.float16]
    B: T.Tensor[[K, N], T.float16]
    C = T.empty((M, N), T.float32)
    with T.Kernel(N // 32, M // 32, threads=128) as (bx, by):
        a = T.alloc_shared((32, 16), T.float16)
        b = T.alloc_shared((16, 32), T.float16)
        c = T.alloc_fragment((32, 32), T.float32)
        T.clear(c)
        for k in T.Pipelined(K // 16, num_stages=2):
            T.copy(A[by * 32, k * 16], a)
            T.copy(B[k * 16, bx * 32], b)
            T.gemm(a, b, c)
        T.copy(c, C[by * 32, bx * 32])
    return C


@tilelang.jit
def softmax(X):
    M, N = T.const("M, N")
    X: T.Tensor[[M, N], T.float32]
    Y = T.empty((M, N), T.float32)
    with T.Kernel(M // 4, threads=128) as b:
        x = T.alloc_fragment((4, N), T.float32)
        top = T.alloc_fragment((4,), T.float32)
        total = T.alloc_fragment((4,), T.float32)
        T.copy(X[b * 4, 0], x)
        T.reduce_max(x, top, dim=1)
        for i, j in T.Parallel(4, N):
            x[i, j] = T.exp(x[i, j] - top[i])
        T.reduce_sum(x, total, dim=1)
        for i, j in T.Parallel(4, N):
            x[i, j] = x[i, j] / total[i]
        T.copy(x, Y[b * 4, 0])
    return Y


@tilelang.jit
def out_of_bounds(X):
    X: T.Tensor[[64], T.float32]
    Y = T.empty((64,), T.float32)
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), T.float32)
        T.copy(X, s)
        for k in T.serial(4):
            for i in T.Parallel(64):
                Y[i] = s[i + k * 16 - 32] + s[i]
    return Y


@T.macro
def halve(x):
    for i in T.Parallel(8):
        x[i] = x[i] / 2.0


@tilelang.jit
def macros(X):
    X: T.Tensor[[8], T.float32]
    Y = T.empty((8,), T.float32)
    with T.Kernel(1, threads=32):
        x = T.alloc_fragment((8,), T.float32)
        T.copy(X, x)
        for _k in T.serial(2):
            halve(x)
            for i in T.Parallel(8):
                x[i] = x[i] + 1.0
        T.copy(x, Y)
    return Y


@tilelang.jit
def counting(X, steps: int = 3000):
    X: T.Tensor[[64], T.int32]
    Y = T.empty((64,), T.int32)
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), T.int32)
        T.copy(X, s)
        for k in T.serial(steps):
            s[k % 64] = s[k % 64] + 1
        T.copy(s, Y)
    return Y


@tilelang.jit
def partly(X):
    X: T.Tensor[[8], T.float32]
    Y = T.empty((8,), T.float32)
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((8,), T.float32)
        for i in T.Parallel(4):
            s[i] = X[i]
        for i in T.Parallel(4):
            s[i + 4] = X[i] * 2.0
        T.copy(s, Y)
    return Y


@tilelang.jit
def two_roles(A):
    A: T.Tensor[[128, 32], T.float32]
    B = T.empty((128, 32), T.float32)
    with T.Kernel(1, threads=256):
        s = T.alloc_shared((128, 32), T.float32)
        f = T.alloc_fragment((128, 32), T.float32)
        full = T.alloc_barrier(128)
        with T.ws(1):
            T.copy(A, s)
            T.mbarrier_arrive(full)
        with T.ws(0):
            T.clear(f)
            T.mbarrier_wait_parity(full, 0)
            T.copy(s, f)
            T.copy(f, B)
    return B


@tilelang.jit
def masked(X):
    X: T.Tensor[[16], T.float32]
    Y = T.empty((16,), T.float32)
    with T.Kernel(1, threads=32):
        x = T.alloc_fragment((16,), T.float32)
        for i in T.Parallel(16):
            x[i] = T.if_then_else(i < 8, X[i], -T.infinity(T.float32))
        for i in T.Parallel(16):
            x[i] = T.exp(x[i])
        for i in T.Parallel(16):
            x[i] = (x[i] - x[i]) / (x[i] - x[i])
        T.copy(x, Y)
    return Y


@tilelang.jit
def talking(X):
    X: T.Tensor[[8, 16], T.int32]
    Y = T.empty((8, 16), T.int32)
    with T.Kernel(2, threads=32) as b:
        s = T.alloc_shared((4, 16), T.int32)
        T.copy(X[b * 4, 0], s)
        for k in T.serial(3):
            for i, j in T.Parallel(4, 16):
                s[i, j] = s[i, j] + k
            T.print(s, msg="tile")
        T.copy(s, Y[b * 4, 0])
    return Y

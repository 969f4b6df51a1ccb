"""Kernels over symbolic sizes, right and wrong, for the prover."""

import tilelang.language as T

M, N, K, n = (T.dynamic(x) for x in "MNKn")


def vadd():
    @T.prim_func
    def f(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            for i in T.Parallel(128):
                O[b * 128 + i] = A[b * 128 + i]

    return f


def vadd_guard():
    @T.prim_func
    def f(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            for i in T.Parallel(128):
                if b * 128 + i < n:
                    O[b * 128 + i] = A[b * 128 + i]

    return f


def gemm():
    @T.prim_func
    def f(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return f


def softmax():
    @T.prim_func
    def f(A: T.Tensor((M, N), "float32"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as b:
            m = T.alloc_fragment((1,), "float32")
            s = T.alloc_fragment((128,), "float32")
            l = T.alloc_fragment((1,), "float32")
            z = T.alloc_fragment((1,), "float32")
            T.fill(m, -1e30)
            T.fill(l, 0.0)
            for k in T.serial(T.ceildiv(N, 128)):
                T.copy(A[b, k * 128 : k * 128 + 128], s)
                T.reduce_max(s, m, dim=0, clear=False)
            for k in T.serial(T.ceildiv(N, 128)):
                T.copy(A[b, k * 128 : k * 128 + 128], s)
                for j in T.Parallel(128):
                    s[j] = T.if_then_else(k * 128 + j < N, T.exp(s[j] - m[0]), 0.0)
                T.reduce_sum(s, z, dim=0)
                l[0] += z[0]
            for k in T.serial(T.ceildiv(N, 128)):
                for j in T.Parallel(128):
                    if k * 128 + j < N:
                        O[b, k * 128 + j] = T.exp(A[b, k * 128 + j] - m[0]) / l[0]

    return f


def transpose():
    @T.prim_func
    def f(A: T.Tensor((M, N), "float32"), O: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            s = T.alloc_shared((32, 33), "float32")
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < M and bx * 32 + j < N:
                    s[i, j] = A[by * 32 + i, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                if bx * 32 + i < N and by * 32 + j < M:
                    O[bx * 32 + i, by * 32 + j] = s[j, i]

    return f


def histogram():
    @T.prim_func
    def f(A: T.Tensor((n,), "int32"), H: T.Tensor((256,), "int32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=128) as b:
            s = T.alloc_shared((256,), "int32")
            T.clear(s)
            for i in T.Parallel(1024):
                if b * 1024 + i < n:
                    T.atomic_add(s[A[b * 1024 + i]], 1)
            for i in T.Parallel(256):
                T.atomic_add(H[i], s[i])

    return f


def histogram_safe():
    @T.prim_func
    def f(A: T.Tensor((n,), "int32"), H: T.Tensor((256,), "int32")):
        with T.Kernel(T.ceildiv(n, 1024), threads=128) as b:
            s = T.alloc_shared((256,), "int32")
            T.clear(s)
            for i in T.Parallel(1024):
                if b * 1024 + i < n and A[b * 1024 + i] >= 0 and A[b * 1024 + i] < 256:
                    T.atomic_add(s[A[b * 1024 + i]], 1)
            for i in T.Parallel(256):
                T.atomic_add(H[i], s[i])

    return f


def scatter():
    @T.prim_func
    def f(V: T.Tensor((n,), "float32"), I: T.Tensor((n,), "int32"), O: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            for i in T.Parallel(128):
                if b * 128 + i < n:
                    O[I[b * 128 + i]] = V[b * 128 + i]

    return f


def conv1d():
    @T.prim_func
    def f(X: T.Tensor((n,), "float32"), W: T.Tensor((5,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            s = T.alloc_shared((132,), "float32")
            c = T.alloc_fragment((128,), "float32")
            for i in T.Parallel(132):
                s[i] = T.if_then_else(b * 128 + i - 2 >= 0 and b * 128 + i - 2 < n, X[b * 128 + i - 2], 0.0)
            for i in T.Parallel(128):
                c[i] = 0.0
                for k in T.serial(5):
                    c[i] += s[i + k] * W[k]
            for i in T.Parallel(128):
                if b * 128 + i < n:
                    O[b * 128 + i] = c[i]

    return f


def conv_wrong():
    @T.prim_func
    def f(X: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 128), threads=128) as b:
            s = T.alloc_shared((130,), "float32")
            for i in T.Parallel(130):
                s[i] = X[b * 128 + i]
            for i in T.Parallel(128):
                O[b * 128 + i] = s[i] + s[i + 3]

    return f


def rowsum():
    @T.prim_func
    def f(A: T.Tensor((M, N), "float32"), O: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 16), threads=128) as b:
            s = T.alloc_fragment((16, 64), "float32")
            r = T.alloc_fragment((16,), "float32")
            c = T.alloc_fragment((16,), "float32")
            T.clear(c)
            for k in T.serial(T.ceildiv(N, 64)):
                T.copy(A[b * 16, k * 64], s)
                T.reduce_sum(s, r, dim=1)
                for i in T.Parallel(16):
                    c[i] += r[i]
            T.copy(c, O[b * 16])

    return f


def stencil2d():
    @T.prim_func
    def f(A: T.Tensor((M, N), "float32"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 16), T.ceildiv(M, 16), threads=256) as (bx, by):
            for i, j in T.Parallel(16, 16):
                y = by * 16 + i
                x = bx * 16 + j
                if y > 0 and y < M - 1 and x > 0 and x < N - 1:
                    O[y, x] = A[y - 1, x] + A[y + 1, x] + A[y, x - 1] + A[y, x + 1]

    return f


def batched_gemv():
    @T.prim_func
    def f(A: T.Tensor((M, N), "float16"), X: T.Tensor((N,), "float16"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=128) as b:
            t = T.get_thread_binding()
            c = T.alloc_local((1,), "float32")
            c[0] = 0.0
            for k in T.serial(T.ceildiv(N, 32)):
                if b * 4 + t // 32 < M and k * 32 + t % 32 < N:
                    c[0] += T.cast(A[b * 4 + t // 32, k * 32 + t % 32], "float32") * T.cast(X[k * 32 + t % 32], "float32")
            s = T.alloc_var("float32")
            s = T.warp_reduce_sum(c[0])
            if t % 32 == 0 and b * 4 + t // 32 < M:
                Y[b * 4 + t // 32] = s

    return f


def persistent_gemm():
    @T.prim_func
    def f(A: T.Tensor((M, 64), "float16"), B: T.Tensor((64, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(132, threads=128) as w:
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            tiles = T.ceildiv(M, 64) * T.ceildiv(N, 64)
            for k in T.serial(T.ceildiv(tiles - w, 132)):
                t = w + k * 132
                if t < tiles:
                    T.copy(A[t // T.ceildiv(N, 64) * 64, 0], a)
                    T.copy(B[0, t % T.ceildiv(N, 64) * 64], b)
                    T.clear(c)
                    T.gemm(a, b, c)
                    T.copy(c, C[t // T.ceildiv(N, 64) * 64, t % T.ceildiv(N, 64) * 64])

    return f


def overlap_bug():
    @T.prim_func
    def f(A: T.Tensor((n,), "float32"), O: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 100), threads=128) as b:
            for i in T.Parallel(128):
                O[b * 100 + i] = A[b * 100 + i]

    return f


def rope():
    @T.prim_func
    def f(X: T.Tensor((M, 8, N * 2), "float32"), O: T.Tensor((M, 8, N * 2), "float32")):
        with T.Kernel(M, 8, threads=64) as (b, h):
            for k in T.serial(T.ceildiv(N, 64)):
                for j in T.Parallel(64):
                    if k * 64 + j < N:
                        O[b, h, k * 64 + j] = X[b, h, k * 64 + j] - X[b, h, N + k * 64 + j]
                        O[b, h, N + k * 64 + j] = X[b, h, k * 64 + j] + X[b, h, N + k * 64 + j]

    return f


def paged():
    @T.prim_func
    def f(KV: T.Tensor((M, 16, 64), "float16"), P: T.Tensor((N, K), "int32"), O: T.Tensor((N, K * 16, 64), "float16")):
        with T.Kernel(N, K, threads=128) as (b, p):
            s = T.alloc_shared((16, 64), "float16")
            T.copy(KV[P[b, p], 0:16, 0:64], s)
            T.copy(s, O[b, p * 16 : p * 16 + 16, 0:64])

    return f

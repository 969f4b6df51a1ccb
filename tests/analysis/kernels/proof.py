"""Kernels for the proofs; each name says what is true of it."""

import tilelang.language as T


def shift_out_of_bounds():
    N = T.dynamic("N")

    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                O[bx * 128 + i] = A[bx * 128 + i]

    return k


def guarded():
    N = T.dynamic("N")

    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < N:
                    O[bx * 128 + i] = A[bx * 128 + i] + T.if_then_else(bx * 128 + i > 0, A[bx * 128 + i - 1], 0.0)

    return k


def tiled_gemm():
    M, N, K = T.dynamic("M"), T.dynamic("N"), T.dynamic("K")

    @T.prim_func
    def k(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((64, 64), "float32")
            T.clear(acc)
            for kk in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 64, kk * 32], a)
                T.copy(B[kk * 32, bx * 64], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[by * 64, bx * 64])

    return k


def shared_one_too_far():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((64,), "float32")
            T.copy(A, S)
            for i in T.Parallel(64):
                O[i] = S[i + 1]

    return k


def blocks_collide():
    @T.prim_func
    def k(A: T.Tensor((1024,), "float32"), O: T.Tensor((1024,), "float32")):
        with T.Kernel(8, threads=128) as bx:
            for i in T.Parallel(128):
                O[bx * 64 + i] = A[bx * 64 + i]

    return k


def iterations_collide():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                O[0] = O[0] + A[i]

    return k


def neighbours_race():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            S = T.alloc_shared((65,), "float32")
            for i in T.Parallel(65):
                S[i] = 0.0
            for i in T.Parallel(64):
                S[i] = S[i + 1]
            for i in T.Parallel(64):
                O[i] = S[i]

    return k


def two_dimensional():
    M, N = T.dynamic("M"), T.dynamic("N")

    @T.prim_func
    def k(A: T.Tensor((M, N), "float32"), O: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=128) as (bx, by):
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < M and bx * 32 + j < N:
                    O[bx * 32 + j, by * 32 + i] = A[by * 32 + i, bx * 32 + j]

    return k


def gather():
    @T.prim_func
    def k(V: T.Tensor((64, 32), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i, j in T.Parallel(16, 32):
                O[i, j] = V[I[i], j]

    return k


def scatter():
    @T.prim_func
    def k(V: T.Tensor((16,), "float32"), I: T.Tensor((16,), "int32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(16):
                O[I[i]] = V[i]

    return k


def atomic():
    @T.prim_func
    def k(A: T.Tensor((1024,), "float32"), O: T.Tensor((1,), "float32")):
        with T.Kernel(8, threads=128) as bx:
            for i in T.Parallel(128):
                T.atomic_add(O[0], A[bx * 128 + i])

    return k


def swizzle_bits():
    @T.prim_func
    def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                O[i ^ 3] = A[i // 8 * 8 + i % 8]

    return k


def strided_loop():
    N = T.dynamic("N")

    @T.prim_func
    def k(A: T.Tensor((N,), "float32"), O: T.Tensor((N,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            for j in T.serial(bx, N, 4):
                O[j] = A[j]

    return k


def overlapping_copies():
    @T.prim_func
    def k(A: T.Tensor((256, 64), "float32"), O: T.Tensor((256, 64), "float32")):
        with T.Kernel(8, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float32")
            T.copy(A[bx * 32, 0], S)
            T.copy(S, O[bx * 32, 0])

    return k


def threads_collide():
    @T.prim_func
    def k(A: T.Tensor((128,), "float32"), O: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=128) as _:
            t = T.get_thread_binding()
            O[t // 2] = A[t]

    return k


def threads_apart():
    @T.prim_func
    def k(A: T.Tensor((256,), "float32"), O: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            t = T.get_thread_binding()
            for j in T.serial(4):
                if t % 4 == j:
                    O[bx * 128 + t] = A[bx * 128 + t]

    return k


def guarded_by_data():
    @T.prim_func
    def k(X: T.Tensor((200,), "float32"), Y: T.Tensor((200,), "float32")):
        with T.Kernel(T.ceildiv(200, 64), threads=64) as bx:
            for i in T.Parallel(64):
                if X[bx * 64 + i] > 0:
                    Y[bx * 64 + i] = X[bx * 64 + i]

    return k


def one_size_by_two_declarations():
    @T.prim_func
    def k(A: T.Tensor((T.dynamic("n"),), "float32"), B: T.Tensor((T.dynamic("n"),), "float32")):
        n = A.shape[0]
        with T.Kernel(T.ceildiv(n, 128), threads=128) as bx:
            for i in T.Parallel(128):
                if bx * 128 + i < n:
                    B[bx * 128 + i] = A[bx * 128 + i]

    return k

"""Kernels for the budget tests."""

import tilelang.language as T


def gemm(stages=2, bm=128, bn=128, bk=32):
    @T.prim_func
    def k(A: T.Tensor((512, 512), "float16"), B: T.Tensor((512, 512), "float16"), C: T.Tensor((512, 512), "float16")):
        with T.Kernel(512 // bn, 512 // bm, threads=128) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bk, bn), "float16")
            c = T.alloc_fragment((bm, bn), "float32")
            s = T.alloc_shared((bm, bn), "float16")
            T.clear(c)
            for kk in T.Pipelined(512 // bk, num_stages=stages):
                T.copy(A[by * bm, kk * bk], a)
                T.copy(B[kk * bk, bx * bn], b)
                T.gemm(a, b, c)
            T.copy(c, s)
            T.copy(s, C[by * bm, bx * bn])

    return k


def computed_in_the_loop(stages=2):
    @T.prim_func
    def k(A: T.Tensor((128, 512), "float16"), C: T.Tensor((128, 512), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((128, 64), "float16")
            b = T.alloc_shared((128, 64), "float16")
            f = T.alloc_fragment((128, 64), "float32")
            for kk in T.Pipelined(8, num_stages=stages):
                T.copy(A[0, kk * 64], a)
                for i, j in T.Parallel(128, 64):
                    b[i, j] = a[i, j] * T.float16(2)
                T.copy(b, f)
                T.copy(f, C[0, kk * 64])

    return k


def one_after_the_other():
    """Two buffers of 96 KiB that are never in use at once."""

    @T.prim_func
    def k(A: T.Tensor((192, 256), "float16"), C: T.Tensor((192, 256), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_shared((192, 256), "float16")
            b = T.alloc_shared((192, 256), "float16")
            T.copy(A, a)
            T.copy(a, C)
            T.copy(A, b)
            T.copy(b, C)

    return k


def big(rows=1024):
    @T.prim_func
    def k(A: T.Tensor((rows, 256), "float32"), O: T.Tensor((rows, 256), "float32")):
        with T.Kernel(1, threads=128) as _:
            S = T.alloc_shared((rows, 256), "float32")
            T.copy(A, S)
            T.copy(S, O)

    return k


def static(rows=64):
    @T.prim_func
    def k(A: T.Tensor((rows, 256), "float32"), O: T.Tensor((rows, 256), "float32")):
        with T.Kernel(1, threads=128) as _:
            S = T.alloc_shared((rows, 256), "float32", scope="shared")
            T.copy(A, S)
            T.copy(S, O)

    return k


def threads(n=2048):
    @T.prim_func
    def k(A: T.Tensor((4096,), "float32"), O: T.Tensor((4096,), "float32")):
        with T.Kernel(1, threads=n) as _:
            for i in T.Parallel(4096):
                O[i] = A[i]

    return k

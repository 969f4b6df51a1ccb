"""The kernels that `tilelab bench sim` times, as a TileLang user writes them (imports TileLang: load lazily)."""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, D103, TID253

import tilelang.language as T


def add(blocks=1024, width=1024):
    n = blocks * width

    @T.prim_func
    def add_kernel(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(blocks, threads=256) as bx:
            for i in T.Parallel(width):
                C[bx * width + i] = A[bx * width + i] + B[bx * width + i]

    return add_kernel


def scale(blocks=65536, width=1024):
    n = blocks * width

    @T.prim_func
    def scale_kernel(A: T.Tensor((n,), "float32"), C: T.Tensor((n,), "float32")):
        with T.Kernel(blocks, threads=256) as bx:
            for i in T.Parallel(width):
                C[bx * width + i] = A[bx * width + i] * 2.0 + 1.0

    return scale_kernel


def row_sum(rows=1024, columns=1024):
    @T.prim_func
    def row_sum_kernel(A: T.Tensor((rows, columns), "float32"), C: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            row = T.alloc_fragment((1, columns), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], row)
            T.reduce_sum(row, total, dim=1)
            T.copy(total, C[bx])

    return row_sum_kernel


def softmax(rows=1024, columns=1024):
    @T.prim_func
    def softmax_kernel(A: T.Tensor((rows, columns), "float32"), C: T.Tensor((rows, columns), "float32")):
        with T.Kernel(rows, threads=128) as bx:
            x = T.alloc_fragment((1, columns), "float32")
            high = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], x)
            T.reduce_max(x, high, dim=1)
            for i, j in T.Parallel(1, columns):
                x[i, j] = T.exp(x[i, j] - high[i])
            T.reduce_sum(x, total, dim=1)
            for i, j in T.Parallel(1, columns):
                x[i, j] = x[i, j] / total[i]
            T.copy(x, C[bx, 0])

    return softmax_kernel


def matmul(n=512, bm=64, bn=64, bk=32):
    @T.prim_func
    def matmul_kernel(A: T.Tensor((n, n), "float16"), B: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float16")):
        with T.Kernel(n // bn, n // bm, threads=128) as (bx, by):
            a = T.alloc_shared((bm, bk), "float16")
            b = T.alloc_shared((bk, bn), "float16")
            acc = T.alloc_fragment((bm, bn), "float32")
            T.clear(acc)
            for k in T.Pipelined(n // bk, num_stages=2):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[k * bk, bx * bn], b)
                T.gemm(a, b, acc)
            T.copy(acc, C[by * bm, bx * bn])

    return matmul_kernel

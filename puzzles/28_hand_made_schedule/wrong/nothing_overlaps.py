"""All four statements in one stage: right, and every step waits for its copies."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "int8"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), "float16")
        q = T.alloc_shared((32, 64), "int8")
        b = T.alloc_shared((32, 64), "float16")
        c = T.alloc_fragment((64, 64), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, 32), order=[0, 1, 2, 3], stage=[0, 0, 0, 0]):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], q)
            for i, j in T.Parallel(32, 64):
                b[i, j] = T.cast(q[i, j], "float16")
            T.gemm(a, b, c)
        T.copy(c, C[by * 64, bx * 64])
    return C

"""A kernel on tensors of more elements than a view holds."""

import tilelang
import tilelang.language as T


@tilelang.jit
def gemm(A, B, unused):
    A: T.Tensor[[512, 512], T.float16]
    B: T.Tensor[[512, 512], T.float16]
    unused: T.Tensor[[512, 512], T.float16]
    C = T.empty((512, 512), T.float16)
    with T.Kernel(8, 8, threads=128) as (bx, by):
        a = T.alloc_shared((64, 32), T.float16)
        b = T.alloc_shared((32, 64), T.float16)
        acc = T.alloc_fragment((64, 64), T.float32)
        T.clear(acc)
        for k in T.Pipelined(16, num_stages=2):
            T.copy(A[by * 64, k * 32], a)
            T.copy(B[k * 32, bx * 64], b)
            T.gemm(a, b, acc)
        T.copy(acc, C[by * 64, bx * 64])
    return C

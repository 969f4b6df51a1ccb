"""Takes the four bits for the weight itself."""

import tilelang
import tilelang.language as T


@tilelang.jit
def dequantised(A, W, scale, zero, block_m: int = 64, block_n: int = 64, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    W: T.Tensor[[N, K // 2], "uint8"]
    scale: T.Tensor[[N, K // 64], "float16"]
    zero: T.Tensor[[N, K // 64], "uint8"]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k), "float16")
        w = T.alloc_shared((block_n, block_k // 2), "uint8")
        b = T.alloc_shared((block_n, block_k), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.serial(K // block_k):
            T.copy(A[by * block_m, k * block_k], a)
            T.copy(W[bx * block_n, k * (block_k // 2)], w)
            for i, j in T.Parallel(block_n, block_k):
                four = (w[i, j // 2] >> T.cast(j % 2 * 4, "uint8")) & T.uint8(15)
                if bx * block_n + i < N:
                    b[i, j] = (T.cast(four, "float16")) * scale[bx * block_n + i, k]
                else:
                    b[i, j] = 0
            T.gemm(a, b, c, transpose_B=True)
        T.copy(c, C[by * block_m, bx * block_n])
    return C

"""Puts the second position into the lower two bits."""

import tilelang
import tilelang.language as T


@tilelang.jit
def sparse_matmul(A, B, block_m: int = 64, block_n: int = 64, block_k: int = 64):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    values = T.alloc_global((M, K // 2), "float16")
    codes = T.alloc_global((M, K // 16), "int16")
    with T.Kernel(T.ceildiv(M * (K // 16), 128), threads=128) as bx:
        at = bx * 128 + T.get_thread_binding()
        if at < M * (K // 16):
            code = T.alloc_var("int32")
            kept = T.alloc_var("int32")
            code = 0
            for g in T.serial(4):
                kept = 0
                for i in T.serial(4):
                    number = A[at // (K // 16), at % (K // 16) * 16 + g * 4 + i]
                    if kept < 2 and (number != T.float16(0) or i >= 2 + kept):
                        values[at // (K // 16), at % (K // 16) * 8 + g * 2 + kept] = number
                        code = code | (i << (g * 4 + (1 - kept) * 2))
                        kept = kept + 1
            codes[at // (K // 16), at % (K // 16)] = T.cast(code, "int16")
    with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
        a = T.alloc_shared((block_m, block_k // 2), "float16")
        e = T.alloc_shared((block_m, block_k // 16), "int16")
        b = T.alloc_shared((block_k, block_n), "float16")
        c = T.alloc_fragment((block_m, block_n), "float32")
        T.clear(c)
        for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
            T.copy(values[by * block_m, k * (block_k // 2)], a)
            T.copy(codes[by * block_m, k * (block_k // 16)], e)
            T.copy(B[k * block_k, bx * block_n], b)
            T.gemm_sp(a, e, b, c)
        T.copy(c, C[by * block_m, bx * block_n])
    return C

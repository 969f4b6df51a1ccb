"""The solution of puzzle 34, persistent gemm. Generated from puzzle.py."""

import tilelang
import tilelang.language as T


@tilelang.jit
def matmul(A, B, workers: int = 108, block: int = 128, block_k: int = 32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor[[M, K], "float16"]
    B: T.Tensor[[K, N], "float16"]
    C = T.empty((M, N), "float32")
    across = T.ceildiv(N, block)
    tiles = across * T.ceildiv(M, block)
    with T.Kernel(workers, threads=128) as w:
        a = T.alloc_shared((block, block_k), "float16")
        b = T.alloc_shared((block_k, block), "float16")
        c = T.alloc_fragment((block, block), "float32")
        for turn in T.serial(T.ceildiv(tiles, workers)):
            tile = turn * workers + w
            if tile < tiles:
                T.clear(c)
                for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=2):
                    T.copy(A[tile // across * block, k * block_k], a)
                    T.copy(B[k * block_k, tile % across * block], b)
                    T.gemm(a, b, c)
                T.copy(c, C[tile // across * block, tile % across * block])
    return C

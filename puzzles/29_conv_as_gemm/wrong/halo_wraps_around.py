"""No check of the column: left of the first pixel of a row comes the last one of the row before."""

import tilelang
import tilelang.language as T


@tilelang.jit
def conv(X, F, block_p: int = 64, block_k: int = 64, block_c: int = 32):
    N, H, W, C, K = T.const("N, H, W, C, K")
    X: T.Tensor[[N, H, W, C], "float16"]
    F: T.Tensor[[9, C, K], "float16"]
    Y = T.empty((N * H * W, K), "float32")
    with T.Kernel(T.ceildiv(K, block_k), T.ceildiv(N * H * W, block_p), threads=128) as (bx, by):
        x = T.alloc_shared((block_p, block_c), "float16")
        f = T.alloc_shared((block_c, block_k), "float16")
        y = T.alloc_fragment((block_p, block_k), "float32")
        filters = T.Tensor((9 * C, K), "float16", F.data)
        T.clear(y)
        for k in T.Pipelined(T.ceildiv(9 * C, block_c), num_stages=2):
            T.copy(filters[k * block_c, bx * block_k], f)
            for i, j in T.Parallel(block_p, block_c):
                pixel = by * block_p + i
                tap = (k * block_c + j) // C
                row = pixel // W % H + tap // 3 - 1
                column = pixel % W + tap % 3 - 1
                inside = (pixel < N * H * W) and (tap < 9) and (row >= 0) and (row < H)
                x[i, j] = T.if_then_else(
                    inside, X[pixel // (H * W), row + T.floordiv(column, W), column % W, (k * block_c + j) % C], T.float16(0)
                )
            T.gemm(x, f, y)
        T.copy(y, Y[by * block_p, bx * block_k])
    return Y

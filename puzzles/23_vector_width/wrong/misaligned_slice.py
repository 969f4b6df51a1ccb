"""The first four elements are done apart, so every slice behind them begins 8 bytes past a multiple of 16."""

import tilelang
import tilelang.language as T


@tilelang.jit
def double(X):
    N = T.const("N")
    X: T.Tensor[[N], "float16"]
    Y = T.empty((N,), "float16")
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        t = T.get_thread_binding()
        if bx == 0 and t == 0:
            for v in T.vectorized(4):
                Y[v] = X[v] * T.float16(2)
        for v in T.vectorized(8):
            Y[(bx * 128 + t) * 8 + 4 + v] = X[(bx * 128 + t) * 8 + 4 + v] * T.float16(2)
    return Y

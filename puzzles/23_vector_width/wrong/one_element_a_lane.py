"""Neighbouring lanes take neighbouring elements, eight times over: no sector is wasted, but each instruction moves 2 bytes a lane."""

import tilelang
import tilelang.language as T


@tilelang.jit
def double(X):
    N = T.const("N")
    X: T.Tensor[[N], "float16"]
    Y = T.empty((N,), "float16")
    with T.Kernel(T.ceildiv(N, 1024), threads=128) as bx:
        t = T.get_thread_binding()
        for v in T.serial(8):
            if bx * 1024 + v * 128 + t < N:
                Y[bx * 1024 + v * 128 + t] = X[bx * 1024 + v * 128 + t] * T.float16(2)
    return Y

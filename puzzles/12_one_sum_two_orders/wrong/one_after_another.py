"""One number after another: each is added to a sum that is far larger, and its last bits fall off."""

import tilelang
import tilelang.language as T


@tilelang.jit
def total(A, block: int = 1024):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((1,), "float32")
    with T.Kernel(1, threads=128):
        result = T.alloc_var("float32", init=0.0)
        if T.get_thread_binding() == 0:
            for i in T.serial(N):
                result += A[i]
            out[0] = result
    return out

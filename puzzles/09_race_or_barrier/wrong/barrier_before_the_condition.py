"""One barrier before the condition orders the first step; the other seven still race."""

import tilelang
import tilelang.language as T


@tilelang.jit
def block_sum(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    out = T.empty((T.ceildiv(N, 256),), "float32")
    with T.Kernel(T.ceildiv(N, 256), threads=256) as bx:
        t = T.get_thread_binding()
        s = T.alloc_shared((256,), "float32")
        s[t] = T.if_then_else(bx * 256 + t < N, A[bx * 256 + t], 0.0)
        T.sync_threads()
        if t < 128:  # the upper half has nothing to add
            for k in T.serial(8):
                if t < 128 >> k:
                    s[t] += s[t + (128 >> k)]
        if t == 0:
            out[bx] = s[0]
    return out

# fails: refused
# ruff: noqa
import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=128) as bx:
        T.call_extern("handle", "system", "id")
    return B

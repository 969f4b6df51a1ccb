# fails: TL104
# ruff: noqa
import tilelang
import tilelang.language as T


@tilelang.jit
def copy(A):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(1, threads=128) as bx:
        pass
    return B

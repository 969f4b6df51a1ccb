# fails: refused
# ruff: noqa
import tilelang
import tilelang.language as T


@tilelang.jit(compile_flags=["-include", "/etc/passwd"])
def copy(A, block: int = 128):
    N = T.const("N")
    A: T.Tensor[[N], "float32"]
    B = T.empty((N,), "float32")
    with T.Kernel(T.ceildiv(N, block), threads=128) as bx:
        start = bx * block
        T.copy(A[start : start + block], B[start : start + block])
    return B

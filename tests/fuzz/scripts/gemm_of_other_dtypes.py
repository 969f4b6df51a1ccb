# exit: 1
# says: gemm_of_other_dtypes.py | float16 | int8
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "int8"), O: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64, 32), "float16")
        b = T.alloc_shared((32, 64), "int8")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, O)

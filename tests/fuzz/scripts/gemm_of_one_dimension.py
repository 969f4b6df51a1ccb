# exit: 1
# says: gemm_of_one_dimension.py:14
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "float16"), B: T.Tensor((64,), "float16"), O: T.Tensor((1,), "float32")):
    with T.Kernel(1, threads=128):
        a = T.alloc_shared((64,), "float16")
        b = T.alloc_shared((64,), "float16")
        c = T.alloc_fragment((1,), "float32")
        T.clear(c)
        T.gemm(a, b, c)
        T.copy(c, O)

# exit: 2
# says: misspelt_operation.py:11 | 'cpoy' | 'copy'
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64,), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        T.cpoy(A, s)

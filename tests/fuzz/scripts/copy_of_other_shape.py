# exit: 1
# says: TL701 | copy_of_other_shape.py:11 | 64 | 32
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((64, 64), "float32"), O: T.Tensor((32, 64), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((32, 64), "float32")
        T.copy(A, s)
        T.copy(s, O)

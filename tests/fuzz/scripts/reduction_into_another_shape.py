# exit: 1
# says: TL701 | reduction_into_another_shape.py:13
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((8, 8), "float32"), O: T.Tensor((3,), "float32")):
    with T.Kernel(1, threads=64):
        a = T.alloc_fragment((8, 8), "float32")
        r = T.alloc_fragment((3,), "float32")
        T.copy(A, a)
        T.reduce_sum(a, r, dim=1)
        T.copy(r, O)

# exit: 1
# says: TL701 | copy_of_other_rank.py:11
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((8, 8), "float32"), O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        T.copy(A, s)
        T.copy(s, O)

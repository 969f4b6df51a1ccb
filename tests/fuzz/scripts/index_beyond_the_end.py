# exit: 1
# says: TL101 | index_beyond_the_end.py:12
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        for i in T.Parallel(65):
            s[i] = 1.0
        T.copy(s, O)

# exit: 1
# says: reshape_to_another_size.py:11
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((64,), "float32")
        r = T.reshape(s, (7, 9))
        T.copy(r[0, :], O[0:9])

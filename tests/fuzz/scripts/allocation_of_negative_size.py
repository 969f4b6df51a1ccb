# exit: 1
# says: allocation_of_negative_size.py
import tilelang
import tilelang.language as T


@T.prim_func
def k(O: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        s = T.alloc_shared((-1,), "float32")
        T.clear(s)

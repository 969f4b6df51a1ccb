# exit: 0
# says:
import tilelang
import tilelang.language as T


@T.prim_func
def k(A: T.Tensor((1000,), "float32"), O: T.Tensor((1000,), "float32")):
    with T.Kernel(T.ceildiv(1000, 128), threads=128) as b:
        s = T.alloc_shared((128,), "float32")
        T.copy(A[b * 128], s)
        T.copy(s, O[b * 128])
